/* cpubench as a process: what it prints, exact work, exit codes, and the sentence for each wrong
 * command line. */
#include "process.h"

#include "common/clock.h"
#include "common/isa.h"

/* In a sanitizer's loop, and on an emulator's core, the chain is not what binds. */
#if defined(__x86_64__) && !defined(INSTRUMENTED)
#define REPORTS_CLOCK 1
#endif

static struct process *cpubench(const char *workload, const char *option, const char *value) {
    return process_run(NULL,
                       ARGV("cpubench", "--workload", workload, option, value, "--warmup", "0.01"));
}

static void every_workload_is_measured_and_right(void **state) {
    (void)state;
    static const char *const workloads[] = {"QP",   "HP",    "SP",      "DP",
                                            "FP32", "DPMIX", "FP32MIX", "QPDOT"};
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        for (int isa = 0; isa < ISA_COUNT; isa++) {
            struct process *process = process_run(
                NULL, ARGV("cpubench", "--workload", workloads[i], "--isa", isa_name((enum isa)isa),
                           "--threads", "2", "--operations", "1e8", "--warmup", "0"));
            if (!isa_available((enum isa)isa)) {
                process_expect(process, 77, isa_name((enum isa)isa));
                continue;
            }
            assert_int_equal(process->status, 0);
            assert_memory_equal(json_at(process, "workload") + 1, workloads[i],
                                strlen(workloads[i]));
            assert_memory_equal(json_at(process, "isa") + 1, isa_name((enum isa)isa),
                                strlen(isa_name((enum isa)isa)));
            assert_true(json_number(process, "work") >= 1e8 &&
                        json_number(process, "work") < 1.001e8);
            assert_true(json_number(process, "threads") == 2);
            double rate = json_number(process, "work") / json_number(process, "seconds");
            assert_true(json_number(process, "value") > 0.999 * rate &&
                        json_number(process, "value") < 1.001 * rate);
            process_free(process);
        }
    }
}

/* What this CPU lacks is not possible, with the reason; the rest is right. */
static void units_are_measured_or_missing(void **state) {
    (void)state;
    static const char *const units[] = {"FP16", "BF16DOT", "QPMM", "BF16MM"};
    for (size_t i = 0; i < 4; i++) {
        struct process *process = cpubench(units[i], "--operations", "1e8");
        if (process->status == 0) {
            assert_true(json_number(process, "work") >= 1e8);
            process_free(process);
        } else {
            process_expect(process, 77, units[i]);
        }
    }
}

/* Whether rate, clock and counts agree; nothing executes more than 8 vector instructions a
 * cycle. */
static void the_record_explains_the_rate(void **state) {
    (void)state;
    struct process *process = cpubench("DP", "--seconds", "0.05");
    assert_int_equal(process->status, 0);
    double clock =
        (json_number(process, "clock_hz_before") + json_number(process, "clock_hz_after")) / 2;
    if (strncmp(json_at(process, "clock_hz_loaded"), "null", 4) != 0) {
        clock = json_number(process, "clock_hz_loaded");
    }
    double rate = json_number(process, "instructions_per_cycle") * clock *
                  json_number(process, "operations_per_instruction");
    assert_true(json_number(process, "value") > 0.999 * rate &&
                json_number(process, "value") < 1.001 * rate);
    assert_true(json_number(process, "instructions_per_cycle") < 8);
    /* On a busy machine a thread begins late and still ends in time. */
    assert_true(json_number(process, "seconds") > 0);
    assert_memory_equal(json_at(process, "unit"), "\"op/s\"", 6);
    assert_memory_equal(json_at(process, "work_unit"), "\"op\"", 4);
    assert_non_null(strstr(json_at(process, "instruction"), "fm"));
    assert_memory_equal(json_at(process, "warnings"), "[]}\n", 4);
    process_free(process);
}

#ifdef REPORTS_CLOCK
/* In work that lasts long enough for some samples the clock rate is known, except where something
 * disturbed most of them, or the loads before: not in every run of many. */
static void the_record_has_the_clock_rate_under_the_work(void **state) {
    (void)state;
    enum { RUNS = 30 };
    int load_known = 0;
    for (int run = 0; run < RUNS; run++) {
        struct process *process = cpubench("DP", "--operations", "4e9");
        double seconds;
        assert_int_equal(process->status, 0);
        bool reported = strncmp(json_at(process, "clock_hz_loaded"), "null", 4) != 0 &&
                        json_number(process, "clock_hz_loaded") > 1e8;
        process_free(process);
        if (reported) {
            return;
        }
        load_known += clock_load_cycles(&seconds) > 0;
    }
    if (load_known > RUNS / 2) {
        fail_msg("the latency of a load is known here, yet no run reports the clock rate under its "
                 "work");
    }
    skip_because("the latency of a load is not known here");
}
#endif

/* Three threads on one CPU have a third of it each, however busy it is otherwise. */
static void the_record_tells_who_had_the_cpu(void **state) {
    (void)state;
    struct process *process =
        process_run(NULL, ARGV("cpubench", "--workload", "DP", "--cpus", "0", "--threads", "3",
                               "--seconds", "0.1", "--warmup", "0.01"));
    if (process->status == 2) { /* CPU 0 is not ours */
        process_free(process);
        skip_because("CPU 0 is not among those that this process may use");
        return;
    }
    assert_int_equal(process->status, 0);
    assert_true(json_number(process, "cpu_share") > 0 && json_number(process, "cpu_share") < 0.5);
    process_free(process);
}

