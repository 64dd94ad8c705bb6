/* AVX512-FP16: fused multiply-adds of 32 lanes in half precision. */
#include <immintrin.h>

#include "cpu/kernel.inc"

#define STEP_F16(a, x, y) __asm__ volatile("vfmadd231ph %1, %0, %0" : "+v"(a) : "v"(x));

DEFINE_KERNEL(fp16, __m512i, 24, STEP_F16, NOTHING)

const struct kernel kernels_avx512fp16[] = {
    {"FP16", ISA_AVX512, ISA_FEATURE_AVX512FP16, "vfmadd231ph (AVX512-FP16)", RULE_GROW_F16, 64, 24,
     64, 1, fp16, fp16_paced},
    {0},
};
