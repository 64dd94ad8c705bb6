/* Which CPUs may be used and in which order, and pinning a thread to one. */
#ifndef PEAKMARK_PLACE_H
#define PEAKMARK_PLACE_H

#include <stdbool.h>

struct warnings;

#define CPU_LIST_MAX 8192

/* CPUs by their numbers in the operating system, in the order in which threads take them. */
struct cpu_list {
    int count;
    int cpu[CPU_LIST_MAX];
};

bool cpu_list_has(const struct cpu_list *list, int cpu);

/* The CPUs this process may run on (affinity mask, which holds the cgroup's limit too), ascending.
 * False: errno. */
bool place_allowed(struct cpu_list *allowed);

/*
 * Orders CPUs so that the first hardware thread of each physical core comes first, then the second
 * of each,
 * ... Within a round one socket and die comes after the other, each in the order of `cpus`.
 * `system` is the folder of CPU facts, /sys/devices/system/cpu; a CPU without topology counts as a
 * separate core.
 */
void place_order(const char *system, const struct cpu_list *cpus, struct cpu_list *ordered);

/*
 * The CPU of each of `threads` threads: chosen->count == threads. With `wanted` empty those
 * allowed, in place_order's order; else exactly the wanted ones in their order. More threads than
 * CPUs: they wrap around, with a warning. A wanted CPU that is not allowed ends the program (exit
 * 2).
 */
void place_choose(const struct cpu_list *wanted, int threads, struct cpu_list *chosen,
                  struct warnings *warnings);

/* Pins the calling thread. Returns 0 or an errno value. */
int place_pin(int cpu);

/* Lets the calling thread move among these CPUs. Returns 0 or an errno value. */
int place_pin_to_any(const struct cpu_list *cpus);

#endif
