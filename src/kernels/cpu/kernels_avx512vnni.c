/* AVX512-VNNI: 64 products of bytes and as many additions in one instruction. */
#include <immintrin.h>

#include "cpu/kernel.inc"

#define STEP_DOT(a, x, y) __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(a) : "v"(x), "v"(y));

DEFINE_KERNEL(qpdot, __m512i, 24, STEP_DOT, NOTHING)

const struct kernel kernels_avx512vnni[] = {
    {"QPDOT", ISA_AVX512, ISA_FEATURE_AVX512VNNI, "vpdpbusd (AVX512-VNNI)", RULE_DOT_US, 64, 24,
     128, 1, qpdot, qpdot_paced},
    {0},
};
