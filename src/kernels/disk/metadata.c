#include "disk/metadata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "disk/scratch.h"

const char *const metadata_names[METADATA_PHASES] = {"create", "stat", "unlink"};

bool metadata_create(struct metadata_test *test, int threads, int files) {
    *test = (struct metadata_test){.files = files,
                                   .start_ns = calloc((size_t)threads, sizeof *test->start_ns),
                                   .stop_ns = calloc((size_t)threads, sizeof *test->stop_ns)};
    return test->start_ns != NULL && test->stop_ns != NULL &&
           pthread_barrier_init(&test->barrier, NULL, (unsigned)threads) == 0;
}

void metadata_free(struct metadata_test *test) {
    pthread_barrier_destroy(&test->barrier);
    free(test->start_ns);
    free(test->stop_ns);
}

/* One operation on a file. False, with errno set, when it fails. */
static bool operate(enum metadata_phase phase, int folder, int file) {
    switch (phase) {
    case METADATA_CREATE:
        return scratch_create_empty(folder, file);
    case METADATA_STAT:
        return scratch_is_empty(folder, file);
    default:
        return scratch_unlink(folder, file);
    }
}

/* From the first start to the last stop of all threads. */
static double phase_seconds(const struct metadata_test *test, int threads) {
    uint64_t first = test->start_ns[0], last = test->stop_ns[0];
    for (int i = 1; i < threads; i++) {
        first = test->start_ns[i] < first ? test->start_ns[i] : first;
        last = test->stop_ns[i] > last ? test->stop_ns[i] : last;
    }
    return (double)(last - first) * 1e-9;
}

/* A member that fails goes on to the next barrier: the others wait there. */
static void run_phase(struct team_member *member, enum metadata_phase phase) {
    struct metadata_test *test = member->context;
    pthread_barrier_wait(&test->barrier);
    test->start_ns[member->index] = clock_now();
    for (int i = 0; i < test->files && !team_failed(member); i++) {
        if (!operate(phase, member->index, i)) {
            team_fail(member, "%s of an empty file failed: %s", metadata_names[phase],
                      strerror(errno));
        }
        member->work++;
    }
    test->stop_ns[member->index] = clock_now();
    pthread_barrier_wait(&test->barrier);
    if (member->index == 0 && !member->warming) {
        test->seconds[phase] += phase_seconds(test, member->team->threads);
    }
}

static void run(struct team_member *member) {
    struct metadata_test *test = member->context;
    do {
        for (int phase = 0; phase < METADATA_PHASES; phase++) {
            run_phase(member, (enum metadata_phase)phase);
        }
        /* All threads must do the same number of cycles. */
        if (member->index == 0) {
            test->last = team_stopped(member);
            test->cycles += !member->warming;
        }
        pthread_barrier_wait(&test->barrier);
    } while (!test->last);
}

const struct team_job metadata_job = {.run = run};

double metadata_rate(const struct metadata_test *test, int threads, enum metadata_phase phase) {
    double files = (double)test->cycles * (double)test->files * (double)threads;
    return test->seconds[phase] > 0 ? files / test->seconds[phase] : 0;
}
