/*
 * A sweep goes over blocks of memory and reads, writes, copies or adds each from its first to its
 * last byte. The loops over blocks and repeats lie inside the kernel of the instruction set: at 1
 * KiB in the first-level cache a block takes 16 cycles, so nothing may be called per block.
 */
#ifndef PEAKMARK_MEMORY_SWEEP_H
#define PEAKMARK_MEMORY_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "common/isa.h"

#define LINE_BYTES 64
#define SWEEP_GROUP                                                                                \
    512 /* bytes of one turn of the inner loop; the rest of a block goes line by line */

/*
 * Visits `count` blocks. Visit i is to block number order[first + i], or first + i when order is
 * NULL; a block begins at number * stride. stride 0: every visit is to the same block.
 */
struct sweep {
    const unsigned char *source; /* read, copy, triad; aligned to LINE_BYTES */
    const unsigned char *scaled; /* triad: doubles, times factor; aligned to LINE_BYTES */
    unsigned char *target;       /* write, copy, triad; aligned to LINE_BYTES */
    size_t block;                /* bytes, a multiple of LINE_BYTES */
    size_t stride;
    const uint32_t *order;
    uint64_t first;
    uint64_t count;
    uint64_t value; /* write: visit i stores value + i in every 64-bit word */
    double factor;  /* triad: target = source + factor * scaled */
};

/* Read: sum of all 64-bit words read, each time they are read. Write, copy and triad: 0. */
typedef uint64_t sweep_function(const struct sweep *sweep);

struct sweeper {
    enum isa isa;
    const char *instruction;       /* loads and stores it is made of */
    const char *triad_instruction; /* arithmetic, then loads and stores, of the triad */
    sweep_function *read;
    sweep_function *write;
    sweep_function *copy;
    sweep_function *triad;
    sweep_function
        *write_streaming; /* non-temporal stores: around the caches; NULL where there are none */
    sweep_function *copy_streaming;
    sweep_function *triad_streaming;
};

extern const struct sweeper sweeper_scalar, sweeper_sse2, sweeper_avx2, sweeper_avx512,
    sweeper_neon;

/* All of this architecture, best first, NULL-terminated. */
extern const struct sweeper *const sweepers[];

/* What one read of this area sums up to. */
uint64_t sweep_sum(const unsigned char *area, size_t bytes);

/*
 * The same blocks in the same order by the C library: memcpy, and memset with the lowest byte of
 * the value.
 */
sweep_function sweep_copy_libc, sweep_write_libc;

/* Best sweeper of this CPU for isa (ISA_COUNT: any); NULL when it has none. */
const struct sweeper *sweeper_find(enum isa isa);

#endif
