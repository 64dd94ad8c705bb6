/* Random numbers: known values, ranges, permutations. Arenas: alignment and huge pages. */
#include "check.h"

#include "common/arena.h"
#include "common/random.h"

/* First outputs of SplitMix64 from state 1234567, as published with the reference code of the
 * generator. */
static void splitmix_gives_the_published_numbers(void **state) {
    (void)state;
    static const uint64_t published[] = {
        UINT64_C(6457827717110365317), UINT64_C(3203168211198807973), UINT64_C(9817491932198370423),
        UINT64_C(4593380528125082431), UINT64_C(16408922859458223821)};
    uint64_t s = 1234567;
    for (size_t i = 0; i < 5; i++) {
        assert_true(splitmix64(&s) == published[i]);
    }
}

/* xoshiro256** from state {1, 2, 3, 4}: the first outputs by hand from its definition. */
static void xoshiro_follows_its_definition(void **state) {
    (void)state;
    struct random_state random = {.s = {1, 2, 3, 4}};
    assert_true(random_next(&random) == 11520);
    assert_true(random_next(&random) == 0);
    assert_true(random_next(&random) == 1509978240);
}

static void streams_differ_and_repeat(void **state) {
    (void)state;
    struct random_state a, b, c;
    random_seed(&a, 1, 0);
    random_seed(&b, 1, 0);
    random_seed(&c, 1, 1);
    uint64_t first = random_next(&a);
    assert_true(first == random_next(&b));
    assert_true(first != random_next(&c));
}

/* Each of ten values about a tenth of the time: 6 standard deviations are 570 of 100000. */
static void below_is_uniform(void **state) {
    (void)state;
    struct random_state random;
    int counts[10] = {0};
    random_seed(&random, 5, 0);
    for (int i = 0; i < 100000; i++) {
        uint64_t value = random_below(&random, 10);
        assert_true(value < 10);
        counts[value]++;
    }
    for (int i = 0; i < 10; i++) {
        assert_in_range(counts[i], 10000 - 570, 10000 + 570);
    }
    assert_true(random_below(&random, 1) == 0);
}

/* The upper half of number * bound, by another way than random_below takes. */
static void below_scales_the_number(void **state) {
    (void)state;
    const uint64_t bound = (UINT64_C(1) << 40) + 1;
    struct random_state random, copy;
    random_seed(&random, 5, 0);
    copy = random;
    for (int i = 0; i < 1000; i++) {
        const uint64_t number = random_next(&copy), shifted = number << 40;
        assert_true(random_below(&random, bound) ==
                    (number >> 24) + (shifted + number < shifted ? 1 : 0));
    }
}

static void permutations_hold_each_number_once(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    uint32_t order[COUNT];
    bool seen[COUNT] = {false};
    int in_place = 0;
    struct random_state random;
    random_seed(&random, 9, 0);
    random_permutation(&random, order, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(order[i] < COUNT && !seen[order[i]]);
        seen[order[i]] = true;
        in_place += order[i] == i;
    }
    assert_in_range(in_place, 0, 10); /* one is expected */
}

static void filling_takes_any_length(void **state) {
    (void)state;
    struct random_state random;
    for (size_t bytes = 0; bytes < 20; bytes++) {
        unsigned char buffer[32];
        memset(buffer, 0x5a, sizeof buffer);
        random_seed(&random, 1, 0);
        random_fill(&random, buffer, bytes);
        for (size_t i = bytes; i < sizeof buffer; i++) {
            assert_int_equal(buffer[i], 0x5a);
        }
    }
}

static void arenas_are_aligned_and_zero(void **state) {
    (void)state;
    struct arena arena;
    const struct arena *only = &arena;
    assert_true(arena_create(&arena, 3 * HUGE_PAGE + 1, true));
    assert_int_equal((uintptr_t)arena.base % HUGE_PAGE, 0);
    assert_int_equal(arena.bytes, 4 * HUGE_PAGE);
    assert_int_equal(arena_huge_bytes(&only, 1), 0);
    assert_int_equal(arena.base[0] | arena.base[arena.bytes - 1], 0);
    memset(arena.base, 1, arena.bytes);
    size_t huge = arena_huge_bytes(&only, 1);
    assert_true(huge <= arena.bytes && huge % HUGE_PAGE == 0);
    arena_destroy(&arena);
    assert_null(arena.base);
    arena_destroy(&arena);
}

static void small_pages_stay_small(void **state) {
    (void)state;
    struct arena arena;
    const struct arena *only = &arena;
    assert_true(arena_create(&arena, 4 * HUGE_PAGE, false));
    memset(arena.base, 1, arena.bytes);
    assert_int_equal(arena_huge_bytes(&only, 1), 0);
    arena_destroy(&arena);
}

/* Neighbours, which the kernel may show as one mapping, and one on small pages. */
static void huge_pages_of_many_add_up(void **state) {
    (void)state;
    enum { COUNT = 5 };
    struct arena arenas[COUNT];
    const struct arena *all[COUNT];
    size_t sum = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(arena_create(&arenas[i], 2 * HUGE_PAGE, i < COUNT - 1));
        memset(arenas[i].base, 1, arenas[i].bytes);
        all[i] = &arenas[i];
    }
    for (int i = 0; i < COUNT; i++) {
        sum += arena_huge_bytes(&all[i], 1);
    }
    const size_t huge = arena_huge_bytes(all, COUNT);
    assert_true(huge <= sum && huge <= (COUNT - 1) * 2 * HUGE_PAGE);
    assert_true((huge == 0) == (sum == 0));
    for (int i = 0; i < COUNT; i++) {
        arena_destroy(&arenas[i]);
    }
}

static void impossible_sizes_fail(void **state) {
    (void)state;
    struct arena arena;
    assert_false(arena_create(&arena, 0, true));
    assert_false(arena_create(&arena, SIZE_MAX - 5, true));
    assert_false(arena_create(&arena, SIZE_MAX / 4 * 3, false));
    if (sizeof(size_t) == 8) { /* of 32 bits a quarter can be had */
        assert_false(arena_create(&arena, SIZE_MAX / 4, false));
    }
    assert_true(memory_available() > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitmix_gives_the_published_numbers),
        cmocka_unit_test(xoshiro_follows_its_definition),
        cmocka_unit_test(streams_differ_and_repeat),
        cmocka_unit_test(below_is_uniform),
        cmocka_unit_test(below_scales_the_number),
        cmocka_unit_test(permutations_hold_each_number_once),
        cmocka_unit_test(filling_takes_any_length),
        cmocka_unit_test(arenas_are_aligned_and_zero),
        cmocka_unit_test(small_pages_stay_small),
        cmocka_unit_test(huge_pages_of_many_add_up),
        cmocka_unit_test(impossible_sizes_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
