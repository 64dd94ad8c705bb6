/* Sizes of the caches, as the kernel reports them. In a virtual machine they may not be what the
 * hardware gives. */
#ifndef PEAKMARK_MEMORY_CACHE_H
#define PEAKMARK_MEMORY_CACHE_H

#include <stdint.h>

#include "common/place.h"

/*
 * Bytes of last-level cache that the CPUs of the list reach: each distinct cache counts once. 0 if
 * unknown. `system` is /sys/devices/system/cpu.
 */
uint64_t cache_last_level(const char *system, const struct cpu_list *cpus);

#define CACHE_LEVELS_MAX 4

/* The caches of a CPU that hold data, first level first; each is larger than the one before. */
struct cache_levels {
    int count;
    int level[CACHE_LEVELS_MAX];
    uint64_t bytes[CACHE_LEVELS_MAX];
};

/* count is 0 where the system tells no sizes. */
void cache_read(const char *system, int cpu, struct cache_levels *caches);

#endif
