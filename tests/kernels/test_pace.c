/* The clock under the work: what follows from the samples, how long the chain is, and a
 * comparison with the counter of the processor. */
#include "check.h"

#include <linux/perf_event.h>
#include <math.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/chain.h"
#include "common/clock.h"
#include "cpu/kernel.h"
#include "cpu/pace.h"

enum { LATENCY = 5, PAIRS = PACED_PASSES / 2, CALL = 100000 }; /* cycles of a call */

static struct pace built(void) {
    struct pace pace = {.load_cycles = LATENCY, .load_seconds = LATENCY / 3e9, .overhead = 0};
    pace_restart(&pace);
    return pace;
}

/* A sample of a core with this clock whose chain of `links` takes `stretch` times as long as its
 * loads. */
static void sample(struct pace *pace, double hz, double stretch, bool is_long) {
    unsigned links = is_long ? 9 : 6;
    pace_add(pace, links, PAIRS, stretch * links * LATENCY * PAIRS / hz, CALL / hz, is_long);
}

static void the_clock_of_calm_samples(void **state) {
    (void)state;
    struct pace pace = built();
    assert_true(pace_hz(&pace) == 0);
    for (int i = 0; i < 8; i++) {
        sample(&pace, 2.7e9, 1, false);
        if (pace_wants_long(&pace)) {
            sample(&pace, 2.75e9, 1, true);
        }
    }
    assert_true(pace.long_count == 2);
    assert_true(pace_hz(&pace) > 2.699e9 && pace_hz(&pace) < 2.701e9);
    assert_false(pace_held_up(&pace));
    pace_restart(&pace);
    assert_true(pace_hz(&pace) == 0);
    assert_false(pace_held_up(&pace));
}

static void interruptions_do_not_count(void **state) {
    (void)state;
    struct pace pace = built();
    for (int i = 0; i < 20; i++) {
        sample(&pace, 2.7e9, i % 5 == 0 ? 40 : 1, false);
        if (pace_wants_long(&pace)) {
            sample(&pace, 2.7e9, i % 3 == 0 ? 40 : 1, true);
        }
    }
    assert_true(pace_hz(&pace) > 2.699e9 && pace_hz(&pace) < 2.701e9);
}

/* A neighbour on the core's other thread slows the chain in most samples, by a third or by a tenth,
 * and neither the clock nor the calls. */
static void what_slows_most_samples_is_not_the_clock(void **state) {
    (void)state;
    const double stretches[] = {1.33, 1.1};
    for (int which = 0; which < 2; which++) {
        struct pace pace = built();
        for (int i = 0; i < 40; i++) {
            const double stretch = i % 5 < 4 ? stretches[which] : 1;
            sample(&pace, 2.6e9, stretch, false);
            if (pace_wants_long(&pace)) {
                sample(&pace, 2.6e9, stretch, true);
            }
        }
        assert_true(pace_hz(&pace) > 2.599e9 && pace_hz(&pace) < 2.601e9);
    }
}

/* As the rate is the mean over the run, so is the clock: no median of two steps. */
static void the_mean_follows_a_clock_that_moves(void **state) {
    (void)state;
    struct pace pace = built();
    for (int i = 0; i < 30; i++) {
        sample(&pace, i < 10 ? 2.6e9 : 2.9e9, 1, false);
        if (pace_wants_long(&pace)) {
            sample(&pace, i < 10 ? 2.6e9 : 2.9e9, 1, true);
        }
    }
    assert_true(pace_hz(&pace) > 2.799e9 && pace_hz(&pace) < 2.801e9);
}

/* The work takes 40 cycles, more than the 30 of the chain, and 45 with the longer one: no clock
 * rather than 2.25 GHz. */
static void a_chain_that_does_not_bind_tells_nothing(void **state) {
    (void)state;
    struct pace pace = built();
    for (int i = 0; i < 40; i++) {
        sample(&pace, 3e9, 40.0 / 30, false);
        if (pace_wants_long(&pace)) {
            sample(&pace, 3e9, 1, true);
        }
    }
    assert_true(pace.long_count > 3);
    assert_true(pace_hz(&pace) == 0);
    assert_true(pace_held_up(&pace));
}

