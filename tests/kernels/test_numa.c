/* From NUMA node to NUMA node: the nodes from folders as the kernel shows them, where pages lie,
 * and a matrix of this machine's first node with itself. */
#include "machine_root.h"

#include <unistd.h>

#include "memory/numa.h"
#include "process.h"

#define CPUS 8 /* 2 sockets, 2 NUMA nodes each, 2 CPUs each; nodes 6 and 7 have memory only */

/* root/cpu0 stands for /sys/devices/system, which has the folders cpu and node. */
static char cpu_folder[80];

static void system_fact(const char *name, int number, const char *text) {
    char path[64];
    snprintf(path, sizeof path, name, number);
    fact(0, path, "%s", text);
}

static int make_machine(void **state) {
    static const char *const lists[] = {"0-1", "2-3", "4-5", "6-7", "", ""};
    static const char *const distances[] = {"10 12 32 32 17 40", "12 10 32 32 17 40",
                                            "32 32 10 12 40 17", "32 32 12 10 40 17",
                                            "17 17 40 40 10 50", "40 40 17 17 50 10"};
    int failed = make_root(state);
    snprintf(cpu_folder, sizeof cpu_folder, "%s/cpu0/cpu", root);
    for (int cpu = 0; cpu < CPUS && failed == 0; cpu++) {
        char node[64];
        snprintf(node, sizeof node, "cpu/cpu%d/node%d/cpumap", cpu, cpu / 2);
        system_fact(node, 0, "");
        system_fact("cpu/cpu%d/topology/physical_package_id", cpu, cpu < CPUS / 2 ? "0" : "1");
    }
    system_fact("node/online", 0, "0-3,6-7");
    for (int i = 0; i < 6 && failed == 0; i++) {
        const int node = i < 4 ? i : i + 2;
        system_fact("node/node%d/cpulist", node, lists[i]);
        system_fact("node/node%d/distance", node, distances[i]);
    }
    return failed;
}

/* CPUs of two nodes only, and the memory of all but one. */
static void each_node_has_its_socket(void **state) {
    (void)state;
    static const struct cpu_list cpus = {.count = 3, .cpu = {7, 1, 0}},
                                 memories = {.count = 5, .cpu = {0, 1, 3, 6, 7}};
    static struct numa_map map;
    struct cpu_location locations[3];
    const enum numa_place wanted[2][5] = {
        {NUMA_LOCAL, NUMA_SAME_SOCKET, NUMA_OTHER_SOCKET, NUMA_SAME_SOCKET, NUMA_OTHER_SOCKET},
        {NUMA_OTHER_SOCKET, NUMA_OTHER_SOCKET, NUMA_LOCAL, NUMA_OTHER_SOCKET, NUMA_SAME_SOCKET}};
    topology_locate(cpu_folder, &cpus, locations);
    numa_read(cpu_folder, locations, 3, &memories, &map);
    assert_int_equal(map.cores, 2);
    assert_int_equal(map.memories, 5);
    assert_true(map.core[0] == 0 && map.core[1] == 3 && map.memory[4] == 7);
    for (int core = 0; core < 2; core++) {
        for (int memory = 0; memory < 5; memory++) {
            assert_int_equal(numa_place_of(&map, core, memory), wanted[core][memory]);
        }
    }
}

static void pages_lie_where_the_kernel_says(void **state) {
    (void)state;
    struct arena arena;
    const long page = sysconf(_SC_PAGESIZE);
    int where = 0;
    assert_true(arena_create(&arena, (size_t)(3 * page), false));
    long elsewhere = numa_elsewhere(&arena, 0, &where);
    if (elsewhere < 0) {
        arena_destroy(&arena);
        skip_because("the kernel does not tell where pages lie");
    }
    assert_true(elsewhere == 3 && where == -1); /* untouched */
    memset(arena.base, 1, arena.bytes);
    elsewhere = numa_elsewhere(&arena, 1000, &where);
    assert_true(elsewhere == 3 && where >= 0 && where < NUMA_NODES);
    assert_int_equal(numa_elsewhere(&arena, where, &where), 0);
    arena_destroy(&arena);
}

/* Fills a matrix of this machine's node of the first CPU, with its memory twice. */
static void matrix(struct numa *numa, struct team *team) {
    static struct cpu_list allowed;
    struct cpu_location locations[2];
    assert_true(place_allowed(&allowed));
    allowed.count = allowed.count > 2 ? 2 : allowed.count;
    topology_locate("/sys/devices/system/cpu", &allowed, locations);
    locations[1].node = locations[0].node;
    numa->map = (struct numa_map){.cores = 1,
                                  .memories = 2,
                                  .core = {locations[0].node},
                                  .memory = {locations[0].node, locations[0].node}};
    numa->bytes = HUGE_PAGE;
    numa->seconds = 0.01;
    bool good = numa_run(numa, locations, allowed.count, 0.001, team);
    assert_string_equal(team->error, "");
    assert_true(good);
}

static void every_pair_has_its_value(void **state) {
    (void)state;
    struct team team;
    const struct sweeper *sweeper = sweeper_find(ISA_COUNT);
    struct numa numas[] = {{.sweep = NULL},
                           {.sweep = sweeper->read, .huge_pages = true},
                           {.sweep = sweeper->write, .writes = true},
                           {.sweep = sweeper->write_streaming, .writes = true}};
    for (size_t i = 0; i < sizeof numas / sizeof *numas; i++) {
        struct numa *numa = &numas[i];
        if (i == 3 && numa->sweep == NULL) {
            continue;
        }
        matrix(numa, &team);
        for (int pair = 0; pair < 2; pair++) {
            double value = numa->values[pair];
            assert_true(i == 0 ? value > 1e-10 && value < 1e-4 : value > 1e6 && value < 1e13);
        }
        assert_true(team.work > 0);
        free(numa->values);
        team_free(&team);
    }
}

static void machines_of_one_node_are_refused(void **state) {
    (void)state;
    static const char *const workloads[] = {"NUMA-RS", "NUMA-WS", "NUMA-LAT"};
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        struct process *process =
            process_run(NULL, ARGV("rambench", "--workload", workloads[i], "--threads", "2",
                                   "--pool", "64MiB", "--seconds", "0.05", "--warmup", "0.01"));
        if (process->status == 0) { /* this machine has more */
            assert_true(json_number(process, "value") > 0);
            process_free(process);
        } else {
            process_expect(process, 77, "measures from NUMA node to NUMA node");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_node_has_its_socket),
        cmocka_unit_test(pages_lie_where_the_kernel_says),
        cmocka_unit_test(every_pair_has_its_value),
        cmocka_unit_test(machines_of_one_node_are_refused),
    };
    return cmocka_run_group_tests(tests, make_machine, remove_root);
}
