/* AVX-VNNI: the int8 dot product of AVX2-width CPUs (VEX encoded). */
#include <immintrin.h>

#include "cpu/kernel.inc"

#define STEP_DOT(a, x, y)                                                                          \
    __asm__ volatile("%{vex%} vpdpbusd %2, %1, %0" : "+x"(a) : "x"(x), "x"(y));

DEFINE_KERNEL(qpdot, __m256i, 12, STEP_DOT, NOTHING)

const struct kernel kernels_avxvnni[] = {
    {"QPDOT", ISA_AVX2, ISA_FEATURE_AVXVNNI, "vpdpbusd (AVX-VNNI)", RULE_DOT_US, 32, 12, 64, 1,
     qpdot, qpdot_paced},
    {0},
};
