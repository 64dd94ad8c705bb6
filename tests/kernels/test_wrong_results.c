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
#include "memory/numa.h"

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

static uint64_t write_faulty(const struct sweep *sweep) {
    sound_sweeper->write(sweep);
    sweep->target[sweep->first * sweep->stride] ^= sched_getcpu() == victim;
    return 0;
}

static uint64_t triad_faulty(const struct sweep *sweep) {
    sound_sweeper->triad(sweep);
    sweep->target[sweep->first * sweep->stride] ^= sched_getcpu() == victim;
    return 0;
}

static void sweep_memory(enum operation operation) {
    static struct cpu_list allowed;
    allowed = choose_victim();
    sound_sweeper = sweeper_find(ISA_SCALAR);
    struct sweeper faulty = *sound_sweeper;
    faulty.read = read_faulty;
    faulty.triad = triad_faulty;
    struct bench bench = {
        .operation = operation, .block = 4096, .blocks = 2, .seed = 1, .sweeper = &faulty};
    const struct team_plan plan = {.work = 1 << 20};
    struct team team;
    if (!team_run(&team, &allowed, &plan, &bench_sweep_job, &bench)) {
        report_failure(&team);
    }
}

static void read_memory(void) {
    sweep_memory(OPERATION_READ);
}

static void add_in_memory(void) {
    sweep_memory(OPERATION_TRIAD);
}

/* Measures from the first node to its memory, and to that of another number. */
static void measure_nodes(sweep_function *sweep, int other) {
    static struct cpu_list allowed;
    allowed = choose_victim();
    struct cpu_location *locations = calloc((size_t)allowed.count, sizeof *locations);
    assert_non_null(locations);
    topology_locate("/sys/devices/system/cpu", &allowed, locations);
    const int node = locations[0].node;
    for (int i = 0; i < allowed.count; i++) {
        locations[i].node = node;
    }
    struct numa numa = {
        .sweep = sweep, .writes = sweep == write_faulty, .bytes = HUGE_PAGE, .seconds = 0.01};
    numa.map = (struct numa_map){
        .cores = 1, .memories = 2, .core = {node}, .memory = {node, node + other}};
    struct team team;
    if (!numa_run(&numa, locations, allowed.count, 0, &team)) {
        report_failure(&team);
    }
}

static void read_nodes(void) {
    sound_sweeper = sweeper_find(ISA_SCALAR);
    measure_nodes(read_faulty, 0);
}

static void write_nodes(void) {
    sound_sweeper = sweeper_find(ISA_SCALAR);
    measure_nodes(write_faulty, 0);
}

/* The kernel says that it binds memory, and does not. */
static void misplace_pages(void) {
    const struct disabled_call unheeded = {.number = SYS_mbind, .error = 0};
    if (!process_disable(&unheeded)) {
        _exit(PROCESS_NOT_DISABLED);
    }
    measure_nodes(sweeper_find(ISA_SCALAR)->read, 1);
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
    expect_victim(read_memory);
    expect_victim(add_in_memory);
}

static void a_core_that_reads_or_writes_a_node_wrong(void **state) {
    (void)state;
    expect_victim(read_nodes);
    expect_victim(write_nodes);
}

static void pages_on_another_node(void **state) {
    (void)state;
    struct process *process = process_run_job(misplace_pages);
    if (process->status == PROCESS_NOT_DISABLED) {
        process_free(process);
        skip_because("the kernel lets no system call be disabled");
        return;
    }
    process_expect(process, 1, "pages that were bound to NUMA node");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_that_computes_wrong),
        cmocka_unit_test(a_core_that_reads_wrong),
        cmocka_unit_test(a_core_that_reads_or_writes_a_node_wrong),
        cmocka_unit_test(pages_on_another_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
