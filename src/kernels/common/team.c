#include "common/team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/sort.h"

/* The members and the caller, who works as the timer. Started before all threads exist, so it can
 * be called off. */
struct rendezvous {
    pthread_barrier_t barrier;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int decision; /* 0 wait, 1 go, -1 a thread could not be started */
};

static void wait_for_all(struct team *team) {
    pthread_barrier_wait(&((struct rendezvous *)team->barrier)->barrier);
}

void team_fail(struct team_member *member, const char *format, ...) {
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    struct team *team = member->team;
    pthread_mutex_lock(&first);
    if (team->error[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(team->error, sizeof team->error, format, arguments);
        va_end(arguments);
    }
    pthread_mutex_unlock(&first);
    atomic_store_explicit(&team->failed, true, memory_order_release);
    atomic_store_explicit(&team->stop, true, memory_order_relaxed);
}

uint64_t team_share(uint64_t total, int threads, int index, uint64_t grain) {
    uint64_t step = grain > 0 ? grain : 1;
    uint64_t units = total / step, each = units / (uint64_t)threads,
             more = units % (uint64_t)threads;
    uint64_t share = (each + ((uint64_t)index < more ? 1 : 0)) * step;
    return index == threads - 1 ? share + total % step : share;
}

static void run_phase(struct team_member *member, bool warming, uint64_t limit) {
    member->warming = warming;
    member->limit = limit;
    member->work = 0;
    if (!team_failed(member) && limit > 0) {
        member->team->job->run(member);
    }
}

/* How long the probe of the two cores takes, and how many samples it has at least and at most. */
#define CORE_TO_CORE_NS UINT64_C(2000000)
#define CORE_TO_CORE_LEAST 30
#define CORE_TO_CORE_MOST 300

/* Whether the first two members have their CPUs for themselves: else one waits for the other. */
static bool two_have_own_cpus(const struct team *team) {
    if (team->threads < 2) {
        return false;
    }
    for (int i = 0; i < team->threads; i++) {
        for (int first = 0; first < 2; first++) {
            if (i != first && team->members[i].cpu == team->members[first].cpu) {
                return false;
            }
        }
    }
    return true;
}

/* The first member measures, the second answers, the others go on. Nobody fails meanwhile. */
static void probe_cores(struct team_member *member, double *seconds) {
    struct team *team = member->team;
    if (member->index > 1 || !two_have_own_cpus(team)) {
        return;
    }
    if (member->index == 1) {
        handover_answer(&team->line);
        return;
    }
    double samples[CORE_TO_CORE_MOST];
    size_t count = 0;
    unsigned mine = 0;
    const uint64_t began = clock_now();
    do {
        samples[count++] = handover_sample(&team->line, &mine);
    } while (count < CORE_TO_CORE_LEAST ||
             (count < CORE_TO_CORE_MOST && clock_now() - began < CORE_TO_CORE_NS));
    handover_end(&team->line, mine);
    *seconds = sort_median(samples, count);
}

/* Clock and probe, before or after the measured run. */
static void look_around(struct team_member *member, double *hz, double *probe,
                        double *core_to_core) {
    if (!member->team->plan.clock_rate || team_failed(member)) {
        return;
    }
    *hz = clock_hz();
    probe_cores(member, core_to_core);
    if (member->team->job->probe != NULL) {
        *probe = member->team->job->probe(member);
    }
}

static bool wait_for_decision(struct rendezvous *rendezvous) {
    pthread_mutex_lock(&rendezvous->mutex);
    while (rendezvous->decision == 0) {
        pthread_cond_wait(&rendezvous->changed, &rendezvous->mutex);
    }
    bool go = rendezvous->decision > 0;
    pthread_mutex_unlock(&rendezvous->mutex);
    return go;
}

/* One member from pinning to finish. The order of the barriers is the same as in time_phases. */
static void *member_main(void *argument) {
    struct team_member *member = argument;
    struct team *team = member->team;
    const struct team_plan *plan = &team->plan;
    if (!wait_for_decision(team->barrier)) {
        return NULL;
    }
    int error =
        plan->shared_cpus != NULL ? place_pin_to_any(plan->shared_cpus) : place_pin(member->cpu);
    if (error != 0) {
        team_fail(member, "thread %d cannot be pinned to CPU %d: %s", member->index, member->cpu,
                  strerror(error));
    }
    if (!team_failed(member) && team->job->prepare != NULL) {
        team->job->prepare(member);
    }
    wait_for_all(team); /* 1: all prepared */
    if (plan->released != NULL) {
        wait_for_all(team); /* 1b: released */
    }
    if (plan->warmup > 0) {
        run_phase(member, true, UINT64_MAX);
    }
    wait_for_all(team); /* 2: all warm */
    if (team->job->ready != NULL && !team_failed(member)) {
        team->job->ready(member);
    }
    if (plan->clock_rate) {
        wait_for_all(team); /* 2b: all are ready */
    }
    look_around(member, &member->clock_hz_before, &member->probe_before,
                &team->core_to_core_before);
    wait_for_all(team); /* 3: stop flag is cleared */
    uint64_t limit = plan->work > 0
                         ? team_share(plan->work, team->threads, member->index, plan->grain)
                         : UINT64_MAX;
    uint64_t cpu_ns = clock_thread_now();
    member->start_ns = clock_now();
    run_phase(member, false, limit);
    member->stop_ns = clock_now();
    member->cpu_ns = clock_thread_now() - cpu_ns;
    if (plan->shared_cpus != NULL) {
        member->cpu = sched_getcpu();
    }
    wait_for_all(team); /* 4: all done */
    look_around(member, &member->clock_hz_after, &member->probe_after, &team->core_to_core_after);
    wait_for_all(team); /* 5: nobody measures any more */
    if (team->job->finish != NULL) {
        team->job->finish(member);
    }
    return NULL;
}

/* Sleeps until the time is over or, within 50 ms, a member has failed. */
static void wait_unless_failed(struct team *team, double seconds) {
    uint64_t now = clock_now(), end = now + (uint64_t)(seconds * 1e9), slice = UINT64_C(50000000);
    while (now < end && !atomic_load_explicit(&team->failed, memory_order_acquire)) {
        clock_sleep_until(end - now < slice ? end : now + slice);
        now = clock_now();
    }
}

/*
 * The caller's part: sets the stop flag when the time is over. It sleeps, so it takes no CPU from
 * the members.
 */
static void time_phases(struct team *team) {
    wait_for_all(team); /* 1 */
    if (team->job->prepared != NULL && !atomic_load_explicit(&team->failed, memory_order_acquire)) {
        team->job->prepared(team);
    }
    if (team->plan.released != NULL) {
        if (!atomic_load_explicit(&team->failed, memory_order_acquire) && !team->plan.released()) {
            team_fail(&team->members[0], "the run was called off before its start");
        }
        wait_for_all(team); /* 1b */
    }
    if (team->plan.warmup > 0) {
        wait_unless_failed(team, team->plan.warmup);
        atomic_store_explicit(&team->stop, true, memory_order_relaxed);
    }
    wait_for_all(team); /* 2 */
    if (team->plan.clock_rate) {
        wait_for_all(team); /* 2b */
    }
    if (!atomic_load_explicit(&team->failed, memory_order_acquire)) {
        atomic_store_explicit(&team->stop, false, memory_order_relaxed);
    }
    wait_for_all(team); /* 3 */
    energy_start(&team->energy);
    if (team->plan.work == 0 && !atomic_load_explicit(&team->failed, memory_order_acquire)) {
        wait_unless_failed(team, team->plan.seconds);
        atomic_store_explicit(&team->stop, true, memory_order_relaxed);
    }
    wait_for_all(team); /* 4 */
    energy_stop(&team->energy);
    wait_for_all(team); /* 5 */
}

static void sum_results(struct team *team) {
    uint64_t first = UINT64_MAX, last = 0, cpu = 0, wall = 0;
    team->work = 0;
    team->held_up = 0;
    team->clock_hz_before = team->clock_hz_after = team->clock_hz_loaded = 0;
    team->probe_before = team->probe_after = 0;
    bool all_loaded = true;
    for (int i = 0; i < team->threads; i++) {
        const struct team_member *member = &team->members[i];
        first = member->start_ns < first ? member->start_ns : first;
        last = member->stop_ns > last ? member->stop_ns : last;
        team->work += member->work;
        cpu += member->cpu_ns;
        wall += member->stop_ns - member->start_ns;
        team->clock_hz_before += member->clock_hz_before / team->threads;
        team->clock_hz_after += member->clock_hz_after / team->threads;
        team->clock_hz_loaded += member->clock_hz_loaded / team->threads;
        team->probe_before += member->probe_before;
        team->probe_after += member->probe_after;
        all_loaded = all_loaded && member->clock_hz_loaded > 0;
        team->held_up += member->held_up;
    }
    team->clock_hz_loaded *= all_loaded;
    team->cpu_share =
        cpu < wall ? (double)cpu / (double)wall : 1; /* read around the run, so it may be more */
    team->first_start_ns = first;
    team->seconds = (double)(last - first) * 1e-9;
}

/* Starts the threads; when one cannot be started, those before it end at once. */
static bool start_and_time(struct team *team, struct rendezvous *rendezvous, pthread_t *threads) {
    int started = 0, error = 0;
    while (started < team->threads && error == 0) {
        error = pthread_create(&threads[started], NULL, member_main, &team->members[started]);
        started += error == 0;
    }
    if (error != 0) {
        snprintf(team->error, sizeof team->error,
                 "thread %d of %d cannot be started: %s; use fewer threads", started + 1,
                 team->threads, strerror(error));
        atomic_store(&team->failed, true);
    }
    pthread_mutex_lock(&rendezvous->mutex);
    rendezvous->decision = error == 0 ? 1 : -1;
    pthread_cond_broadcast(&rendezvous->changed);
    pthread_mutex_unlock(&rendezvous->mutex);
    if (error == 0) {
        time_phases(team);
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    return error == 0;
}

bool team_run(struct team *team, const struct cpu_list *cpus, const struct team_plan *plan,
              const struct team_job *job, void *context) {
    struct rendezvous rendezvous = {
        .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .decision = 0};
    memset(team, 0, sizeof *team);
    team->threads = cpus->count;
    team->plan = *plan;
    team->job = job;
    /* The threads that use it are joined below. */
    // cppcheck-suppress autoVariables
    team->barrier = &rendezvous;
    team->members = calloc((size_t)team->threads, sizeof *team->members);
    pthread_t *threads = calloc((size_t)team->threads, sizeof *threads);
    if (team->members == NULL || threads == NULL) {
        snprintf(team->error, sizeof team->error, "no memory for %d threads", team->threads);
        free(threads);
        return false;
    }
    int error = pthread_barrier_init(&rendezvous.barrier, NULL, (unsigned)team->threads + 1);
    if (error != 0) {
        snprintf(team->error, sizeof team->error, "no barrier for %d threads: %s", team->threads,
                 strerror(error));
        free(threads);
        return false;
    }
    for (int i = 0; i < team->threads; i++) {
        team->members[i] =
            (struct team_member){.team = team, .context = context, .index = i, .cpu = cpus->cpu[i]};
    }
    energy_open(&team->energy, "/sys");
    if (start_and_time(team, &rendezvous, threads)) {
        sum_results(team);
    }
    energy_close(&team->energy);
    free(threads);
    pthread_barrier_destroy(&rendezvous.barrier);
    pthread_cond_destroy(&rendezvous.changed);
    pthread_mutex_destroy(&rendezvous.mutex);
    team->barrier = NULL;
    return !atomic_load_explicit(&team->failed, memory_order_acquire);
}

void team_free(struct team *team) {
    free(team->members);
    team->members = NULL;
}

double team_rate(const struct team *team) {
    return team->seconds > 0 ? (double)team->work / team->seconds : 0;
}
