/* NEON: pairs of 16-byte registers (ldp, stp); stnp hints that the data will not be reused. */
#include <arm_neon.h>

#define VECTOR uint64x2_t
#define SPLAT(value) vdupq_n_u64(value)
#define ADD_ONE(v) v = vaddq_u64(v, SPLAT(1))
#define LOAD_PAIR(t, u, p, AT)                                                                     \
    __asm__ volatile("ldp %q0, %q1, [%2, " AT "]" : "=w"(t), "=w"(u) : "r"(p) : "memory")
#define STORE_PAIR(INSTRUCTION, t, u, p, AT)                                                       \
    __asm__ volatile(INSTRUCTION " %q0, %q1, [%2, " AT "]" : : "w"(t), "w"(u), "r"(p) : "memory")
/* One piece: left to the compiler, the additions gather behind the loads of a whole group, and
 * registers run out. */
#define READ_LINE(a, b, c, d, p)                                                                   \
    do {                                                                                           \
        uint64x2_t t0, t1, t2, t3;                                                                 \
        __asm__ volatile("ldp %q4, %q5, [%8]\n\tldp %q6, %q7, [%8, #32]\n\t"                       \
                         "add %0.2d, %0.2d, %4.2d\n\tadd %1.2d, %1.2d, %5.2d\n\t"                  \
                         "add %2.2d, %2.2d, %6.2d\n\tadd %3.2d, %3.2d, %7.2d"                      \
                         : "+w"(a), "+w"(b), "+w"(c), "+w"(d), "=&w"(t0), "=&w"(t1), "=&w"(t2),    \
                           "=&w"(t3)                                                               \
                         : "r"(p)                                                                  \
                         : "memory");                                                              \
    } while (0)
#define WRITE_WITH(INSTRUCTION, p, v)                                                              \
    STORE_PAIR(INSTRUCTION, v, v, p, "#0");                                                        \
    STORE_PAIR(INSTRUCTION, v, v, p, "#32")
#define COPY_WITH(INSTRUCTION, q, p)                                                               \
    do {                                                                                           \
        uint64x2_t t0, t1, t2, t3;                                                                 \
        LOAD_PAIR(t0, t1, p, "#0");                                                                \
        LOAD_PAIR(t2, t3, p, "#32");                                                               \
        STORE_PAIR(INSTRUCTION, t0, t1, q, "#0");                                                  \
        STORE_PAIR(INSTRUCTION, t2, t3, q, "#32");                                                 \
    } while (0)
#define DOUBLES float64x2_t
#define SPLAT_DOUBLE(value) vdupq_n_f64(value)
#define ADD_SCALED(t, u, f) __asm__ volatile("fmla %0.2d, %1.2d, %2.2d" : "+w"(t) : "w"(u), "w"(f))
#define TRIAD_PAIR(INSTRUCTION, q, p, r, f, AT)                                                    \
    do {                                                                                           \
        float64x2_t t0, t1, u0, u1;                                                                \
        LOAD_PAIR(t0, t1, p, AT);                                                                  \
        LOAD_PAIR(u0, u1, r, AT);                                                                  \
        ADD_SCALED(t0, u0, f);                                                                     \
        ADD_SCALED(t1, u1, f);                                                                     \
        STORE_PAIR(INSTRUCTION, t0, t1, q, AT);                                                    \
    } while (0)
#define TRIAD_WITH(INSTRUCTION, q, p, r, f)                                                        \
    TRIAD_PAIR(INSTRUCTION, q, p, r, f, "#0");                                                     \
    TRIAD_PAIR(INSTRUCTION, q, p, r, f, "#32")
#define WRITE_LINE(p, v) WRITE_WITH("stp", p, v)
#define STREAM_LINE(p, v) WRITE_WITH("stnp", p, v)
#define COPY_LINE(q, p) COPY_WITH("stp", q, p)
#define STREAM_COPY_LINE(q, p) COPY_WITH("stnp", q, p)
#define TRIAD_LINE(q, p, r, f) TRIAD_WITH("stp", q, p, r, f)
#define STREAM_TRIAD_LINE(q, p, r, f) TRIAD_WITH("stnp", q, p, r, f)
#define FENCE __asm__ volatile("dmb ish" ::: "memory")
#define SUM(v) (vgetq_lane_u64(v, 0) + vgetq_lane_u64(v, 1))

#include "memory/sweep.inc"

const struct sweeper sweeper_neon = {
    .isa = ISA_NEON,
    .instruction = "ldp, stp, stnp (32 B)",
    .triad_instruction = "fmla (16 B), ldp, stp, stnp",
    .read = sweep_read,
    .write = sweep_write,
    .copy = sweep_copy,
    .triad = sweep_triad,
    .write_streaming = sweep_write_streaming,
    .copy_streaming = sweep_copy_streaming,
    .triad_streaming = sweep_triad_streaming,
};
