/* AVX2: 32-byte loads, added as they come, 32-byte multiply-adds and stores. */
#include <immintrin.h>

#define VECTOR __m256i
#define SPLAT(value) _mm256_set1_epi64x((long long)(value))
#define ADD_ONE(v) v = _mm256_add_epi64(v, SPLAT(1))
#define AT(p) (*(__m256i *)(p))
#define AT_CONST(p) (*(const __m256i *)(p))
#define ADD(a, p) __asm__ volatile("vpaddq %1, %0, %0" : "+x"(a) : "m"(AT_CONST(p)))
#define READ_LINE(a, b, c, d, p)                                                                   \
    ADD(a, p);                                                                                     \
    ADD(b, (p) + 32)
#define STORE(INSTRUCTION, p, v) __asm__ volatile(INSTRUCTION " %1, %0" : "=m"(AT(p)) : "x"(v))
#define LOAD(v, p) __asm__ volatile("vmovdqa %1, %0" : "=x"(v) : "m"(AT_CONST(p)))
#define LOAD_DOUBLES(v, p) __asm__ volatile("vmovapd %1, %0" : "=x"(v) : "m"(AT_CONST(p)))
#define WRITE_WITH(INSTRUCTION, p, v)                                                              \
    STORE(INSTRUCTION, p, v);                                                                      \
    STORE(INSTRUCTION, (p) + 32, v)
#define COPY_WITH(INSTRUCTION, q, p)                                                               \
    do {                                                                                           \
        __m256i t0, t1;                                                                            \
        LOAD(t0, p);                                                                               \
        LOAD(t1, (p) + 32);                                                                        \
        STORE(INSTRUCTION, q, t0);                                                                 \
        STORE(INSTRUCTION, (q) + 32, t1);                                                          \
    } while (0)
#define DOUBLES __m256d
#define SPLAT_DOUBLE(value) _mm256_set1_pd(value)
#define ADD_SCALED(t, f, p)                                                                        \
    __asm__ volatile("vfmadd213pd %2, %1, %0" : "+x"(t) : "x"(f), "m"(AT_CONST(p)))
#define TRIAD_WITH(INSTRUCTION, q, p, r, f)                                                        \
    do {                                                                                           \
        __m256d t0, t1;                                                                            \
        LOAD_DOUBLES(t0, r);                                                                       \
        LOAD_DOUBLES(t1, (r) + 32);                                                                \
        ADD_SCALED(t0, f, p);                                                                      \
        ADD_SCALED(t1, f, (p) + 32);                                                               \
        STORE(INSTRUCTION, q, t0);                                                                 \
        STORE(INSTRUCTION, (q) + 32, t1);                                                          \
    } while (0)
#define WRITE_LINE(p, v) WRITE_WITH("vmovdqa", p, v)
#define STREAM_LINE(p, v) WRITE_WITH("vmovntdq", p, v)
#define COPY_LINE(q, p) COPY_WITH("vmovdqa", q, p)
#define STREAM_COPY_LINE(q, p) COPY_WITH("vmovntdq", q, p)
#define TRIAD_LINE(q, p, r, f) TRIAD_WITH("vmovapd", q, p, r, f)
#define STREAM_TRIAD_LINE(q, p, r, f) TRIAD_WITH("vmovntpd", q, p, r, f)
#define FENCE _mm_sfence()

static unsigned long long sum_words(__m256i v) {
    return (unsigned long long)_mm256_extract_epi64(v, 0) +
           (unsigned long long)_mm256_extract_epi64(v, 1) +
           (unsigned long long)_mm256_extract_epi64(v, 2) +
           (unsigned long long)_mm256_extract_epi64(v, 3);
}
#define SUM(v) sum_words(v)

#include "memory/sweep.inc"

const struct sweeper sweeper_avx2 = {
    .isa = ISA_AVX2,
    .instruction = "vpaddq, vmovdqa, vmovntdq (32 B)",
    .triad_instruction = "vfmadd213pd (32 B), vmovapd, vmovntpd",
    .read = sweep_read,
    .write = sweep_write,
    .copy = sweep_copy,
    .triad = sweep_triad,
    .write_streaming = sweep_write_streaming,
    .copy_streaming = sweep_copy_streaming,
    .triad_streaming = sweep_triad_streaming,
};