static void a_long_run_repeats_the_check(void **state) {
    (void)state;
    struct process *process = cpubench("QP", "--seconds", "0.05");
    assert_int_equal(process->status, 0);
    assert_true(json_number(process, "work") > 0);
    process_free(process);
}

static void threads_share_fixed_work(void **state) {
    (void)state;
    struct process *process = process_run(NULL, ARGV("cpubench", "--workload", "SP", "--threads",
                                                     "3", "--operations", "1e7", "--warmup", "0"));
    assert_int_equal(process->status, 0);
    const char *at = json_at(process, "per_thread");
    double work[3], sum = 0;
    for (int i = 0; i < 3; i++) {
        at = strstr(at, "\"work\": ");
        assert_non_null(at);
        at += strlen("\"work\": ");
        work[i] = strtod(at, NULL);
        sum += work[i];
    }
    assert_true(sum == json_number(process, "work"));
    assert_true(work[0] > 0.99 * work[2] && work[2] > 0.99 * work[0]);
    process_free(process);
}

/* Fewer operations than the threads' smallest steps: each thread does one such step, none stands
 * by. */
static void no_thread_stands_by(void **state) {
    (void)state;
    struct process *process =
        process_run(NULL, ARGV("cpubench", "--workload", "DP", "--threads", "3", "--operations",
                               "1", "--warmup", "0.001"));
    assert_int_equal(process->status, 0);
    const char *at = json_at(process, "per_thread");
    for (int i = 0; i < 3; i++) {
        at = strstr(at, "\"work\": ");
        assert_non_null(at);
        at += strlen("\"work\": ");
        assert_true(strtod(at, NULL) > 0);
    }
    assert_true(json_number(process, "work") < 1e5);
    process_free(process);
}

static void more_threads_than_cpus_warn(void **state) {
    (void)state;
    struct process *process =
        process_run(NULL, ARGV("cpubench", "--workload", "SP", "--cpus", "0", "--threads", "2",
                               "--operations", "1e7", "--warmup", "0"));
    if (process->status == 2) { /* CPU 0 is not ours */
        process_free(process);
        skip_because("CPU 0 is not among those that this process may use");
        return;
    }
    assert_int_equal(process->status, 0);
    assert_non_null(strstr(json_at(process, "warnings"), "2 threads share 1 CPUs"));
    process_free(process);
}

static void wrong_command_lines(void **state) {
    (void)state;
    process_expect(process_run(NULL, ARGV("cpubench")), 2, "--workload is missing");
    process_expect(cpubench("XP", "--seconds", "1"), 2,
                   "'XP' is not one of QP, HP, SP, DP, FP32, DPMIX, FP32MIX, QPDOT");
    process_expect(cpubench("DP", "--seconds", "-1"), 2,
                   "--seconds: '-1' is not a time in seconds");
    process_expect(cpubench("DP", "--operations", "1.5"), 2, "--operations: '1.5' is not a count");
    process_expect(cpubench("DP", "--threads", "0"), 2,
                   "--threads: '0' is not a whole number from 1 to 4096");
    process_expect(cpubench("DP", "--cpus", "0-x"), 2, "--cpus: '0-x' is not a CPU list");
    process_expect(cpubench("DP", "--cpus", "8191"), 2, "CPU 8191 is not among");
    process_expect(cpubench("DP", "--isa", "mmx"), 2, "--isa: 'mmx' is not one of auto, scalar");
    process_expect(cpubench("DP", "--turbo", "1"), 2, "'--turbo' is not an option");
    process_expect(process_run(NULL, ARGV("cpubench", "--workload")), 2,
                   "--workload needs a value");
    process_expect(process_run(NULL, ARGV("cpubench", "DP")), 2, "'DP' is not understood");
    process_expect(process_run(NULL, ARGV("cpubench", "--workload", "DP", "--seconds", "1",
                                          "--operations", "1e9")),
                   2, "exclude each other");
}

static void help_and_version(void **state) {
    (void)state;
    struct process *help = process_run(NULL, ARGV("cpubench", "--help"));
    assert_int_equal(help->status, 0);
    assert_non_null(strstr(help->output, "--operations"));
    assert_non_null(strstr(help->output, "Example: cpubench"));
    assert_string_equal(help->error, "");
    process_free(help);
    struct process *version = process_run(NULL, ARGV("cpubench", "--version"));
    assert_int_equal(version->status, 0);
    char expected[160];
    const bool whole = isa_built_without[0] == '\0';
    snprintf(expected, sizeof expected, "cpubench (peakmark) " PEAKMARK_VERSION "%s%s%s\n",
             whole ? "" : " without", isa_built_without,
             whole ? "" : ", which its compiler or assembler lacks");
    assert_string_equal(version->output, expected);
    process_free(version);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_workload_is_measured_and_right),
        cmocka_unit_test(units_are_measured_or_missing),
        cmocka_unit_test(the_record_explains_the_rate),
#ifdef REPORTS_CLOCK
        cmocka_unit_test(the_record_has_the_clock_rate_under_the_work),
#endif
        cmocka_unit_test(the_record_tells_who_had_the_cpu),
        cmocka_unit_test(a_long_run_repeats_the_check),
        cmocka_unit_test(threads_share_fixed_work),
        cmocka_unit_test(no_thread_stands_by),
        cmocka_unit_test(more_threads_than_cpus_warn),
        cmocka_unit_test(wrong_command_lines),
        cmocka_unit_test(help_and_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
