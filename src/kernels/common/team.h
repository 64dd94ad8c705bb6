/*
 * N pinned threads that measure at the same time.
 *
 * Each thread: pin, prepare, barrier, released, warm-up, barrier, clock rate and probe, barrier,
 * start clock, run, stop clock, barrier, clock rate and probe, finish. The rate is all work / (last
 * stop - first start). A thread that fails with team_fail ends the others' run too and still passes
 * all barriers.
 */
#ifndef PEAKMARK_TEAM_H
#define PEAKMARK_TEAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/energy.h"
#include "common/handover.h"
#include "common/place.h"

struct team;

struct team_member {
    struct team *team;
    void *context; /* argument of team_run, shared by all members */
    void *state;   /* of this member only, set by prepare */
    int index;     /* 0 .. threads - 1 */
    int cpu;
    bool warming;   /* the run is the warm-up: its work is not counted */
    uint64_t limit; /* work to do in this run; UINT64_MAX when the stop flag ends it */
    uint64_t work;  /* set by run: work done in this run */
    uint64_t start_ns, stop_ns;
    uint64_t cpu_ns;                        /* CPU time between them */
    double clock_hz_before, clock_hz_after; /* 0 when not measured */
    double clock_hz_loaded;                 /* under the work; set by the job, 0 where unknown */
    double probe_before, probe_after;       /* what the job's probe returned; 0 without one */
    bool held_up; /* something else used the core's execution units; set by the job */
    bool wrong;   /* its CPU computed or kept something wrong; set by team_wrong */
};

struct team_job {
    /* After pinning, before the clock: allocate, first touch. May be NULL. */
    void (*prepare)(struct team_member *member);
    /*
     * Works until member->work reaches member->limit or team_stopped(member) says so, and sets
     * member->work. Called once for the warm-up and once measured. Check team_stopped about every
     * 50 us of work: it reads one flag, no clock. At least one portion of work must be done before
     * the check, so that a short run has a result.
     */
    void (*run)(struct team_member *member);
    /* In the caller's thread, once all are prepared and none has failed: looks at what they hold.
     * The warm-up may have begun. May be NULL. */
    void (*prepared)(struct team *team);
    /* After the warm-up, before the clock: put data back as the checks in finish need it. May be
     * NULL. */
    void (*ready)(struct team_member *member);
    /* Right before and right after the measured run, of all members at the same time: the rate at
     * which the member gets something that it shares with others. May be NULL. */
    double (*probe)(struct team_member *member);
    /* After all clocks stopped: check results, free. Called also when the member failed. May be
     * NULL. */
    void (*finish)(struct team_member *member);
};

struct team_plan {
    double warmup;   /* s; 0: no warm-up */
    double seconds;  /* s of the measured run; used when work is 0 */
    uint64_t work;   /* total to be shared by the members; 0: run for seconds */
    uint64_t grain;  /* shares are multiples of it where possible; 0 counts as 1 */
    bool clock_rate; /* measure clock and core-to-core time before and after, and run the job's
                        probe */
    /* In the caller's thread, once all are prepared and before the warm-up: returns when the
     * members may start, or false to call the run off. NULL: they start at once. */
    bool (*released)(void);
    /* CPUs among which the scheduler may move members; NULL: each member stays on one. For work
     * that sleeps: it is woken best where the interrupt arrives, and only the scheduler knows where
     * that is. */
    const struct cpu_list *shared_cpus;
};

struct team {
    int threads;
    struct team_member *members;
    uint64_t first_start_ns;
    double seconds;                         /* last stop - first start */
    uint64_t work;                          /* all members' */
    double clock_hz_before, clock_hz_after; /* mean of the members */
    double clock_hz_loaded;                 /* mean of the members; 0 unless known of all */
    double probe_before, probe_after;       /* sum of the members */
    /* s in which a cache line gets from the first member's core to the second's; 0 when not
     * measured or where members share these CPUs */
    double core_to_core_before, core_to_core_after;
    int held_up;      /* number of members that are held up */
    double cpu_share; /* CPU time of the members by their time between start and stop: 1 where none
                         waited */
    struct energy energy; /* of the node, while the members measured */
    /* private */
    struct team_plan plan;
    const struct team_job *job;
    void *barrier;
    struct handover line;
    _Alignas(64) atomic_bool stop;
    _Alignas(64) atomic_bool failed;
    char error[512];
};

/*
 * Runs job on cpus->count threads, thread i on cpus->cpu[i] or among plan->shared_cpus, and fills
 * the results. False when a thread could not be started or pinned or a member failed: team->error
 * holds the sentence. team_free in both cases.
 */
bool team_run(struct team *team, const struct cpu_list *cpus, const struct team_plan *plan,
              const struct team_job *job, void *context);
void team_free(struct team *team);

/* work / seconds; 0 when no time passed. */
double team_rate(const struct team *team);

/* Part of total that member `index` of `threads` does: multiples of grain, the rest on the last
 * ones; sums to total. */
uint64_t team_share(uint64_t total, int threads, int index, uint64_t grain);

/* Marks the whole team as failed; the first message counts. Safe from any member at any time. */
void team_fail(struct team_member *member, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same where the member's result is wrong: the record names its CPU. */
#define team_wrong(member, ...) ((member)->wrong = true, team_fail(member, __VA_ARGS__))

static inline bool team_stopped(const struct team_member *member) {
    return atomic_load_explicit(&member->team->stop, memory_order_relaxed);
}

static inline bool team_failed(const struct team_member *member) {
    return atomic_load_explicit(&member->team->failed, memory_order_acquire);
}

#endif
