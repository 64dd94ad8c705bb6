/* I8MM of Armv8.6: two rows of eight bytes times two columns, 32 products of bytes and as many
 * additions in one instruction. */
#include <arm_neon.h>

#include "cpu/kernel.inc"

#define STEP_MATRIX(a, x, y)                                                                       \
    __asm__ volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(a) : "w"(x), "w"(y));

DEFINE_KERNEL(qpmm, int32x4_t, 24, STEP_MATRIX, NOTHING)

const struct kernel kernels_i8mm[] = {
    {"QPMM", ISA_NEON, ISA_FEATURE_I8MM, "smmla", RULE_MATRIX_SS, 16, 24, 64, 1, qpmm, qpmm_paced},
    {0},
};
