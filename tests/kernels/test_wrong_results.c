/* A core that computes or keeps something wrong: one bit is turned over on one CPU, and the
 * programs name that CPU. */
#include "process.h"

#include <sched.h>

#include "cpu/kernel.h"

static int victim;
static const struct kernel *sound;

/* The kernel as it is, but on the victim's last bit of the result. */
static void run_faulty(uint64_t passes, const struct operands *operands, const void *start,
                       void *result) {
    sound->run(passes, operands, start, result);
    if (sched_getcpu() == victim) {
        *(unsigned char *)result ^= 1;
    }
}

static const struct kernel *find_faulty(const char *workload, enum isa isa, const char **reason) {
    static struct kernel faulty;
    sound = kernel_find(workload, isa, reason);
    faulty = *sound;
    faulty.run = run_faulty;
    return &faulty;
}

#define kernel_find find_faulty
int cpubench_main(int argc, char **argv);
#define main cpubench_main
#include "cpu/cpubench.c"
#undef main
#undef kernel_find
#include "memory/bench.h"

/* The last CPU of those that this process may use. */
static struct cpu_list choose_victim(void) {
    static struct cpu_list allowed;
    assert_true(place_allowed(&allowed));
    victim = allowed.cpu[allowed.count - 1];
    return allowed;
}

static void compute(void) {
    char threads[16];
    struct cpu_list allowed = choose_victim();
    snprintf(threads, sizeof threads, "%d", allowed.count);
    const char *const argv[] = {"cpubench",     "--workload", "DP",       "--threads", threads,
                                "--operations", "1e8",        "--warmup", "0",         NULL};
    cpubench_main(9, (char **)(uintptr_t)argv);
}

static const struct sweeper *sound_sweeper;

static uint64_t read_faulty(const struct sweep *sweep) {
    return sound_sweeper->read(sweep) + (sched_getcpu() == victim);
}

static void sweep_memory(void) {
    static struct cpu_list allowed;
    allowed = choose_victim();
    sound_sweeper = sweeper_find(ISA_SCALAR);
    struct sweeper faulty = *sound_sweeper;
    faulty.read = read_faulty;
    struct bench bench = {
        .operation = OPERATION_READ, .block = 4096, .blocks = 2, .seed = 1, .sweeper = &faulty};
    const struct team_plan plan = {.work = 1 << 20};
    struct team team;
    if (!team_run(&team, &allowed, &plan, &bench_sweep_job, &bench)) {
        report_failure(&team);
    }
}

static void expect_victim(void (*job)(void)) {
    char wanted[64];
    choose_victim();
    struct process *process = process_run_job(job);
    snprintf(wanted, sizeof wanted, "{\"wrong_cpus\": [%d]}\n", victim);
    assert_string_equal(process->output, wanted);
    snprintf(wanted, sizeof wanted, "on CPU %d ", victim);
    process_expect(process, 1, wanted);
}

static void a_core_that_computes_wrong(void **state) {
    (void)state;
    expect_victim(compute);
}

static void a_core_that_reads_wrong(void **state) {
    (void)state;
    expect_victim(sweep_memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_that_computes_wrong),
        cmocka_unit_test(a_core_that_reads_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
