/* Plain C on 64-bit words and doubles, compiled without vectorisation (the Makefile's flags for
 * *_scalar.c). */
#include <stdint.h>

/* Each line of a sweep is a function: cppcheck takes 20 s for the same statements as a macro. */
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define VECTOR uint64_t
#define SPLAT(value) ((uint64_t)(value))
#define ADD_ONE(v) v = v + 1
/*
 * Without the barrier gcc loads the whole line before it adds, and has too few registers for that.
 */
#define ADD(a, p, i)                                                                               \
    a += ((const uint64_t *)(const void *)(p))[i];                                                 \
    __asm__ volatile("" : "+r"(a))
#define READ_LINE(a, b, c, d, p)                                                                   \
    ADD(a, p, 0);                                                                                  \
    ADD(b, p, 1);                                                                                  \
    ADD(c, p, 2);                                                                                  \
    ADD(d, p, 3);                                                                                  \
    ADD(a, p, 4);                                                                                  \
    ADD(b, p, 5);                                                                                  \
    ADD(c, p, 6);                                                                                  \
    ADD(d, p, 7)
#define DOUBLES double
#define SPLAT_DOUBLE(value) (value)
#define WRITE_LINE write_line
#define COPY_LINE copy_line
#define TRIAD_LINE triad_line

static ALWAYS_INLINE void write_line(void *to, uint64_t value) {
    volatile uint64_t *q = to;
    q[0] = value;
    q[1] = value;
    q[2] = value;
    q[3] = value;
    q[4] = value;
    q[5] = value;
    q[6] = value;
    q[7] = value;
}

static ALWAYS_INLINE void copy_line(void *to, const void *from) {
    volatile uint64_t *q = to;
    const volatile uint64_t *p = from;
    q[0] = p[0];
    q[1] = p[1];
    q[2] = p[2];
    q[3] = p[3];
    q[4] = p[4];
    q[5] = p[5];
    q[6] = p[6];
    q[7] = p[7];
}

static ALWAYS_INLINE void triad_line(void *to, const void *from, const void *scaled, double f) {
    volatile double *q = to;
    const volatile double *p = from, *r = scaled;
    q[0] = p[0] + f * r[0];
    q[1] = p[1] + f * r[1];
    q[2] = p[2] + f * r[2];
    q[3] = p[3] + f * r[3];
    q[4] = p[4] + f * r[4];
    q[5] = p[5] + f * r[5];
    q[6] = p[6] + f * r[6];
    q[7] = p[7] + f * r[7];
}

#define SUM(v) (v)

#include "memory/sweep.inc"

const struct sweeper sweeper_scalar = {
    .isa = ISA_SCALAR,
    .instruction = "C: uint64_t loads and stores (8 B)",
    .triad_instruction = "C: double multiplication and addition (8 B)",
    .read = sweep_read,
    .write = sweep_write,
    .copy = sweep_copy,
    .triad = sweep_triad,
};
