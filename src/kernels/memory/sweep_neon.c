/* NEON: pairs of 16-byte registers (ldp, stp); stnp tells that the data will not be used again. */
#include <arm_neon.h>

#define VECTOR uint64x2_t
#define SPLAT(value) vdupq_n_u64(value)
#define ADD_ONE(v) v = vaddq_u64(v, SPLAT(1))
#define LOAD_PAIR(t, u, p, AT)                                                                               \
    __asm__ volatile("ldp %q0, %q1, [%2, " AT "]" : "=w"(t), "=w"(u) : "r"(p) : "memory")
#define STORE_PAIR(INSTRUCTION, t, u, p, AT)                                                                 \
    __asm__ volatile(INSTRUCTION " %q0, %q1, [%2, " AT "]" : : "w"(t), "w"(u), "r"(p) : "memory")
#define READ_LINE(a, b, c, d, p)                                                                             \
    do {                                                                                                     \
        uint64x2_t t0, t1, t2, t3;                                                                           \
        LOAD_PAIR(t0, t1, p, "#0");                                                                          \
        LOAD_PAIR(t2, t3, p, "#32");                                                                         \
        a = vaddq_u64(a, t0);                                                                                \
        b = vaddq_u64(b, t1);                                                                                \
        c = vaddq_u64(c, t2);                                                                                \
        d = vaddq_u64(d, t3);                                                                                \
    } while (0)
#define WRITE_WITH(INSTRUCTION, p, v)                                                                        \
    STORE_PAIR(INSTRUCTION, v, v, p, "#0");                                                                  \
    STORE_PAIR(INSTRUCTION, v, v, p, "#32")
#define COPY_WITH(INSTRUCTION, q, p)                                                                         \
    do {                                                                                                     \
        uint64x2_t t0, t1, t2, t3;                                                                           \
        LOAD_PAIR(t0, t1, p, "#0");                                                                          \
        LOAD_PAIR(t2, t3, p, "#32");                                                                         \
        STORE_PAIR(INSTRUCTION, t0, t1, q, "#0");                                                            \
        STORE_PAIR(INSTRUCTION, t2, t3, q, "#32");                                                           \
    } while (0)
#define WRITE_LINE(p, v) WRITE_WITH("stp", p, v)
#define STREAM_LINE(p, v) WRITE_WITH("stnp", p, v)
#define COPY_LINE(q, p) COPY_WITH("stp", q, p)
#define STREAM_COPY_LINE(q, p) COPY_WITH("stnp", q, p)
#define FENCE __asm__ volatile("dmb ish" ::: "memory")
#define SUM(v) (vgetq_lane_u64(v, 0) + vgetq_lane_u64(v, 1))

#include "sweep.inc"

const struct sweeper sweeper_neon = {
    .isa = ISA_NEON,
    .instruction = "ldp, stp, stnp (32 B)",
    .read = sweep_read,
    .write = sweep_write,
    .copy = sweep_copy,
    .write_streaming = sweep_write_streaming,
    .copy_streaming = sweep_copy_streaming,
};
