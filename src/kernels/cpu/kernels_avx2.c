/* AVX2 and FMA: 16 registers, so 12 accumulators and up to 4 operands and temporaries. */
#include <immintrin.h>

#include "kernel.inc"

#define FMA_F64(a, x, y) __asm__ volatile("vfmadd213pd %2, %1, %0" : "+x"(a) : "x"(x), "x"(y));
#define FMA_F32(a, x, y) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+x"(a) : "x"(x), "x"(y));
#define TWO(a, b, INSTRUCTION) __asm__ volatile(INSTRUCTION " %1, %0, %0" : "+x"(a) : "x"(b));
#define MULTIPLY_I32(a, x, y) TWO(a, x, "vpmulld")
#define ADD_I32(a, x, y) TWO(a, y, "vpaddd")
#define MULTIPLY_I16(a, x, y) TWO(a, x, "vpmullw")
#define ADD_I16(a, x, y) TWO(a, y, "vpaddw")
/* x86 multiplies no bytes lane by lane; this is the multiply and add on bytes it has: 32 products, summed in
 * pairs. */
#define MULTIPLY_I8(a, x, y) TWO(a, x, "vpmaddubsw")
#define ADD_I8(a, x, y) TWO(a, y, "vpaddw")
/* 32 multiplications; 16 additions to 16-bit pairs, 8 to 32-bit fours (the products by one don't count), 8 to
 * the sum. */
#define STEP_DOT(a, x, y)                                                                                    \
    do {                                                                                                     \
        __m256i t;                                                                                           \
        __asm__ volatile("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"                 \
                         : "+x"(a), "=&x"(t)                                                                 \
                         : "x"(x), "x"(y), "x"(_mm256_set1_epi16(1)));                                       \
    } while (0);

DEFINE_KERNEL(dp, __m256d, 12, FMA_F64, NOTHING)
DEFINE_KERNEL(fp32, __m256, 12, FMA_F32, NOTHING)
DEFINE_KERNEL(sp, __m256i, 12, MULTIPLY_I32, ADD_I32)
DEFINE_KERNEL(hp, __m256i, 12, MULTIPLY_I16, ADD_I16)
DEFINE_KERNEL(qp, __m256i, 12, MULTIPLY_I8, ADD_I8)
DEFINE_KERNEL(qpdot, __m256i, 8, STEP_DOT, NOTHING)

const struct kernel kernels_avx2[] = {
    {"DP", ISA_AVX2, ISA_FEATURE_NONE, "vfmadd213pd", RULE_CHAIN_F64, 32, 12, 8, 1, dp},
    {"FP32", ISA_AVX2, ISA_FEATURE_NONE, "vfmadd213ps", RULE_CHAIN_F32, 32, 12, 16, 1, fp32},
    {"SP", ISA_AVX2, ISA_FEATURE_NONE, "vpmulld + vpaddd", RULE_CHAIN_I32, 32, 12, 16, 2, sp},
    {"HP", ISA_AVX2, ISA_FEATURE_NONE, "vpmullw + vpaddw", RULE_CHAIN_I16, 32, 12, 32, 2, hp},
    {"QP", ISA_AVX2, ISA_FEATURE_NONE, "vpmaddubsw + vpaddw", RULE_PAIRS, 32, 12, 64, 2, qp},
    {"QPDOT", ISA_AVX2, ISA_FEATURE_NONE, "vpmaddubsw + vpmaddwd + vpaddd", RULE_DOT_US, 32, 8, 64, 3, qpdot},
    {0},
};
