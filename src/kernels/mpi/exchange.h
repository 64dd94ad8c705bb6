/*
 * What the ranks exchange: for each workload the data, the calls that are timed and the check of
 * what arrived. Nothing here reads a clock.
 */
#ifndef PEAKMARK_MPI_EXCHANGE_H
#define PEAKMARK_MPI_EXCHANGE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Messages that a sender has under way before it waits, as in the OSU benchmarks. */
enum { WINDOW = 64 };
#define BLOCK_MAX (UINT64_C(1) << 30)

struct exchange {
    const struct workload *workload;
    int rank, ranks;
    int peer;            /* of workloads in pairs: rank r of the first half and r + ranks / 2 */
    bool leads;          /* in the first half */
    size_t block;        /* bytes of one message */
    uint64_t seed;       /* of the data */
    uint64_t lay_outs;   /* number of times that data was laid out: it differs each time */
    uint64_t broadcasts; /* since then: their roots take turns */
    size_t bytes;        /* of each buffer */
    unsigned char *out, *in;
    MPI_Request requests[2 * WINDOW];
    MPI_Status statuses[2 * WINDOW]; /* nobody reads them; gcc takes MPICH's constant to ignore
                                        them for an array of none */
};

struct workload {
    const char *name;
    const char *unit;      /* of the value: "s", "B/s" or "message/s" */
    const char *work_unit; /* "message", "B" or "call" */
    bool two_ranks;        /* needs exactly two; others at least two */
    bool in_pairs;         /* needs an even number */
    uint64_t block;        /* bytes by default; 0: the workload moves no data */
    void (*lay_out)(struct exchange *exchange);
    void (*run)(struct exchange *exchange, uint64_t calls);
    bool (*is_right)(struct exchange *exchange);       /* destroys `out` */
    uint64_t (*work)(const struct exchange *exchange); /* of this rank in one call */
};

extern const struct workload workloads[];
enum { WORKLOADS = 8 };

/* Allocates the buffers, which the program keeps until it ends. False: no memory. */
bool exchange_open(struct exchange *exchange);

/* Writes new data to send and clears what was received. */
void exchange_lay_out(struct exchange *exchange);

#endif
