/* The dot product extension of Armv8.2: 16 products of bytes and as many additions in one
 * instruction. */
#include <arm_neon.h>

#include "cpu/kernel.inc"

#define STEP_DOT(a, x, y) __asm__ volatile("sdot %0.4s, %1.16b, %2.16b" : "+w"(a) : "w"(x), "w"(y));

DEFINE_KERNEL(qpdot, int32x4_t, 24, STEP_DOT, NOTHING)

const struct kernel kernels_dotprod[] = {
    {"QPDOT", ISA_NEON, ISA_FEATURE_DOTPROD, "sdot", RULE_DOT_SS, 16, 24, 32, 1, qpdot,
     qpdot_paced},
    {0},
};
