/* AVX-512 F, BW, DQ, VL: 32 registers, so 24 accumulators: enough for a latency of 5 on two pipes, and of 10
 * on one. */
#include <immintrin.h>

#include "kernel.inc"

#define FMA_F64(a, x, y) __asm__ volatile("vfmadd213pd %2, %1, %0" : "+v"(a) : "v"(x), "v"(y));
#define FMA_F32(a, x, y) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(a) : "v"(x), "v"(y));
#define TWO(a, b, INSTRUCTION) __asm__ volatile(INSTRUCTION " %1, %0, %0" : "+v"(a) : "v"(b));
#define MULTIPLY_I32(a, x, y) TWO(a, x, "vpmulld")
#define ADD_I32(a, x, y) TWO(a, y, "vpaddd")
#define MULTIPLY_I16(a, x, y) TWO(a, x, "vpmullw")
#define ADD_I16(a, x, y) TWO(a, y, "vpaddw")
#define MULTIPLY_I8(a, x, y) TWO(a, x, "vpmaddubsw")
#define ADD_I8(a, x, y) TWO(a, y, "vpaddw")
#define STEP_DOT(a, x, y)                                                                                    \
    do {                                                                                                     \
        __m512i t;                                                                                           \
        __asm__ volatile("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"                 \
                         : "+v"(a), "=&v"(t)                                                                 \
                         : "v"(x), "v"(y), "v"(_mm512_set1_epi16(1)));                                       \
    } while (0);

DEFINE_KERNEL(dp, __m512d, 24, FMA_F64, NOTHING)
DEFINE_KERNEL(fp32, __m512, 24, FMA_F32, NOTHING)
DEFINE_KERNEL(sp, __m512i, 24, MULTIPLY_I32, ADD_I32)
DEFINE_KERNEL(hp, __m512i, 24, MULTIPLY_I16, ADD_I16)
DEFINE_KERNEL(qp, __m512i, 24, MULTIPLY_I8, ADD_I8)
DEFINE_KERNEL(qpdot, __m512i, 12, STEP_DOT, NOTHING)

const struct kernel kernels_avx512[] = {
    {"DP", ISA_AVX512, ISA_FEATURE_NONE, "vfmadd213pd", RULE_CHAIN_F64, 64, 24, 16, 1, dp},
    {"FP32", ISA_AVX512, ISA_FEATURE_NONE, "vfmadd213ps", RULE_CHAIN_F32, 64, 24, 32, 1, fp32},
    {"SP", ISA_AVX512, ISA_FEATURE_NONE, "vpmulld + vpaddd", RULE_CHAIN_I32, 64, 24, 32, 2, sp},
    {"HP", ISA_AVX512, ISA_FEATURE_NONE, "vpmullw + vpaddw", RULE_CHAIN_I16, 64, 24, 64, 2, hp},
    {"QP", ISA_AVX512, ISA_FEATURE_NONE, "vpmaddubsw + vpaddw", RULE_PAIRS, 64, 24, 128, 2, qp},
    {"QPDOT", ISA_AVX512, ISA_FEATURE_NONE, "vpmaddubsw + vpmaddwd + vpaddd", RULE_DOT_US, 64, 12, 128, 3,
     qpdot},
    {0},
};
