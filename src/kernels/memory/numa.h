/*
 * The matrix of NUMA nodes: the latency (the chase of LAT) or the throughput (the sweeps of RS and
 * WS) from the cores of each node to the memory of each, one pair of nodes at a time. Each node's
 * memory holds one area, bound to it; all cores of a node share it, in the chase the first is
 * alone.
 */
#ifndef PEAKMARK_MEMORY_NUMA_H
#define PEAKMARK_MEMORY_NUMA_H

#include "common/arena.h"
#include "common/team.h"
#include "common/topology.h"
#include "memory/chase.h"
#include "memory/sweep.h"

#define NUMA_NODES 1024              /* the most that Linux knows */
#define NUMA_CHUNK ((size_t)1 << 16) /* bytes between two looks at the clock */

enum numa_place { NUMA_LOCAL, NUMA_SAME_SOCKET, NUMA_OTHER_SOCKET, NUMA_PLACES };

/* local, same-socket, other-socket */
extern const char *const numa_places[NUMA_PLACES];

/* The nodes of the cores, in the order of the locations, and those of the memory, ascending. */
struct numa_map {
    int cores, memories;
    int core[NUMA_NODES], core_socket[NUMA_NODES];
    int memory[NUMA_NODES], memory_socket[NUMA_NODES];
};

/*
 * `system` is /sys/devices/system/cpu, `memories` the nodes whose memory may be used. Memory
 * without CPUs, such as that of CXL, counts to the socket of the nearest node with cores.
 */
void numa_read(const char *system, const struct cpu_location *locations, int count,
               const struct cpu_list *memories, struct numa_map *map);

enum numa_place numa_place_of(const struct numa_map *map, int core, int memory);

struct numa {
    struct numa_map map;
    bool huge_pages;
    size_t bytes;   /* of each area, whole huge pages */
    double seconds; /* of a pair of nodes */
    uint64_t seed;
    sweep_function *sweep; /* NULL: the chase */
    bool writes;
    double *values;    /* result: [core][memory], s a load or B/s */
    size_t huge_bytes; /* result: of all areas */
    struct numa_run *run;
};

/*
 * Measures all pairs on the CPUs of the locations; the caller frees values and the team. False as
 * team_run, also where pages do not lie on the node that they are bound to.
 */
bool numa_run(struct numa *numa, const struct cpu_location *locations, int count, double warmup,
              struct team *team);

/* How many small pages of an area do not lie on a node; *where is the node of one of them, -1 where
 * it lies nowhere. Minus errno where the kernel does not tell. */
long numa_elsewhere(const struct arena *arena, int node, int *where);

#endif
