/* How long a cache line takes from core to core: half a round trip between two pinned threads. */
#ifndef PEAKMARK_MEMORY_C2C_H
#define PEAKMARK_MEMORY_C2C_H

#include <stdbool.h>

#include "common/topology.h"

#define C2C_ALL_CPUS 64 /* up to so many CPUs, every pair is measured */
#define C2C_SAMPLE 128  /* beyond it, so many pairs of each distance */

/* Two CPUs by their places in the list of locations. */
struct c2c_pair {
    int first, second;
    enum distance distance;
    int samples;
    double seconds; /* measured: one way, the median of the samples */
};

/*
 * The pairs to measure, each with the lower place first: all of them, or a random sample that is
 * the same in each run. Returns their number; *pairs is the caller's to free, NULL without memory.
 */
int c2c_choose(const struct cpu_location *locations, int count, bool all, struct c2c_pair **pairs);

#endif
