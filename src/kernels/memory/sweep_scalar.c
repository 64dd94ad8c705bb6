/* Plain C on 64-bit words and doubles, compiled without vectorisation (the Makefile's flags for
 * *_scalar.c). */
#include <stdint.h>

#define VECTOR uint64_t
#define SPLAT(value) ((uint64_t)(value))
#define ADD_ONE(v) v = v + 1
#define WORD(p, i) (((volatile uint64_t *)(p))[i])
#define WORD_CONST(p, i) (((const volatile uint64_t *)(p))[i])
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
#define WRITE_LINE(p, v)                                                                           \
    WORD(p, 0) = v;                                                                                \
    WORD(p, 1) = v;                                                                                \
    WORD(p, 2) = v;                                                                                \
    WORD(p, 3) = v;                                                                                \
    WORD(p, 4) = v;                                                                                \
    WORD(p, 5) = v;                                                                                \
    WORD(p, 6) = v;                                                                                \
    WORD(p, 7) = v
#define COPY_LINE(q, p)                                                                            \
    WORD(q, 0) = WORD_CONST(p, 0);                                                                 \
    WORD(q, 1) = WORD_CONST(p, 1);                                                                 \
    WORD(q, 2) = WORD_CONST(p, 2);                                                                 \
    WORD(q, 3) = WORD_CONST(p, 3);                                                                 \
    WORD(q, 4) = WORD_CONST(p, 4);                                                                 \
    WORD(q, 5) = WORD_CONST(p, 5);                                                                 \
    WORD(q, 6) = WORD_CONST(p, 6);                                                                 \
    WORD(q, 7) = WORD_CONST(p, 7)
#define DOUBLES double
#define SPLAT_DOUBLE(value) (value)
#define DOUBLE(p, i) (((volatile double *)(void *)(p))[i])
#define DOUBLE_CONST(p, i) (((const volatile double *)(const void *)(p))[i])
#define TRIAD_8(q, p, r, f, i) DOUBLE(q, i) = DOUBLE_CONST(p, i) + (f)*DOUBLE_CONST(r, i)
#define TRIAD_LINE(q, p, r, f)                                                                     \
    TRIAD_8(q, p, r, f, 0);                                                                        \
    TRIAD_8(q, p, r, f, 1);                                                                        \
    TRIAD_8(q, p, r, f, 2);                                                                        \
    TRIAD_8(q, p, r, f, 3);                                                                        \
    TRIAD_8(q, p, r, f, 4);                                                                        \
    TRIAD_8(q, p, r, f, 5);                                                                        \
    TRIAD_8(q, p, r, f, 6);                                                                        \
    TRIAD_8(q, p, r, f, 7)
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
