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

#endif