/*
 * Something else had the pipes in half of the calls, each of which took twice as long: two thirds
 * were left.
 */
static void calls_that_take_longer_than_calm_ones_had_less_of_the_pipes(void **state) {
    (void)state;
    struct pace pace = built();
    assert_true(pace_share(&pace, 1) == 1);
    for (int i = 0; i < 40; i++) {
        double hz = i < 20 ? 2.6e9 : 2.9e9;
        pace_add(&pace, 6, PAIRS, 6.0 * LATENCY * PAIRS / hz, (i % 2 + 1) * CALL / hz, false);
        if (pace_wants_long(&pace)) {
            sample(&pace, hz, 1, true);
        }
    }
    const double calm = CALL / 2.75e9;
    assert_true(pace_share(&pace, 1.5 * calm) > 0.66 && pace_share(&pace, 1.5 * calm) < 0.68);
    assert_true(pace_share(&pace, calm) > 0.99 && pace_share(&pace, calm) < 1.01);
    assert_true(pace_share(&pace, -calm) == 1);
    assert_false(pace_held_up(&pace));
}

/* A neighbour may hide the latency at the beginning: whether the work was held up is known all the
 * same. */
static void without_a_latency_no_clock_but_who_held_it_up(void **state) {
    (void)state;
    struct pace pace = built();
    pace.load_cycles = 0;
    for (int i = 0; i < 40; i++) {
        sample(&pace, 3e9, 40.0 / 30, false);
        if (pace_wants_long(&pace)) {
            sample(&pace, 3e9, 1, true);
        }
    }
    assert_true(pace_hz(&pace) == 0);
    assert_true(pace_share(&pace, 1) == 1);
    assert_true(pace_held_up(&pace));
}

static void long_runs_are_sampled_to_their_end(void **state) {
    (void)state;
    struct pace pace = built();
    for (int i = 0; i < 4 * PACE_SAMPLES; i++) {
        double hz = i < 2 * PACE_SAMPLES ? 2e9 : 2.2e9;
        sample(&pace, hz, 1, false);
        if (pace_wants_long(&pace)) {
            sample(&pace, hz, 1, true);
        }
    }
    assert_true(pace.count <= PACE_SAMPLES && pace.long_count <= PACE_SAMPLES);
    assert_true(pace.every > PACE_EVERY);
    assert_true(pace_hz(&pace) > 2.0e9 && pace_hz(&pace) < 2.2e9);
}

static void the_chain_is_a_quarter_longer_than_the_work(void **state) {
    (void)state;
    struct pace pace = built();
    assert_int_equal(pace_links(&pace, 23.9 / 3e9, false, false), 6); /* 30 cycles for 24 */
    assert_int_equal(pace_links(&pace, 23.9 / 3e9, false, true), 9);
    assert_true(pace_links(&pace, 1e-3, false, false) ==
                0); /* interrupted: longer than any chain */
    assert_true(pace_links(&pace, 0, false, false) == 0);
    pace.load_seconds = 0;
    assert_true(pace_links(&pace, 24 / 3e9, false, false) == 0);
}

/* A core that needs 13.5 cycles for a turn of plain C with a chain, and 8.3 without: its clock is
 * known where the chain is made for plain C, and there alone. */
static void the_chain_outlasts_its_own_instructions(void **state) {
    (void)state;
    for (int is_plain = 0; is_plain < 2; is_plain++) {
        struct pace pace = {.load_cycles = 4, .load_seconds = 4 / 3e9};
        pace_restart(&pace);
        for (int i = 0; i < 16; i++) {
            for (int is_long = 0; is_long == 0 || (is_long == 1 && pace_wants_long(&pace));
                 is_long++) {
                unsigned links = pace_links(&pace, 8.3 / 3e9, is_plain, is_long);
                double cycles = 4 * links > 13.5 ? 4 * links : 13.5;
                pace_add(&pace, links, PAIRS, cycles * PAIRS / 3e9, CALL / 3e9, is_long);
            }
        }
        assert_int_equal(pace_held_up(&pace), !is_plain);
        assert_true(is_plain ? fabs(pace_hz(&pace) / 3e9 - 1) < 1e-9 : pace_hz(&pace) == 0);
    }
}

