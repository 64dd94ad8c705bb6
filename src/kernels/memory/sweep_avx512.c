/* AVX-512: a whole cache line per load, multiply-add and store. */
#include <immintrin.h>
#include <stdint.h>

/* Stored and added without a sign: sums wrap around, and the compiler's own reduction adds signed
 * numbers. */
static uint64_t sum_words(__m512i v) {
    _Alignas(64) uint64_t word[8];
    _mm512_store_si512(word, v);
    return word[0] + word[1] + word[2] + word[3] + word[4] + word[5] + word[6] + word[7];
}

#define VECTOR __m512i
#define SPLAT(value) _mm512_set1_epi64((long long)(value))
#define ADD_ONE(v) v = _mm512_add_epi64(v, SPLAT(1))
#define AT(p) (*(__m512i *)(p))
#define AT_CONST(p) (*(const __m512i *)(p))
#define READ_LINE(a, b, c, d, p) __asm__ volatile("vpaddq %1, %0, %0" : "+v"(a) : "m"(AT_CONST(p)))
#define STORE(INSTRUCTION, p, v) __asm__ volatile(INSTRUCTION " %1, %0" : "=m"(AT(p)) : "v"(v))
#define COPY_WITH(INSTRUCTION, q, p)                                                               \
    do {                                                                                           \
        __m512i t;                                                                                 \
        __asm__ volatile("vmovdqa64 %1, %0" : "=v"(t) : "m"(AT_CONST(p)));                         \
        STORE(INSTRUCTION, q, t);                                                                  \
    } while (0)
#define DOUBLES __m512d
#define SPLAT_DOUBLE(value) _mm512_set1_pd(value)
#define TRIAD_WITH(INSTRUCTION, q, p, r, f)                                                        \
    do {                                                                                           \
        __m512d t;                                                                                 \
        __asm__ volatile("vmovapd %1, %0" : "=v"(t) : "m"(AT_CONST(r)));                           \
        __asm__ volatile("vfmadd213pd %2, %1, %0" : "+v"(t) : "v"(f), "m"(AT_CONST(p)));           \
        STORE(INSTRUCTION, q, t);                                                                  \
    } while (0)
#define WRITE_LINE(p, v) STORE("vmovdqa64", p, v)
#define STREAM_LINE(p, v) STORE("vmovntdq", p, v)
#define COPY_LINE(q, p) COPY_WITH("vmovdqa64", q, p)
#define STREAM_COPY_LINE(q, p) COPY_WITH("vmovntdq", q, p)
#define TRIAD_LINE(q, p, r, f) TRIAD_WITH("vmovapd", q, p, r, f)
#define STREAM_TRIAD_LINE(q, p, r, f) TRIAD_WITH("vmovntpd", q, p, r, f)
#define FENCE _mm_sfence()
#define SUM(v) sum_words(v)

#include "memory/sweep.inc"

const struct sweeper sweeper_avx512 = {
    .isa = ISA_AVX512,
    .instruction = "vpaddq, vmovdqa64, vmovntdq (64 B)",
    .triad_instruction = "vfmadd213pd (64 B), vmovapd, vmovntpd",
    .read = sweep_read,
    .write = sweep_write,
    .copy = sweep_copy,
    .triad = sweep_triad,
    .write_streaming = sweep_write_streaming,
    .copy_streaming = sweep_copy_streaming,
    .triad_streaming = sweep_triad_streaming,
};
