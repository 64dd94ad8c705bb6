/*
 * SSE2, the least that every x86-64 CPU has. It lacks a fused multiply-add, a 32-bit low
 * multiplication and any byte multiplication; those are put together from what is there, and only
 * the workload's own operations count.
 */
#include <emmintrin.h>

#include "cpu/kernel.inc"

#define KEEP(a) __asm__ volatile("" : "+x"(a))
#define TWO(a, b, INSTRUCTION) __asm__ volatile(INSTRUCTION " %1, %0" : "+x"(a) : "x"(b));
#define MULTIPLY_F64(a, x, y) TWO(a, x, "mulpd")
#define ADD_F64(a, x, y) TWO(a, y, "addpd")
#define MULTIPLY_F32(a, x, y) TWO(a, x, "mulps")
#define ADD_F32(a, x, y) TWO(a, y, "addps")
#define MULTIPLY_I16(a, x, y) TWO(a, x, "pmullw")
#define ADD_I16(a, x, y) TWO(a, y, "paddw")

/* Lanes 0 and 2, then 1 and 3, as 32 x 32 -> 64 bits; the low halves are put side by side. */
static inline __m128i multiply_add_i32(__m128i a, __m128i x, __m128i y) {
    __m128i even = _mm_mul_epu32(a, x);
    __m128i odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(x, 32));
    __m128i low = _mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x08), _mm_shuffle_epi32(odd, 0x08));
    return _mm_add_epi32(low, y);
}

/*
 * The low byte of a word product depends on the low bytes only; a high byte alone gives its product
 * in place.
 */
static inline __m128i multiply_add_i8(__m128i a, __m128i x, __m128i y) {
    const __m128i low_bytes = _mm_set1_epi16(0x00ff);
    __m128i even = _mm_and_si128(_mm_mullo_epi16(a, x), low_bytes);
    __m128i odd = _mm_mullo_epi16(_mm_andnot_si128(low_bytes, a), _mm_srli_epi16(x, 8));
    return _mm_add_epi8(_mm_or_si128(even, odd), y);
}

/* Bytes are widened to words (x without, y with sign) and multiplied in pairs. */
static inline __m128i dot(__m128i a, __m128i x, __m128i y) {
    __m128i even = _mm_madd_epi16(_mm_and_si128(x, _mm_set1_epi16(0x00ff)),
                                  _mm_srai_epi16(_mm_slli_epi16(y, 8), 8));
    __m128i odd = _mm_madd_epi16(_mm_srli_epi16(x, 8), _mm_srai_epi16(y, 8));
    return _mm_add_epi32(a, _mm_add_epi32(even, odd));
}

#define STEP_I32(a, x, y)                                                                          \
    a = multiply_add_i32(a, x, y);                                                                 \
    KEEP(a);
#define STEP_I8(a, x, y)                                                                           \
    a = multiply_add_i8(a, x, y);                                                                  \
    KEEP(a);
#define STEP_DOT(a, x, y)                                                                          \
    KEEP(x);                                                                                       \
    a = dot(a, x, y);                                                                              \
    KEEP(a);

DEFINE_KERNEL(dp, __m128d, 12, MULTIPLY_F64, ADD_F64)
DEFINE_KERNEL(fp32, __m128, 12, MULTIPLY_F32, ADD_F32)
DEFINE_KERNEL(sp, __m128i, 4, STEP_I32, NOTHING)
DEFINE_KERNEL(hp, __m128i, 12, MULTIPLY_I16, ADD_I16)
DEFINE_KERNEL(qp, __m128i, 4, STEP_I8, NOTHING)
DEFINE_KERNEL(qpdot, __m128i, 4, STEP_DOT, NOTHING)

const struct kernel kernels_sse2[] = {
    {"DP", ISA_SSE2, ISA_FEATURE_NONE, "mulpd + addpd", RULE_CHAIN_F64, 16, 12, 4, 2, dp, dp_paced},
    {"FP32", ISA_SSE2, ISA_FEATURE_NONE, "mulps + addps", RULE_CHAIN_F32, 16, 12, 8, 2, fp32,
     fp32_paced},
    /* A multiplication and an addition already are a mix. */
    {"DPMIX", ISA_SSE2, ISA_FEATURE_NONE, "mulpd + addpd", RULE_CHAIN_F64, 16, 12, 4, 2, dp,
     dp_paced},
    {"FP32MIX", ISA_SSE2, ISA_FEATURE_NONE, "mulps + addps", RULE_CHAIN_F32, 16, 12, 8, 2, fp32,
     fp32_paced},
    {"SP", ISA_SSE2, ISA_FEATURE_NONE, "2 pmuludq, 4 shifts and shuffles, paddd", RULE_CHAIN_I32,
     16, 4, 8, 7, sp, sp_paced},
    {"HP", ISA_SSE2, ISA_FEATURE_NONE, "pmullw + paddw", RULE_CHAIN_I16, 16, 12, 16, 2, hp,
     hp_paced},
    {"QP", ISA_SSE2, ISA_FEATURE_NONE, "2 pmullw, 3 masks, paddb", RULE_CHAIN_I8, 16, 4, 32, 6, qp,
     qp_paced},
    {"QPDOT", ISA_SSE2, ISA_FEATURE_NONE, "2 pmaddwd on widened bytes, 2 paddd", RULE_DOT_US, 16, 4,
     32, 6, qpdot, qpdot_paced},
    {0},
};
