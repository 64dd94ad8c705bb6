/* How far CPUs lie apart, from folders as the kernel shows them, and which pairs are measured. */
#include <stdlib.h>

#include "common/place.h"
#include "machine_root.h"
#include "memory/c2c.h"
#include "process.h"

#define CPUS 256 /* 2 sockets, 4 NUMA nodes each, 2 caches each, 8 cores each, 2 threads each */

static struct cpu_list cpus;
static struct cpu_location locations[CPUS];

/* As Linux numbers them: first one thread of every core, then the other. */
static int make_machine(void **state) {
    (void)state;
    if (make_root(NULL) != 0) {
        return -1;
    }
    cpus.count = CPUS;
    for (int cpu = 0; cpu < CPUS; cpu++) {
        int core = cpu % (CPUS / 2);
        char node[32];
        snprintf(node, sizeof node, "node%d/cpulist", core / 16);
        (void)machine_path(cpu, node);
        fact(cpu, "topology/thread_siblings_list", "%d,%d", core, core + CPUS / 2);
        fact(cpu, "topology/physical_package_id", "%d", core / 64);
        fact(cpu, "cache/index0/level", "1");
        fact(cpu, "cache/index0/type", "Data");
        fact(cpu, "cache/index0/shared_cpu_list", "%d,%d", core, core + CPUS / 2);
        fact(cpu, "cache/index3/level", "3");
        fact(cpu, "cache/index3/type", "Unified");
        fact(cpu, "cache/index3/shared_cpu_list", "%d-%d", core / 8 * 8, core / 8 * 8 + 7);
        cpus.cpu[cpu] = CPUS - 1 - cpu; /* in any order */
    }
    topology_locate(root, &cpus, locations);
    return 0;
}

static const struct cpu_location *of_cpu(int cpu) {
    int i = 0;
    while (locations[i].cpu != cpu) {
        i++;
    }
    return &locations[i];
}

static void test_neighbours_stand_beside_each_other(void **state) {
    (void)state;
    assert_int_equal(locations[0].cpu, 0);
    assert_int_equal(locations[1].cpu, CPUS / 2); /* the same core */
    assert_int_equal(locations[2].cpu, 1);
    assert_int_equal(locations[CPUS - 1].cpu, CPUS - 1);
}

static void test_the_distance_is_that_of_the_nearest_thing_shared(void **state) {
    (void)state;
    const struct {
        int cpu;
        enum distance distance;
    } cases[] = {{128, DISTANCE_CORE},
                 {7, DISTANCE_CACHE},
                 {8, DISTANCE_NODE},
                 {63, DISTANCE_SOCKET},
                 {64, DISTANCE_OTHER}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(topology_distance(of_cpu(0), of_cpu(cases[i].cpu)), cases[i].distance);
        assert_int_equal(topology_distance(of_cpu(cases[i].cpu), of_cpu(0)), cases[i].distance);
    }
}

static void test_what_the_system_does_not_tell_lies_apart(void **state) {
    (void)state;
    struct cpu_location unknown[2];
    const struct cpu_list two = {.count = 2, .cpu = {0, 1}};
    topology_locate("/nonexistent", &two, unknown);
    assert_int_equal(topology_distance(&unknown[0], &unknown[1]), DISTANCE_NODE);
}

static void test_every_pair_or_a_sample_of_each_distance(void **state) {
    (void)state;
    struct c2c_pair *all, *sample, *again, *few;
    int of_distance[DISTANCES] = {0};
    assert_int_equal(c2c_choose(locations, CPUS, true, &all), CPUS * (CPUS - 1) / 2);
    assert_int_equal(c2c_choose(locations, C2C_ALL_CPUS, false, &few),
                     C2C_ALL_CPUS * (C2C_ALL_CPUS - 1) / 2);
    int count = c2c_choose(locations, CPUS, false, &sample);
    assert_int_equal(count, DISTANCES * C2C_SAMPLE);
    assert_int_equal(c2c_choose(locations, CPUS, false, &again), count);
    assert_memory_equal(sample, again, (size_t)count * sizeof *sample);
    for (int i = 0; i < count; i++) {
        assert_true(sample[i].first < sample[i].second);
        of_distance[sample[i].distance]++;
    }
    for (int distance = 0; distance < DISTANCES; distance++) {
        assert_int_equal(of_distance[distance], C2C_SAMPLE);
    }
    free(all);
    free(sample);
    free(again);
    free(few);
}

/* The value is that of the only pair. */
static void test_two_cpus_hand_a_line_over(void **state) {
    (void)state;
    static struct cpu_list allowed;
    char named[32];
    int first, second;
    double seconds;
    assert_true(place_allowed(&allowed));
    if (allowed.count < 2) {
        skip_because("two CPUs are needed");
    }
    snprintf(named, sizeof named, "%d,%d", allowed.cpu[0], allowed.cpu[1]);
    struct process *process = process_run(NULL, ARGV("rambench", "--workload", "C2C", "--threads",
                                                     "2", "--cpus", named, "--warmup", "0.01"));
    assert_int_equal(process->status, 0);
    assert_int_equal(
        sscanf(json_at(process, "points"), "[[%d, %d, %lf]]", &first, &second, &seconds), 3);
    assert_int_equal(first + second, allowed.cpu[0] + allowed.cpu[1]);
    assert_true(seconds > 0 && seconds < 1e-3);
    assert_true(json_number(process, "value") == seconds);
    process_free(process);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours_stand_beside_each_other),
        cmocka_unit_test(test_the_distance_is_that_of_the_nearest_thing_shared),
        cmocka_unit_test(test_what_the_system_does_not_tell_lies_apart),
        cmocka_unit_test(test_every_pair_or_a_sample_of_each_distance),
        cmocka_unit_test(test_two_cpus_hand_a_line_over),
    };
    return cmocka_run_group_tests(tests, make_machine, remove_root);
}
