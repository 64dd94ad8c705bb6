/* AVX512-BF16: 32 products of bfloat16 and as many additions to single precision in one
 * instruction. */
#include <immintrin.h>

#include "cpu/kernel.inc"

#define STEP_DOT(a, x, y) __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(a) : "v"(x), "v"(y));

DEFINE_KERNEL(bf16dot, __m512, 24, STEP_DOT, NOTHING)

const struct kernel kernels_avx512bf16[] = {
    {"BF16DOT", ISA_AVX512, ISA_FEATURE_AVX512BF16, "vdpbf16ps (AVX512-BF16)", RULE_DOT_BF16, 64,
     24, 64, 1, bf16dot, bf16dot_paced},
    {0},
};
