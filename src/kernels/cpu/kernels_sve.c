/*
 * SVE with vectors of 512 bits. The code runs at every width, but only this one is worth a row: of
 * narrower vectors SVE does no more in a cycle than NEON. 24 accumulators are enough for a latency
 * of 9 on the two pipes of an A64FX.
 */
#include <arm_sve.h>

#define AT_ANY_ADDRESS(VECTOR)
#define FETCH(from, i) svld1_vnum_s8(svptrue_b8(), (const int8_t *)(from), i)
#define PUT(to, i, a) svst1_vnum_s8(svptrue_b8(), (int8_t *)(to), i, a)
#include "cpu/kernel.inc"

#define FUSED(a, x, y, INSTRUCTION, LANE)                                                          \
    __asm__ volatile(INSTRUCTION " %0." LANE ", %1/m, %2." LANE ", %3." LANE                       \
                     : "+w"(a)                                                                     \
                     : "Upl"(svptrue_b8()), "w"(x), "w"(y));
#define STEP_F64(a, x, y) FUSED(a, x, y, "fmla", "d")
#define STEP_F32(a, x, y) FUSED(a, x, y, "fmla", "s")
#define STEP_F16(a, x, y) FUSED(a, a, x, "fmla", "h")
#define ADD(a, y, LANE)                                                                            \
    __asm__ volatile("fadd %0." LANE ", %0." LANE ", %1." LANE : "+w"(a) : "w"(y));
#define MIX_F64(a, x, y) STEP_F64(a, x, y) ADD(a, y, "d")
#define MIX_F32(a, x, y) STEP_F32(a, x, y) ADD(a, y, "s")
#define STEP_I32(a, x, y) FUSED(a, x, y, "mla", "s")
#define STEP_I16(a, x, y) FUSED(a, x, y, "mla", "h")
#define STEP_I8(a, x, y) FUSED(a, x, y, "mla", "b")
#define STEP_DOT(a, x, y) __asm__ volatile("sdot %0.s, %1.b, %2.b" : "+w"(a) : "w"(x), "w"(y));

DEFINE_KERNEL(dp, svint8_t, 24, STEP_F64, NOTHING)
DEFINE_KERNEL(fp32, svint8_t, 24, STEP_F32, NOTHING)
DEFINE_KERNEL(dpmix, svint8_t, 24, MIX_F64, NOTHING)
DEFINE_KERNEL(fp32mix, svint8_t, 24, MIX_F32, NOTHING)
DEFINE_KERNEL(fp16, svint8_t, 24, STEP_F16, NOTHING)
DEFINE_KERNEL(sp, svint8_t, 24, STEP_I32, NOTHING)
DEFINE_KERNEL(hp, svint8_t, 24, STEP_I16, NOTHING)
DEFINE_KERNEL(qp, svint8_t, 24, STEP_I8, NOTHING)
DEFINE_KERNEL(qpdot, svint8_t, 24, STEP_DOT, NOTHING)

/* clang-format off */
#define ROW(workload, instruction, rule, lane, run)                                                \
    {workload, ISA_NEON, ISA_FEATURE_SVE, instruction " (SVE)", rule, 64, 24, 2 * 64 / lane, 1,    \
     run, run##_paced}
#define MIXED_ROW(workload, instruction, rule, lane, run)                                          \
    {workload, ISA_NEON, ISA_FEATURE_SVE, instruction " (SVE)", rule, 64, 24, 3 * 64 / lane, 2,    \
     run, run##_paced}
/* clang-format on */

const struct kernel kernels_sve[] = {
    ROW("DP", "fmla d", RULE_ADD_F64, 8, dp),
    ROW("FP32", "fmla s", RULE_ADD_F32, 4, fp32),
    ROW("DPMIX", "fmla d", RULE_ADD_F64, 8, dp),
    MIXED_ROW("DPMIX", "fmla d + fadd d", RULE_ADD_MIX_F64, 8, dpmix),
    ROW("FP32MIX", "fmla s", RULE_ADD_F32, 4, fp32),
    MIXED_ROW("FP32MIX", "fmla s + fadd s", RULE_ADD_MIX_F32, 4, fp32mix),
    ROW("FP16", "fmla h", RULE_GROW_F16, 2, fp16),
    ROW("SP", "mla s", RULE_ADD_I32, 4, sp),
    ROW("HP", "mla h", RULE_ADD_I16, 2, hp),
    ROW("QP", "mla b", RULE_ADD_I8, 1, qp),
    ROW("QPDOT", "sdot s", RULE_DOT_SS, 1, qpdot),
    {0},
};
