/* Where CPUs sit, from the system's files: to tell how far two of them lie apart. */
#ifndef PEAKMARK_TOPOLOGY_H
#define PEAKMARK_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>

struct cpu_list;

#define SYSTEM_CPU "/sys/devices/system/cpu"

/* The first line of system/cpuN/name, such as "cache/index0/level". False without one. */
bool topology_text(const char *system, int cpu, const char *name, char *text, size_t capacity);

/* The number with which that line begins, such as the first CPU of a list; `otherwise` without one
 * and below 0. */
int topology_number(const char *system, int cpu, const char *name, int otherwise);

/* Core, last-level cache, NUMA node and socket by the lowest number of a CPU in them, the node by
 * its own. What the system does not tell is the CPU's alone, or 0 for node and socket. */
struct cpu_location {
    int cpu, core, cache, node, socket;
};

/* How far two CPUs lie apart, nearest first. */
enum distance {
    DISTANCE_CORE,
    DISTANCE_CACHE,
    DISTANCE_NODE,
    DISTANCE_SOCKET,
    DISTANCE_OTHER,
    DISTANCES
};

/* same-core, same-cache, same-node, same-socket, other-socket */
extern const char *const distance_names[DISTANCES];

/* The locations of `cpus`, neighbours beside each other: by socket, node, cache, core and number.
 * `system` is the folder of CPU facts, /sys/devices/system/cpu. */
void topology_locate(const char *system, const struct cpu_list *cpus,
                     struct cpu_location *locations);

enum distance topology_distance(const struct cpu_location *a, const struct cpu_location *b);

#endif
