/*
 * Metadata of a filesystem: how many empty files the threads create, stat and unlink per second.
 *
 * Each thread has a folder of its own. A cycle has three phases, as mdtest has: all threads create
 * their files, then stat them, then unlink them. Between the phases the threads wait for each
 * other. The rate of a phase is the number of files / (last stop - first start), over all cycles.
 */
#ifndef PEAKMARK_DISK_METADATA_H
#define PEAKMARK_DISK_METADATA_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/team.h"

enum metadata_phase { METADATA_CREATE, METADATA_STAT, METADATA_UNLINK, METADATA_PHASES };

/* "create", "stat", "unlink". */
extern const char *const metadata_names[METADATA_PHASES];

struct metadata_test {
    int files; /* of each thread */
    pthread_barrier_t barrier;
    /* Clocks of each thread in the present phase; thread 0 adds them up. */
    uint64_t *start_ns, *stop_ns;
    bool last; /* thread 0 decides at the end of a cycle */
    uint64_t cycles;
    double seconds[METADATA_PHASES]; /* of all cycles, warm-up excluded */
};

/* Makes the barrier and the clocks. False when there is no memory for them. */
bool metadata_create(struct metadata_test *test, int threads, int files);
void metadata_free(struct metadata_test *test);

/* The job of a team. Context is a struct metadata_test; the work of a member is its number of
 * operations. Only whole cycles are done. */
extern const struct team_job metadata_job;

/* Files per second of all threads in a phase. */
double metadata_rate(const struct metadata_test *test, int threads, enum metadata_phase phase);

#endif
