/* BF16 of Armv8.6: 8 products of bfloat16 in a dot product, 16 in a product of two rows and two
 * columns. */
#include <arm_neon.h>

#include "cpu/kernel.inc"

#define PRODUCTS(a, x, y, INSTRUCTION)                                                             \
    __asm__ volatile(INSTRUCTION " %0.4s, %1.8h, %2.8h" : "+w"(a) : "w"(x), "w"(y));
#define STEP_DOT(a, x, y) PRODUCTS(a, x, y, "bfdot")
#define STEP_MATRIX(a, x, y) PRODUCTS(a, x, y, "bfmmla")

DEFINE_KERNEL(bf16dot, float32x4_t, 24, STEP_DOT, NOTHING)
DEFINE_KERNEL(bf16mm, float32x4_t, 24, STEP_MATRIX, NOTHING)

const struct kernel kernels_bf16[] = {
    {"BF16DOT", ISA_NEON, ISA_FEATURE_BF16, "bfdot", RULE_DOT_BF16, 16, 24, 16, 1, bf16dot,
     bf16dot_paced},
    {"BF16MM", ISA_NEON, ISA_FEATURE_BF16, "bfmmla", RULE_MATRIX_BF16, 16, 24, 32, 1, bf16mm,
     bf16mm_paced},
    {0},
};
