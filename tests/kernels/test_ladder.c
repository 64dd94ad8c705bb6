/* The ladder: its working sets, which of them are a plateau, and rambench's record of it. */
#include "process.h"

#include "memory/ladder.h"

#define KIB UINT64_C(1024)
#define MIB (KIB << 10)

static const struct cache_levels usual = {
    .count = 3, .level = {1, 2, 3}, .bytes = {32 * KIB, MIB, 32 * MIB}};
static struct ladder ladder;
static struct ladder_row rows[CACHE_LEVELS_MAX + 1];

/* A curve with a step behind each cache: 1, 4, 20 and 100. */
static int stepped(const struct cache_levels *caches, int steps, uint64_t most) {
    static const double heights[] = {1, 4, 20, 100};
    ladder_choose(&ladder, caches, steps, most);
    for (int i = 0; i < ladder.points; i++) {
        int level = 0;
        while (level < caches->count && ladder.point[i].bytes > caches->bytes[level]) {
            level++;
        }
        ladder.point[i].value = heights[level];
    }
    return ladder_rows(&ladder, caches, rows);
}

static void sizes_are_even_steps(void **state) {
    (void)state;
    assert_int_equal(ladder_choose(&ladder, &usual, 4, LADDER_MOST), 4 * 13 + 1);
    assert_int_equal(ladder.point[0].bytes, 16 * KIB);
    assert_int_equal(ladder.point[52].bytes, 128 * MIB);
    for (int i = 0; i < ladder.points; i++) {
        assert_int_equal(ladder.point[i].bytes % SWEEP_GROUP, 0);
        assert_true(i < 4 || ladder.point[i].bytes == 2 * ladder.point[i - 4].bytes || i % 4 != 0);
        assert_true(i == 0 || ladder.point[i].bytes > ladder.point[i - 1].bytes);
    }
    assert_int_equal(ladder_choose(&ladder, &usual, 1, 10 * MIB), 10);
    assert_int_equal(ladder_choose(&ladder, &usual, 4, 8 * KIB), 0);
}

static void every_level_is_a_row(void **state) {
    (void)state;
    static const char *const variants[] = {"l1-small", "l2-small", "l3-small", "dram-small"};
    ladder.huge_pages = false;
    for (int steps = 1; steps <= 8; steps *= 2) {
        assert_int_equal(stepped(&usual, steps, LADDER_MOST), 4);
        for (int i = 0; i < 4; i++) {
            assert_string_equal(rows[i].variant, variants[i]);
            assert_true(rows[i].cache == (i < 3 ? usual.bytes[i] : 0));
            assert_true(rows[i].first == (i == 0 ? 0 : rows[i - 1].end));
            assert_true(rows[i].block >= ladder.point[rows[i].first].bytes &&
                        rows[i].block < ladder.point[rows[i].end - 1].bytes + (i != 1));
        }
        assert_true(rows[0].value == 1 && rows[1].value == 4 && rows[2].value == 20);
        assert_true(rows[3].value == 100 && rows[3].end == ladder.points);
    }
}

/* A guest that has 4 of 32 MiB: its row of the cache is what it has of it, of one working set. */
static void a_row_is_one_point_of_its_level(void **state) {
    (void)state;
    stepped(&usual, 1, LADDER_MOST);
    for (int i = 0; i < ladder.points; i++) {
        ladder.point[i].value += (double)i / 100;
        if (ladder.point[i].bytes > 4 * MIB) {
            ladder.point[i].value = 100;
        }
    }
    ladder_rows(&ladder, &usual, rows);
    assert_true(rows[2].block == 2 * MIB && rows[2].value == ladder.point[7].value);
    assert_true(rows[1].block == 64 * KIB && rows[1].value == ladder.point[2].value);
}

/* A ladder that ends before the memory has no row of it; its last points stay on the curve. */
static void a_short_ladder_has_fewer_rows(void **state) {
    (void)state;
    const struct cache_levels two = {.count = 2, .level = {1, 2}, .bytes = {64 * KIB, MIB}};
    ladder.huge_pages = true;
    assert_int_equal(stepped(&usual, 4, 64 * MIB), 3);
    assert_string_equal(rows[2].variant, "l3-huge");
    assert_int_equal(rows[2].end, ladder.points);
    assert_int_equal(stepped(&two, 1, LADDER_MOST), 3);
    assert_string_equal(rows[2].variant, "dram-huge");
    assert_int_equal(stepped(&usual, 1, 16 * KIB), 1);
}

static void records_hold_the_curve(void **state) {
    (void)state;
    static const char *const workloads[] = {"LADDER-LAT", "LADDER-RS"};
    for (int i = 0; i < 2; i++) {
        struct process *process = process_run(
            NULL, ARGV("rambench", "--workload", workloads[i], "--pool", "1MiB", "--steps", "1",
                       "--seconds", "0.02", "--warmup", "0.001", "--huge-pages", "off"));
        if (process->status == 77) {
            skip_because("the system does not tell the sizes of the caches");
        }
        assert_int_equal(process->status, 0);
        assert_non_null(
            strstr(json_at(process, "rows"), "{\"variant\": \"l1-small\", \"value\": "));
        assert_true(json_number(process, "value") > 0 && json_number(process, "work") > 0);
        assert_true(json_number(process, "huge_pages") == 0);
        assert_non_null(strstr(json_at(process, "warnings"), "the ladder ends at 1MiB"));
        process_free(process);
    }
}

static void wrong_command_lines(void **state) {
    (void)state;
    static const char *const wrong[][3] = {{"--threads", "2", "is for one thread"},
                                           {"--block", "1MiB", "sizes of its own"},
                                           {"--total", "1GiB", "sizes of its own"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        process_expect(process_run(NULL, ARGV("rambench", "--workload", "LADDER-RS", wrong[i][0],
                                              wrong[i][1])),
                       2, wrong[i][2]);
    }
    process_expect(
        process_run(NULL, ARGV("rambench", "--workload", "LADDER-LAT", "--pool", "4KiB")), 77,
        "raise --pool");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_even_steps),
        cmocka_unit_test(every_level_is_a_row),
        cmocka_unit_test(a_row_is_one_point_of_its_level),
        cmocka_unit_test(a_short_ladder_has_fewer_rows),
        cmocka_unit_test(records_hold_the_curve),
        cmocka_unit_test(wrong_command_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
