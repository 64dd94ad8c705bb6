/* AVX2: 32-byte loads, added as they come, and 32-byte stores. */
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
#define WRITE_LINE(p, v) WRITE_WITH("vmovdqa", p, v)
#define STREAM_LINE(p, v) WRITE_WITH("vmovntdq", p, v)
#define COPY_LINE(q, p) COPY_WITH("vmovdqa", q, p)
#define STREAM_COPY_LINE(q, p) COPY_WITH("vmovntdq", q, p)
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
    .read = sweep_read,
    .write = sweep_write,
    .copy = sweep_copy,
    .write_streaming = sweep_write_streaming,
    .copy_streaming = sweep_copy_streaming,
};
