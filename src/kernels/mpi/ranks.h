/* The ranks that a launcher started: where each runs, and how all of them end. */
#ifndef PEAKMARK_MPI_RANKS_H
#define PEAKMARK_MPI_RANKS_H

#include <mpi.h>
#include <stdbool.h>

#include "common/place.h"

enum { HOST_BYTES = 256 };

/* Where one rank runs. */
struct rank_place {
    char host[HOST_BYTES];
    int cpu;             /* the CPU it is on now */
    int cpus;            /* number of CPUs that it may use */
    bool oversubscribed; /* its node has more ranks than CPUs that they may use */
};

struct ranks {
    int rank, size; /* in MPI_COMM_WORLD */
    MPI_Comm node;  /* the ranks of this node */
};

/* Starts MPI, which the end of the program finishes. After `timeout` seconds, and after an error of
 * MPI, the program ends with a sentence. A rank that is lost ends all, which its launcher tells. */
void ranks_start(struct ranks *ranks, double timeout);

/* Everything was measured and printed: a library that hangs as it ends spoils nothing. All ranks
 * call it. */
void ranks_succeed(void);

/* Pins the ranks of each node to these CPUs in their order; beyond the last they wrap around. */
void ranks_pin(const struct ranks *ranks, const struct cpu_list *cpus);

/* Fills places[] of all ranks on the first one. All ranks call it. */
void ranks_locate(const struct ranks *ranks, struct rank_place *places);

/* Ends all ranks with exit 1 and the sentence of the one that calls it. */
_Noreturn void ranks_abort(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
