#include "mpi/repeat.h"

#include <math.h>
#include <string.h>

#include "common/clock.h"

/* Calls that take about `seconds`, by those that were timed. At most twice as many: a few calls can
 * end before any rank has to wait for another, and many more would then take minutes. */
static uint64_t calls_in(double seconds, const struct repetition *timed) {
    const double longer = seconds / fmax(timed->seconds, 1e-9);
    return (uint64_t)fmax((double)timed->calls * fmin(longer, 2), 1);
}

/* The longest time of all ranks; *wrong becomes true if it is for any. */
static double agree(double seconds, bool *wrong) {
    double mine[2] = {seconds, *wrong}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    *wrong = all[1] > 0;
    return all[0];
}

static bool check(struct exchange *x, struct measurement *m) {
    m->wrong = x->workload->is_right != NULL && !x->workload->is_right(x);
    return m->wrong;
}

/* Times the calls of one repetition, then checks them. False where a rank got something wrong. */
static bool time_calls(struct exchange *x, struct measurement *m, struct repetition *repetition) {
    exchange_lay_out(x);
    MPI_Barrier(MPI_COMM_WORLD);
    const uint64_t start = clock_now();
    x->workload->run(x, repetition->calls);
    const double seconds = (double)(clock_now() - start) * 1e-9;
    bool wrong = check(x, m);
    repetition->seconds = agree(seconds, &wrong);
    m->own_seconds += seconds;
    return !wrong;
}

/* Fills the histogram. A clock for each call costs too much for the repetitions of short ones. */
static bool time_each_call(struct exchange *x, struct measurement *m, uint64_t calls) {
    exchange_lay_out(x);
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t before = clock_now();
    while (calls-- > 0) {
        x->workload->run(x, 1);
        const uint64_t now = clock_now();
        histogram_add(&m->times, now - before);
        before = now;
    }
    bool wrong = check(x, m);
    agree(0, &wrong);
    return !wrong;
}

/* At least for `seconds`, and until the calls of *last take half of a repetition's time. The first
 * messages open connections, so that no run can do without. */
static bool warm_up(struct exchange *x, struct measurement *m, double seconds, double each,
                    struct repetition *last) {
    double spent = 0;
    for (last->calls = 1;; last->calls *= 2) {
        if (!time_calls(x, m, last)) {
            return false;
        }
        spent += last->seconds;
        if (spent >= seconds && last->seconds >= each / 2) {
            return true;
        }
    }
}

bool repeat(struct exchange *x, double warmup, double seconds, struct measurement *m) {
    const double each = seconds / REPETITIONS;
    struct repetition last;
    memset(m, 0, sizeof *m);
    if (!warm_up(x, m, warmup, each, &last)) {
        return false;
    }
    m->own_seconds = 0;
    last.calls = calls_in(each, &last);
    while (m->count < REPETITIONS_MAX && (m->count < REPETITIONS || m->seconds < seconds)) {
        if (!time_calls(x, m, &last)) {
            return false;
        }
        m->repetitions[m->count++] = last;
        m->calls += last.calls;
        m->seconds += last.seconds;
        /* Never fewer calls: the next repetition is as long as one that was held up. */
        if (last.seconds < each / 2) {
            last.calls *= 2;
        }
    }
    const bool is_time = strcmp(x->workload->unit, "s") == 0;
    return !is_time || time_each_call(x, m, calls_in(each, &last));
}
