/* SSE2: 16-byte loads, multiplications, additions and stores. */
#include <emmintrin.h>

#define VECTOR __m128i
#define SPLAT(value) _mm_set1_epi64x((long long)(value))
#define ADD_ONE(v) v = _mm_add_epi64(v, SPLAT(1))
#define AT(p) (*(__m128i *)(p))
#define AT_CONST(p) (*(const __m128i *)(p))
#define ADD(a, p) __asm__ volatile("paddq %1, %0" : "+x"(a) : "m"(AT_CONST(p)))
#define READ_LINE(a, b, c, d, p)                                                                   \
    ADD(a, p);                                                                                     \
    ADD(b, (p) + 16);                                                                              \
    ADD(c, (p) + 32);                                                                              \
    ADD(d, (p) + 48)
#define STORE(INSTRUCTION, p, v) __asm__ volatile(INSTRUCTION " %1, %0" : "=m"(AT(p)) : "x"(v))
#define WRITE_WITH(INSTRUCTION, p, v)                                                              \
    STORE(INSTRUCTION, p, v);                                                                      \
    STORE(INSTRUCTION, (p) + 16, v);                                                               \
    STORE(INSTRUCTION, (p) + 32, v);                                                               \
    STORE(INSTRUCTION, (p) + 48, v)
#define COPY_16(INSTRUCTION, q, p)                                                                 \
    do {                                                                                           \
        __m128i t;                                                                                 \
        __asm__ volatile("movdqa %1, %0" : "=x"(t) : "m"(AT_CONST(p)));                            \
        STORE(INSTRUCTION, q, t);                                                                  \
    } while (0)
#define COPY_WITH(INSTRUCTION, q, p)                                                               \
    COPY_16(INSTRUCTION, q, p);                                                                    \
    COPY_16(INSTRUCTION, (q) + 16, (p) + 16);                                                      \
    COPY_16(INSTRUCTION, (q) + 32, (p) + 32);                                                      \
    COPY_16(INSTRUCTION, (q) + 48, (p) + 48)
#define DOUBLES __m128d
#define SPLAT_DOUBLE(value) _mm_set1_pd(value)
#define TRIAD_16(INSTRUCTION, q, p, r, f)                                                          \
    do {                                                                                           \
        __m128d t;                                                                                 \
        __asm__ volatile("movapd %1, %0" : "=x"(t) : "m"(AT_CONST(r)));                            \
        __asm__ volatile("mulpd %1, %0" : "+x"(t) : "x"(f));                                       \
        __asm__ volatile("addpd %1, %0" : "+x"(t) : "m"(AT_CONST(p)));                             \
        STORE(INSTRUCTION, q, t);                                                                  \
    } while (0)
#define TRIAD_WITH(INSTRUCTION, q, p, r, f)                                                        \
    TRIAD_16(INSTRUCTION, q, p, r, f);                                                             \
    TRIAD_16(INSTRUCTION, (q) + 16, (p) + 16, (r) + 16, f);                                        \
    TRIAD_16(INSTRUCTION, (q) + 32, (p) + 32, (r) + 32, f);                                        \
    TRIAD_16(INSTRUCTION, (q) + 48, (p) + 48, (r) + 48, f)
#define WRITE_LINE(p, v) WRITE_WITH("movdqa", p, v)
#define STREAM_LINE(p, v) WRITE_WITH("movntdq", p, v)
#define COPY_LINE(q, p) COPY_WITH("movdqa", q, p)
#define STREAM_COPY_LINE(q, p) COPY_WITH("movntdq", q, p)
#define TRIAD_LINE(q, p, r, f) TRIAD_WITH("movapd", q, p, r, f)
#define STREAM_TRIAD_LINE(q, p, r, f) TRIAD_WITH("movntpd", q, p, r, f)
#define FENCE _mm_sfence()
#define SUM(v)                                                                                     \
    ((uint64_t)_mm_cvtsi128_si64(v) + (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v)))

#include "memory/sweep.inc"

const struct sweeper sweeper_sse2 = {
    .isa = ISA_SSE2,
    .instruction = "paddq, movdqa, movntdq (16 B)",
    .triad_instruction = "mulpd, addpd (16 B), movapd, movntpd",
    .read = sweep_read,
    .write = sweep_write,
    .copy = sweep_copy,
    .triad = sweep_triad,
    .write_streaming = sweep_write_streaming,
    .copy_streaming = sweep_copy_streaming,
    .triad_streaming = sweep_triad_streaming,
};
