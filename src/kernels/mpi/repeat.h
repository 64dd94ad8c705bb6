/* Warm-up and repetitions of a workload, timed and checked on all ranks alike. */
#ifndef PEAKMARK_MPI_REPEAT_H
#define PEAKMARK_MPI_REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/histogram.h"
#include "mpi/exchange.h"

/* A run has at least so many repetitions; REPETITIONS_MAX only where calls slow down meanwhile. */
enum { REPETITIONS = 10, REPETITIONS_MAX = 1000 };

struct repetition {
    uint64_t calls;
    double seconds; /* of the slowest rank */
};

struct measurement {
    int count;
    struct repetition repetitions[REPETITIONS_MAX];
    uint64_t calls;         /* in all repetitions */
    double seconds;         /* of the slowest rank, in all repetitions */
    double own_seconds;     /* of this rank */
    struct histogram times; /* ns of single calls on this rank; of workloads that measure a time */
    bool wrong;             /* this rank got something wrong */
};

/*
 * Runs the workload for `warmup` seconds, then in repetitions for at least `seconds`, then a tenth
 * of it with a clock around each call. False where a rank got something wrong, which ends it. The
 * ranks decide by the same numbers, so that all do the same.
 */
bool repeat(struct exchange *exchange, double warmup, double seconds,
            struct measurement *measurement);

#endif
