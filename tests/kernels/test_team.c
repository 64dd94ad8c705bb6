/* The team: shares, phases, pinning, clocks, and what a failing member does to the others. */
#include "check.h"

#include <pthread.h>
#include <sched.h>

#include "common/clock.h"
#include "common/team.h"

static struct cpu_list cpus;

/* `threads` entries over the CPUs of this process, wrapping around. */
static void use_threads(int threads) {
    static struct cpu_list allowed;
    assert_true(place_allowed(&allowed));
    cpus.count = threads;
    for (int i = 0; i < threads; i++) {
        cpus.cpu[i] = allowed.cpu[i % allowed.count];
    }
}

static void shares_sum_to_the_total(void **state) {
    (void)state;
    static const uint64_t totals[] = {1, 7, 1000, 1001, UINT64_C(1000000000000)};
    for (size_t t = 0; t < sizeof totals / sizeof totals[0]; t++) {
        for (int threads = 1; threads <= 9; threads++) {
            for (uint64_t grain = 0; grain <= 64; grain += 8) {
                uint64_t sum = 0, least = UINT64_MAX, most = 0, step = grain > 0 ? grain : 1;
                for (int i = 0; i < threads; i++) {
                    uint64_t share = team_share(totals[t], threads, i, grain);
                    sum += share;
                    least = share < least ? share : least;
                    most = share > most ? share : most;
                    assert_true(i == threads - 1 || share % step == 0);
                }
                assert_true(sum == totals[t]);
                assert_true(most - least < 2 * step);
            }
        }
    }
}

struct trace {
    atomic_int prepared, looked, warmed, readied, ran, finished;
    pthread_t caller;
    int fail_at; /* member that fails in prepare; -1: none */
};

static void prepare(struct team_member *member) {
    struct trace *trace = member->context;
    assert_int_equal(sched_getcpu(), member->cpu);
    if (member->index == trace->fail_at) {
        team_fail(member, "member %d failed", member->index);
    }
    atomic_fetch_add(&trace->prepared, 1);
}

static void run(struct team_member *member) {
    struct trace *trace = member->context;
    assert_int_equal(atomic_load(&trace->prepared), member->team->threads);
    atomic_fetch_add(member->warming ? &trace->warmed : &trace->ran, 1);
    if (!member->warming) {
        assert_int_equal(atomic_load(&trace->readied), member->team->threads);
    }
    uint64_t work = 0;
    do {
        work++;
    } while (work < member->limit && !team_stopped(member));
    member->work = work;
}

static void look(struct team *team) {
    struct trace *trace = team->members[0].context;
    assert_true(pthread_equal(pthread_self(), trace->caller));
    assert_int_equal(atomic_load(&trace->prepared), team->threads);
    assert_int_equal(atomic_load(&trace->readied), 0);
    atomic_fetch_add(&trace->looked, 1);
}

static void ready(struct team_member *member) {
    struct trace *trace = member->context;
    atomic_fetch_add(&trace->readied, 1);
}

static void finish(struct team_member *member) {
    struct trace *trace = member->context;
    atomic_fetch_add(&trace->finished, 1);
}

/* Of member i: i + 1 before the measured run, ten times that after it. */
static double probe(struct team_member *member) {
    struct trace *trace = member->context;
    assert_int_equal(atomic_load(&trace->readied), member->team->threads);
    return (member->index + 1) * (member->stop_ns > 0 ? 10 : 1);
}

static const struct team_job job = {.prepare = prepare,
                                    .prepared = look,
                                    .run = run,
                                    .ready = ready,
                                    .probe = probe,
                                    .finish = finish};

static void timed_run(void **state) {
    (void)state;
    struct trace trace = {.fail_at = -1, .caller = pthread_self()};
    struct team team;
    const struct team_plan plan = {.warmup = 0.01, .seconds = 0.05, .clock_rate = true};
    use_threads(3);
    uint64_t began = clock_now();
    assert_true(team_run(&team, &cpus, &plan, &job, &trace));
    double lasted = (double)(clock_now() - began) * 1e-9;
    assert_int_equal(trace.looked, 1);
    assert_int_equal(trace.warmed, 3);
    assert_int_equal(trace.ran, 3);
    assert_int_equal(trace.finished, 3);
    /* On a busy machine the members may begin after the time has. */
    assert_true(lasted >= plan.warmup + plan.seconds);
    assert_true(team.seconds > 0 && team.seconds <= lasted);
    uint64_t work = 0;
    for (int i = 0; i < 3; i++) {
        work += team.members[i].work;
        assert_true(team.members[i].start_ns >= team.first_start_ns);
        assert_true(team.members[i].stop_ns > team.members[i].start_ns);
        assert_true(team.members[i].work > 0);
    }
    assert_true(team.work == work);
    assert_true(team_rate(&team) == (double)work / team.seconds);
    assert_true(team.probe_before == 6 && team.probe_after == 60);
    if (clock_hz_method() != NULL) {
        /* Any core has more than 100 MHz and less than 10 GHz; emulators count too. */
        assert_true(team.clock_hz_before > 1e6 && team.clock_hz_before < 1e10);
        assert_true(team.clock_hz_after > 1e6 && team.clock_hz_after < 1e10);
    }
    team_free(&team);
}

