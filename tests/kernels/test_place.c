/* The order of CPUs and the size of caches from folders as the kernel shows them, and pinning on
 * this machine. */
#include <errno.h>
#include <sched.h>

#include "common/place.h"
#include "common/report.h"
#include "machine_root.h"
#include "memory/cache.h"

static struct cpu_list cpus, ordered;

static void core(int cpu, const char *package, const char *number) {
    fact(cpu, "topology/physical_package_id", "%s", package);
    fact(cpu, "topology/core_id", "%s", number);
}

static void assert_order(const char *wanted) {
    char text[256] = "";
    for (int i = 0; i < ordered.count; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i > 0 ? "," : "",
                 ordered.cpu[i]);
    }
    assert_string_equal(text, wanted);
}

static void list(int count, const int *numbers) {
    cpus.count = count;
    memcpy(cpus.cpu, numbers, (size_t)count * sizeof *numbers);
}

/* Two sockets of two cores with two hardware threads each; core numbers repeat in each socket. */
static void one_per_core_first(void **state) {
    (void)state;
    static const char *const package[] = {"0", "0", "1", "1", "0", "0", "1", "1"};
    static const char *const number[] = {"0", "1", "0", "1", "0", "1", "0", "1"};
    for (int cpu = 0; cpu < 8; cpu++) {
        core(cpu, package[cpu], number[cpu]);
    }
    list(8, (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
    place_order(root, &cpus, &ordered);
    assert_order("0,1,2,3,4,5,6,7");
    list(5, (const int[]){0, 4, 1, 5, 2}); /* what a job got: siblings side by side */
    place_order(root, &cpus, &ordered);
    assert_order("0,1,2,4,5");
}

static void adjacent_siblings_go_last(void **state) {
    (void)state;
    for (int cpu = 0; cpu < 6; cpu++) {
        core(cpu, "0", (const char *const[]){"0", "0", "1", "1", "2", "2"}[cpu]);
    }
    list(6, (const int[]){0, 1, 2, 3, 4, 5});
    place_order(root, &cpus, &ordered);
    assert_order("0,2,4,1,3,5");
}

/* Even numbers on one socket, odd ones on the other: threads fill a socket before they take the
 * next. */
static void one_socket_after_the_other(void **state) {
    (void)state;
    for (int cpu = 0; cpu < 8; cpu++) {
        core(cpu, cpu % 2 == 0 ? "0" : "1",
             (const char *const[]){"0", "0", "1", "1", "0", "0", "1", "1"}[cpu]);
    }
    list(8, (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
    place_order(root, &cpus, &ordered);
    assert_order("0,2,1,3,4,6,5,7");
    list(3, (const int[]){3, 0, 1});
    place_order(root, &cpus, &ordered);
    assert_order("3,1,0");
}

static void unknown_topology_keeps_the_order(void **state) {
    (void)state;
    list(3, (const int[]){7, 3, 5});
    place_order("/nonexistent", &cpus, &ordered);
    assert_order("7,3,5");
}

static void cache(int cpu, const char *index, const char *level, const char *type, const char *size,
                  const char *shared) {
    static const char *const names[] = {"level", "type", "size", "shared_cpu_list"};
    const char *const texts[] = {level, type, size, shared};
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "cache/%s/%s", index, names[i]);
        fact(cpu, name, "%s", texts[i]);
    }
}

/*
 * Two chiplets with a third-level cache each: a job on one has half of the cache of a job on both.
 */
static void caches_count_once(void **state) {
    struct cache_levels levels;
    (void)state;
    for (int cpu = 0; cpu < 4; cpu++) {
        cache(cpu, "index0", "1", "Data", "32K", (const char *const[]){"0", "1", "2", "3"}[cpu]);
        cache(cpu, "index1", "1", "Instruction", "64K",
              (const char *const[]){"0", "1", "2", "3"}[cpu]);
        cache(cpu, "index3", "3", "Unified", "32768K", cpu < 2 ? "0-1" : "2-3");
    }
    list(2, (const int[]){0, 1});
    assert_true(cache_last_level(root, &cpus) == UINT64_C(32) << 20);
    list(4, (const int[]){0, 1, 2, 3});
    assert_true(cache_last_level(root, &cpus) == UINT64_C(64) << 20);
    assert_true(cache_last_level("/nonexistent", &cpus) == 0);
    cache_read("/nonexistent", 0, &levels);
    assert_int_equal(levels.count, 0);
    cache_read(root, 0, &levels);
    assert_int_equal(levels.count, 2);
    assert_int_equal(levels.level[1], 3);
    assert_true(levels.bytes[0] == UINT64_C(32) << 10 && levels.bytes[1] == UINT64_C(32) << 20);
}

static void pinning_moves_the_thread(void **state) {
    (void)state;
    assert_true(place_allowed(&cpus));
    assert_true(cpus.count >= 1);
    for (int i = 0; i < cpus.count; i++) {
        assert_int_equal(place_pin(cpus.cpu[i]), 0);
        assert_int_equal(sched_getcpu(), cpus.cpu[i]);
        assert_true(place_allowed(&ordered));
        assert_int_equal(ordered.count, 1);
        assert_int_equal(ordered.cpu[0], cpus.cpu[i]);
        assert_int_equal(place_pin_to_any(&cpus), 0);
        assert_true(place_allowed(&ordered));
        assert_int_equal(ordered.count, cpus.count);
    }
    assert_int_equal(place_pin(-1), EINVAL);
    assert_int_equal(place_pin(CPU_LIST_MAX), EINVAL);
}

static void too_many_threads_wrap_around_with_a_warning(void **state) {
    (void)state;
    static struct cpu_list chosen, none;
    struct warnings warnings = {0};
    assert_true(place_allowed(&cpus));
    place_choose(&none, cpus.count, &chosen, &warnings);
    assert_int_equal(chosen.count, cpus.count);
    assert_int_equal(warnings.count, 0);
    place_choose(&none, 2 * cpus.count + 1, &chosen, &warnings);
    assert_int_equal(chosen.count, 2 * cpus.count + 1);
    assert_int_equal(chosen.cpu[2 * cpus.count], chosen.cpu[0]);
    assert_int_equal(warnings.count, 1);
    warnings_free(&warnings);
}

int main(void) {
#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        WITH_ROOT(one_per_core_first),
        WITH_ROOT(adjacent_siblings_go_last),
        WITH_ROOT(one_socket_after_the_other),
        cmocka_unit_test(unknown_topology_keeps_the_order),
        WITH_ROOT(caches_count_once),
        cmocka_unit_test(pinning_moves_the_thread),
        cmocka_unit_test(too_many_threads_wrap_around_with_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
