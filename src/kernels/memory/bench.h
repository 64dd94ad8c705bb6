/* What rambench does on each thread, for team_run: sweeps over blocks, or the chase of pointers. */
#ifndef PEAKMARK_MEMORY_BENCH_H
#define PEAKMARK_MEMORY_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/team.h"
#include "memory/chase.h"
#include "memory/sweep.h"

enum operation {
    OPERATION_READ,
    OPERATION_WRITE,
    OPERATION_COPY,
    OPERATION_TRIAD,
    OPERATION_CHASE
};

/* The context of the team: the same for all threads. */
struct bench {
    enum operation operation;
    bool random;     /* blocks in random order, else one after the other */
    bool streaming;  /* non-temporal stores */
    bool libc;       /* copy: by memcpy, to compare with */
    bool huge_pages; /* ask for them */
    bool probe;      /* read the buffers before and after the measured run */
    size_t block;    /* bytes */
    size_t stride;   /* chase: bytes between pointers */
    uint64_t blocks; /* of each thread's buffers; 1: every visit is to the same block. At most
                        UINT32_MAX */
    uint64_t seed;
    const struct sweeper *sweeper; /* not for the chase */
    size_t huge_bytes;             /* result: of all threads' memory */
};

struct bench_worker {
    struct arena arena; /* holds source, scaled and target, as far as the operation needs them */
    unsigned char *source, *scaled, *target;
    uint32_t *order; /* NULL: sequential */
    uint64_t visits; /* blocks done in this run */
    uint64_t sum;    /* of all words read in this run */
    uint64_t value;  /* what visit 0 writes */
    struct chase chase;
    double fastest; /* chase: s per load of the fastest portion; 0: none */
};

/* Buffers of one thread, each of which a visit reads or writes: 2 of a copy, 3 of the triad. */
unsigned bench_buffers(enum operation operation);

/* Whether the operation writes, so that its stores may go around the caches. */
bool bench_writes(enum operation operation);

/* Bytes that one visit or access counts: a copy reads and writes; a chase counts accesses, so 1. */
uint64_t bench_work_per_visit(const struct bench *bench);

/* Bytes of all buffers of one thread, none of which is larger than BYTES_MOST. */
uint64_t bench_bytes_per_thread(const struct bench *bench);

/* Prepare, run, ready and finish. finish fails the team when contents or counts are not what must
 * have come out. */
extern const struct team_job bench_sweep_job;
extern const struct team_job bench_chase_job;

/* After team_run: the member's worker with the results (its memory is gone already). */
const struct bench_worker *bench_worker(const struct team_member *member);
void bench_free(struct team *team);

/*
 * Seconds of a visit where they may lower the rate: the threads of a run that ended by time stopped
 * apart by more than 1 % of it, and a visit, which nothing interrupts, takes as long. Else 0.
 */
double bench_long_visit(const struct team *team, uint64_t per_visit);

#endif
