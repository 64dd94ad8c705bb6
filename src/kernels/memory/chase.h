/*
 * Latency of dependent loads: pointers, `stride` bytes apart, linked to a single random cycle over
 * the whole area (Sattolo 1986), so that no prefetcher can guess the next one and no load can start
 * before the last has ended.
 *
 * The stride decides what an area larger than a cache shows. 8 bytes: each line is visited eight
 * times a lap at random moments, so a cache of half the area serves half of the loads; this is a
 * random access in the area, as pmbw's PermRead64 does it. 64 bytes: each line is visited once a
 * lap, so a least-recently-used cache serves none; this is the latency of the next level alone, as
 * lmbench does it.
 */
#ifndef PEAKMARK_MEMORY_CHASE_H
#define PEAKMARK_MEMORY_CHASE_H

#include <stddef.h>
#include <stdint.h>

#include "common/random.h"

struct chase {
    unsigned char *area;
    size_t stride;  /* bytes */
    uint64_t nodes; /* length of the cycle */
    void **at;      /* where the next load reads */
    uint64_t hops;  /* done since chase_link */
};

/* Links bytes / stride pointers, at least 1; stride is a multiple of 8. Touches the whole area. */
void chase_link(struct chase *chase, unsigned char *area, size_t bytes, size_t stride,
                struct random_state *random);

/* Exactly `hops` dependent loads. */
void chase_run(struct chase *chase, uint64_t hops);

/* NULL when the position is where chase->hops hops along an unbroken cycle lead to, else a
 * sentence. */
const char *chase_verify(const struct chase *chase);

#endif
