/* mpibench as processes of mpirun: what the first rank prints, exit codes, and the sentence for
 * each fault of a library or rank. */
#include "process.h"

#include "common/options.h"

#define mpibench(ranks, ...)                                                                       \
    process_run(NULL, ARGV("/usr/bin/env", "mpirun", "-np", ranks, program(), "--warmup", "0.01",  \
                           "--seconds", "0.05", __VA_ARGS__))

static const char *program(void) {
    static char path[4096];
    const char *kernels = getenv("KERNELS");
    snprintf(path, sizeof path, "%s/mpibench", kernels != NULL ? kernels : "../../build/kernels");
    return path;
}

/* Open MPI refuses more ranks than CPUs, and the user root, unless these say otherwise. */
static int set_up(void **state) {
    (void)state;
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    return 0;
}

static void need_mpi(void) {
    if (access(program(), X_OK) != 0) {
        skip_because(
            "mpibench was not compiled: without mpicc and its headers, or for a sanitizer");
    }
    struct process *process = process_run(NULL, ARGV("/usr/bin/env", "mpirun", "--version"));
    const int status = process->status;
    process_free(process);
    if (status != 0) {
        skip_because("mpirun is not here");
    }
}

static const char *const of_ranks[] = {"MSGRATE", "ALLREDUCE", "ALLTOALL", "BARRIER", "BCAST"};
static const char *const of_times[] = {"PINGPONG", "ALLREDUCE", "ALLTOALL", "BARRIER", "BCAST"};

static bool is_one_of(const char *workload, const char *const *names) {
    for (int i = 0; i < 5; i++) {
        if (strcmp(names[i], workload) == 0) {
            return true;
        }
    }
    return false;
}

/* Number of members of an array of numbers. */
static int length_of(const struct process *process, const char *key) {
    int count = 1;
    for (const char *at = json_at(process, key); *at != ']'; at++) {
        count += *at == ',';
    }
    return count;
}

static void check_record(const char *workload, const char *ranks, struct process *process) {
    if (process->status != 0) {
        fail_msg("%s on %s ranks: exit %d: %s", workload, ranks, process->status, process->error);
    }
    const bool is_time = is_one_of(workload, of_times);
    const double work = json_number(process, "work"), seconds = json_number(process, "seconds");
    const double value = json_number(process, "value"), rate = work / seconds;
    assert_memory_equal(json_at(process, "workload") + 1, workload, strlen(workload));
    assert_true(json_number(process, "threads") == atoi(ranks));
    assert_true(json_number(process, "ranks") == atoi(ranks));
    assert_true(seconds >= 0.05);
    assert_true(is_time ? value * rate > 0.999 && value * rate < 1.001
                        : value > 0.999 * rate && value < 1.001 * rate);
    assert_true(length_of(process, "repetitions") >= 10);
    assert_non_null(strstr(json_at(process, "mpi_library"), "MPI"));
    assert_memory_equal(json_at(process, "checked"),
                        strcmp(workload, "BARRIER") == 0 ? "false" : "true", 4);
    if (is_time) {
        assert_true(json_number(process, "timed_calls") >= 1);
        assert_percentiles(process);
    }
    process_free(process);
}

static void every_workload_is_measured_by_two_ranks(void **state) {
    (void)state;
    static const char *const workloads[] = {"PINGPONG",  "RATE",     "BIRATE",  "MSGRATE",
                                            "ALLREDUCE", "ALLTOALL", "BARRIER", "BCAST"};
    need_mpi();
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        check_record(workloads[i], "2", mpibench("2", "--workload", workloads[i]));
    }
}

static void blocks_of_any_size_arrive_whole(void **state) {
    (void)state;
    static const char *const sizes[] = {"1", "1001", "64KiB", "1MiB"};
    need_mpi();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct process *process = mpibench("2", "--workload", "PINGPONG", "--block", sizes[i]);
        uint64_t bytes = 0;
        parse_size(sizes[i], &bytes);
        assert_true(json_number(process, "block") == (double)bytes);
        check_record("PINGPONG", "2", process);
    }
    check_record("ALLREDUCE", "2", mpibench("2", "--workload", "ALLREDUCE", "--block", "1MiB"));
    check_record("ALLTOALL", "2", mpibench("2", "--workload", "ALLTOALL", "--block", "1001"));
}

static void many_workloads_are_measured_by_four_ranks(void **state) {
    (void)state;
    need_mpi();
    for (size_t i = 0; i < sizeof of_ranks / sizeof of_ranks[0]; i++) {
        check_record(of_ranks[i], "4", mpibench("4", "--workload", of_ranks[i]));
    }
}

