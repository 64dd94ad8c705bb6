/*
 * Latency of dependent loads: one pointer per cache line, linked to a single random cycle over the whole area
 * (Sattolo 1986), so that no prefetcher can guess the next line and no load can start before the last has
 * ended.
 */
#ifndef PEAKMARK_MEMORY_CHASE_H
#define PEAKMARK_MEMORY_CHASE_H

#include <stddef.h>
#include <stdint.h>

#include "random.h"

struct chase {
    unsigned char *area;
    uint32_t lines; /* length of the cycle */
    void **at;      /* where the next load reads */
    uint64_t hops;  /* done since chase_link */
};

/* Links the lines of area (aligned to a line; bytes / LINE_BYTES of them, at least 1). Touches the whole
 * area. */
void chase_link(struct chase *chase, unsigned char *area, size_t bytes, struct random_state *random);

/* Exactly `hops` dependent loads. */
void chase_run(struct chase *chase, uint64_t hops);

/*
 * 0 when the links form one cycle over all lines and the position is where chase->hops hops lead to; else a
 * sentence.
 */
const char *chase_verify(const struct chase *chase);

#endif