static void time_of_a_line_between_two_cores(void **state) {
    (void)state;
    const struct team_plan plan = {.seconds = 0.01, .clock_rate = true};
    for (int threads = 1; threads <= 2; threads++) {
        struct trace trace = {.fail_at = -1, .caller = pthread_self()};
        struct team team;
        use_threads(threads);
        assert_true(team_run(&team, &cpus, &plan, &job, &trace));
        /* Threads of one CPU would wait for each other. */
        bool is_known = threads == 2 && cpus.cpu[0] != cpus.cpu[1];
        assert_true((team.core_to_core_before > 0) == is_known);
        assert_true((team.core_to_core_after > 0) == is_known);
        team_free(&team);
    }
}

static void members_that_share_cpus_measure_no_line(void **state) {
    (void)state;
    struct trace trace = {.fail_at = -1, .caller = pthread_self()};
    struct team team;
    const struct team_plan plan = {.seconds = 0.01, .clock_rate = true};
    use_threads(3);
    cpus.cpu[2] = cpus.cpu[0];
    assert_true(team_run(&team, &cpus, &plan, &job, &trace));
    assert_true(team.core_to_core_before == 0 && team.core_to_core_after == 0);
    team_free(&team);
}

static void fixed_work(void **state) {
    (void)state;
    struct trace trace = {.fail_at = -1, .caller = pthread_self()};
    struct team team;
    const struct team_plan plan = {.seconds = 1000, .work = 100003, .grain = 10};
    use_threads(4);
    assert_true(team_run(&team, &cpus, &plan, &job, &trace));
    assert_int_equal(trace.warmed, 0);
    assert_true(team.work == 100003);
    assert_true(team.members[0].work % 10 == 0);
    assert_true(team.seconds < 1000);
    assert_true(team.probe_before == 0 && team.probe_after == 0); /* not asked for */
    team_free(&team);
}

/*
 * A member that fails before the run ends the run at once: as it would take 1000 s, this test would
 * not end.
 */
static void failure_ends_all(void **state) {
    (void)state;
    struct trace trace = {.fail_at = 1};
    struct team team;
    const struct team_plan plan = {.warmup = 1000, .seconds = 1000, .clock_rate = true};
    use_threads(3);
    assert_false(team_run(&team, &cpus, &plan, &job, &trace));
    assert_string_equal(team.error, "member 1 failed");
    assert_int_equal(trace.looked, 0);
    assert_int_equal(trace.ran, 0);
    assert_int_equal(trace.finished, 3);
    team_free(&team);
}

static void note_cpus(struct team_member *member) {
    static struct cpu_list mine; /* one member */
    assert_true(place_allowed(&mine));
    *(int *)member->context = mine.count;
    member->work = 1;
}

/*
 * Work that sleeps may move: its affinity is that of the whole list, and the CPU reported is where
 * it ended.
 */
static void members_may_move(void **state) {
    (void)state;
    static struct cpu_list allowed;
    int count = 0;
    const struct team_job noting = {.run = note_cpus};
    const struct team_plan plan = {.work = 1, .shared_cpus = &allowed};
    struct team team;
    use_threads(1);
    assert_true(place_allowed(&allowed));
    assert_true(team_run(&team, &cpus, &plan, &noting, &count));
    assert_int_equal(count, allowed.count);
    assert_true(cpu_list_has(&allowed, team.members[0].cpu));
    team_free(&team);
}

static void a_cpu_that_is_not_there(void **state) {
    (void)state;
    struct trace trace = {.fail_at = -1, .caller = pthread_self()};
    struct team team;
    const struct team_plan plan = {.seconds = 1000};
    use_threads(2);
    cpus.cpu[1] = CPU_LIST_MAX - 1;
    assert_false(team_run(&team, &cpus, &plan, &job, &trace));
    assert_non_null(strstr(team.error, "cannot be pinned to CPU 8191"));
    team_free(&team);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_sum_to_the_total),
        cmocka_unit_test(timed_run),
        cmocka_unit_test(time_of_a_line_between_two_cores),
        cmocka_unit_test(members_that_share_cpus_measure_no_line),
        cmocka_unit_test(fixed_work),
        cmocka_unit_test(failure_ends_all),
        cmocka_unit_test(members_may_move),
        cmocka_unit_test(a_cpu_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
