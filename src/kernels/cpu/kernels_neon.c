/*
 * NEON (AArch64): 32 registers, 24 accumulators: enough for a latency of 4 on the four pipes of a
 * Neoverse V. Its fused forms add a product to the accumulator, in every lane width.
 */
#include <arm_neon.h>

#include "cpu/kernel.inc"

#define FUSED(a, x, y, INSTRUCTION, LANES)                                                         \
    __asm__ volatile(INSTRUCTION " %0." LANES ", %1." LANES ", %2." LANES                          \
                     : "+w"(a)                                                                     \
                     : "w"(x), "w"(y));
#define STEP_F64(a, x, y) FUSED(a, x, y, "fmla", "2d")
#define STEP_F32(a, x, y) FUSED(a, x, y, "fmla", "4s")
#define ADD(a, y, LANES)                                                                           \
    __asm__ volatile("fadd %0." LANES ", %0." LANES ", %1." LANES : "+w"(a) : "w"(y));
#define MIX_F64(a, x, y) STEP_F64(a, x, y) ADD(a, y, "2d")
#define MIX_F32(a, x, y) STEP_F32(a, x, y) ADD(a, y, "4s")
#define STEP_I32(a, x, y) FUSED(a, x, y, "mla", "4s")
#define STEP_I16(a, x, y) FUSED(a, x, y, "mla", "8h")
#define STEP_I8(a, x, y) FUSED(a, x, y, "mla", "16b")
/* Without the dot product instruction: products to 16 bits, then two sums of pairs, the second to
 * 32 bits. */
#define STEP_DOT(a, x, y)                                                                          \
    do {                                                                                           \
        int8x16_t low, high;                                                                       \
        __asm__ volatile("smull %1.8h, %3.8b, %4.8b\n\tsmull2 %2.8h, %3.16b, %4.16b\n\t"           \
                         "addp %1.8h, %1.8h, %2.8h\n\tsadalp %0.4s, %1.8h"                         \
                         : "+w"(a), "=&w"(low), "=&w"(high)                                        \
                         : "w"(x), "w"(y));                                                        \
    } while (0);

DEFINE_KERNEL(dp, float64x2_t, 24, STEP_F64, NOTHING)
DEFINE_KERNEL(fp32, float32x4_t, 24, STEP_F32, NOTHING)
DEFINE_KERNEL(dpmix, float64x2_t, 24, MIX_F64, NOTHING)
DEFINE_KERNEL(fp32mix, float32x4_t, 24, MIX_F32, NOTHING)
DEFINE_KERNEL(sp, int32x4_t, 24, STEP_I32, NOTHING)
DEFINE_KERNEL(hp, int16x8_t, 24, STEP_I16, NOTHING)
DEFINE_KERNEL(qp, int8x16_t, 24, STEP_I8, NOTHING)
DEFINE_KERNEL(qpdot, int32x4_t, 12, STEP_DOT, NOTHING)

const struct kernel kernels_neon[] = {
    {"DP", ISA_NEON, ISA_FEATURE_NONE, "fmla 2d", RULE_ADD_F64, 16, 24, 4, 1, dp, dp_paced},
    {"FP32", ISA_NEON, ISA_FEATURE_NONE, "fmla 4s", RULE_ADD_F32, 16, 24, 8, 1, fp32, fp32_paced},
    /* With additions on pipes of their own, and without: see kernel_fastest. */
    {"DPMIX", ISA_NEON, ISA_FEATURE_NONE, "fmla 2d", RULE_ADD_F64, 16, 24, 4, 1, dp, dp_paced},
    {"DPMIX", ISA_NEON, ISA_FEATURE_NONE, "fmla 2d + fadd 2d", RULE_ADD_MIX_F64, 16, 24, 6, 2,
     dpmix, dpmix_paced},
    {"FP32MIX", ISA_NEON, ISA_FEATURE_NONE, "fmla 4s", RULE_ADD_F32, 16, 24, 8, 1, fp32,
     fp32_paced},
    {"FP32MIX", ISA_NEON, ISA_FEATURE_NONE, "fmla 4s + fadd 4s", RULE_ADD_MIX_F32, 16, 24, 12, 2,
     fp32mix, fp32mix_paced},
    {"SP", ISA_NEON, ISA_FEATURE_NONE, "mla 4s", RULE_ADD_I32, 16, 24, 8, 1, sp, sp_paced},
    {"HP", ISA_NEON, ISA_FEATURE_NONE, "mla 8h", RULE_ADD_I16, 16, 24, 16, 1, hp, hp_paced},
    {"QP", ISA_NEON, ISA_FEATURE_NONE, "mla 16b", RULE_ADD_I8, 16, 24, 32, 1, qp, qp_paced},
    {"QPDOT", ISA_NEON, ISA_FEATURE_NONE, "smull + smull2 + addp + sadalp", RULE_DOT_SS, 16, 12, 32,
     4, qpdot, qpdot_paced},
    {0},
};
