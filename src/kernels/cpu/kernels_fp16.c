/* Half precision of Armv8.2: fused multiply-adds of 8 lanes. */
#include <arm_neon.h>

#include "cpu/kernel.inc"

#define STEP_F16(a, x, y) __asm__ volatile("fmla %0.8h, %0.8h, %1.8h" : "+w"(a) : "w"(x));

DEFINE_KERNEL(fp16, int16x8_t, 24, STEP_F16, NOTHING)

const struct kernel kernels_fp16[] = {
    {"FP16", ISA_NEON, ISA_FEATURE_FP16, "fmla 8h", RULE_GROW_F16, 16, 24, 16, 1, fp16, fp16_paced},
    {0},
};