static void a_load_takes_whole_cycles(void **state) {
    (void)state;
    double seconds = -1;
    unsigned cycles = clock_load_cycles(&seconds);
    assert_true(cycles == 0 || (cycles >= 2 && cycles <= 8));
    assert_true(seconds >= 0 && seconds < 1e-5);
}

/* Cycles in user space of this thread; -1 where they may not be read. */
static int open_counter(void) {
    struct perf_event_attr wanted = {.type = PERF_TYPE_HARDWARE,
                                     .size = sizeof wanted,
                                     .config = PERF_COUNT_HW_CPU_CYCLES,
                                     .exclude_kernel = 1,
                                     .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0);
}

/* The compiler must not drop the store into the cell, which only the chain reads: gcc 12 did. One
 * load, so that it reads NULL where the store is missing, and does not follow it. */
static __attribute__((noinline)) bool chain_reads_the_store(void) {
    void *cell = NULL, *pointer = &cell;
    __asm__ volatile("" : "+m"(cell));
    cell = &cell;
    CHAIN(1u, pointer);
    return pointer == (void *)&cell;
}

/* The same of the chain without branches, whose loads follow each other: the cell holds another
 * cell's address where the store is missing. */
static __attribute__((noinline)) bool chain_of_64_reads_the_store(void) {
    void *other = &other, *cell = &other, *pointer = &cell;
    __asm__ volatile("" : "+m"(cell), "+m"(other));
    cell = &cell;
    CHAIN_64(pointer);
    return pointer == (void *)&cell;
}

static void chains_read_what_was_stored_before(void **state) {
    (void)state;
    assert_true(chain_reads_the_store());
    assert_true(chain_of_64_reads_the_store());
}

/* Every kernel with a chain that is long enough takes the cycles of the chain, by the counter
 * of the processor. */
static void the_processors_counter_agrees(void **state) {
    (void)state;
    static struct operands operands;
    static _Alignas(64) unsigned char start[STATE_BYTES_MAX], result[STATE_BYTES_MAX];
    void *itself = &itself;
    double seconds;
    unsigned latency = clock_load_cycles(&seconds);
    int counter = open_counter();
    if (counter < 0 || latency == 0) {
        print_message("cycles cannot be counted here\n");
        skip();
    }
    for (int table = 0; kernel_tables[table] != NULL; table++) {
        for (const struct kernel *kernel = kernel_tables[table]; kernel->workload != NULL;
             kernel++) {
            uint64_t least = UINT64_MAX, cycles = 0;
            if (!isa_available(kernel->isa) || !isa_feature_available(kernel->feature)) {
                continue;
            }
            reference_inputs(kernel, 1, 0, &operands, start);
            for (int turn = 0; turn < 20; turn++) {
                ioctl(counter, PERF_EVENT_IOC_RESET, 0);
                kernel->paced(PACED_PASSES, &operands, start, result, 40, &itself);
                assert_int_equal(read(counter, &cycles, sizeof cycles), sizeof cycles);
                least = cycles < least ? cycles : least;
            }
            double expected = 40.0 * latency * PAIRS;
            if ((double)least < 0.98 * expected || (double)least > 1.03 * expected) {
                fail_msg("%s with %s: %lu cycles, but the chain takes %.0f", kernel->workload,
                         kernel->instruction, (unsigned long)least, expected);
            }
        }
    }
    close(counter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_of_calm_samples),
        cmocka_unit_test(interruptions_do_not_count),
        cmocka_unit_test(what_slows_most_samples_is_not_the_clock),
        cmocka_unit_test(the_mean_follows_a_clock_that_moves),
        cmocka_unit_test(a_chain_that_does_not_bind_tells_nothing),
        cmocka_unit_test(calls_that_take_longer_than_calm_ones_had_less_of_the_pipes),
        cmocka_unit_test(without_a_latency_no_clock_but_who_held_it_up),
        cmocka_unit_test(long_runs_are_sampled_to_their_end),
        cmocka_unit_test(chains_read_what_was_stored_before),
        cmocka_unit_test(the_chain_is_a_quarter_longer_than_the_work),
        cmocka_unit_test(the_chain_outlasts_its_own_instructions),
        cmocka_unit_test(a_load_takes_whole_cycles),
        cmocka_unit_test(the_processors_counter_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