/* All ranks on one CPU: a rank waits until the scheduler takes the other off it. */
static void more_ranks_than_cpus_are_a_warning(void **state) {
    (void)state;
    static struct cpu_list allowed;
    char cpu[16];
    need_mpi();
    assert_true(place_allowed(&allowed));
    snprintf(cpu, sizeof cpu, "%d", allowed.cpu[0]);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    struct process *process = mpibench("4", "--workload", "BARRIER", "--cpus", cpu);
    unsetenv("OMPI_MCA_hwloc_base_binding_policy");
    assert_int_equal(process->status, 0);
    assert_memory_equal(json_at(process, "oversubscribed"), "true", 4);
    assert_true(json_number(process, "cpus") == 1);
    assert_non_null(strstr(json_at(process, "warnings"), "more ranks than CPUs"));
    process_free(process);
}

/* Runs with a fault of the library. */
static struct process *with_fault(const char *fault, const char *workload, const char *timeout) {
    char preload[4200];
    need_mpi();
    snprintf(preload, sizeof preload, "LD_PRELOAD=%.*s/tests/libmpifaults.so",
             (int)(strrchr(program(), '/') - program()), program());
    return process_run(fault, ARGV("/usr/bin/env", "mpirun", "-np", "2", "/usr/bin/env", preload,
                                   program(), "--workload", workload, "--warmup", "0.01",
                                   "--seconds", "20", "--timeout", timeout));
}

static void a_wrong_sum_names_the_rank(void **state) {
    (void)state;
    struct process *process = with_fault("MPI_FAULT=sum", "ALLREDUCE", "60");
    assert_non_null(strstr(process->output, "{\"wrong_cpus\": ["));
    assert_null(strstr(process->output, "value"));
    assert_non_null(strstr(process->error, "mpibench: rank 1 on CPU "));
    process_expect(process, 1, "got a wrong sum from ALLREDUCE");
}

static void a_wrong_message_names_the_rank(void **state) {
    (void)state;
    process_expect(with_fault("MPI_FAULT=message", "PINGPONG", "60"), 1,
                   "got wrong data from PINGPONG: the value is not reported");
}

/* mpirun tells which rank was lost, in its own words. */
static void a_lost_rank_ends_the_run(void **state) {
    (void)state;
    struct process *process = with_fault("MPI_FAULT=lost", "PINGPONG", "60");
    assert_int_not_equal(process->status, 0);
    assert_null(strstr(process->output, "value"));
    process_free(process);
}

static void a_rank_that_hangs_is_a_timeout(void **state) {
    (void)state;
    process_expect(with_fault("MPI_FAULT=hang", "PINGPONG", "2"), 1,
                   "mpibench: the ranks have not finished within the timeout");
}

static void an_error_of_the_library_is_reported(void **state) {
    (void)state;
    process_expect(with_fault("MPI_FAULT=error", "PINGPONG", "60"), 1,
                   "mpibench: rank 1: the MPI library reports: ");
}

static void wrong_command_lines_are_refused(void **state) {
    (void)state;
    need_mpi();
    process_expect(mpibench("2", "--seed", "1"), 2, "--workload is missing");
    process_expect(mpibench("2", "--workload", "BARRIER", "--block", "8"), 2,
                   "--block does not belong to BARRIER");
    process_expect(mpibench("2", "--workload", "RATE", "--block", "2GiB"), 2, "at most 1GiB");
    process_expect(mpibench("2", "--workload", "ALLREDUCE", "--block", "12"), 2,
                   "a multiple of 8 bytes");
    process_expect(mpibench("2", "--workload", "RATE", "--seconds", "0"), 2, "measures nothing");
    process_expect(mpibench("1", "--workload", "BCAST"), 2, "needs 2 ranks or more");
    process_expect(mpibench("3", "--workload", "MSGRATE"), 2,
                   "needs an even number of ranks, and was started with 3");
    process_expect(mpibench("4", "--workload", "RATE"), 2, "needs 2 ranks, and was started with 4");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_workload_is_measured_by_two_ranks),
        cmocka_unit_test(blocks_of_any_size_arrive_whole),
        cmocka_unit_test(many_workloads_are_measured_by_four_ranks),
        cmocka_unit_test(more_ranks_than_cpus_are_a_warning),
        cmocka_unit_test(a_wrong_sum_names_the_rank),
        cmocka_unit_test(a_wrong_message_names_the_rank),
        cmocka_unit_test(a_lost_rank_ends_the_run),
        cmocka_unit_test(a_rank_that_hangs_is_a_timeout),
        cmocka_unit_test(an_error_of_the_library_is_reported),
        cmocka_unit_test(wrong_command_lines_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
