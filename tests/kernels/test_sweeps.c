/*
 * Reads, writes, copies and triads of every instruction set this CPU has: each byte once per visit,
 * and no byte more.
 */
#include "check.h"

#include "common/random.h"
#include "memory/sweep.h"

enum {
    BLOCKS = 5,
    LARGEST = 2 * SWEEP_GROUP + 3 * LINE_BYTES,
    AREA = BLOCKS * LARGEST + 2 * LINE_BYTES
};
static _Alignas(64) unsigned char source[AREA], target[AREA], wanted[AREA];
static _Alignas(64) double numbers[AREA / sizeof(double)], scaled[AREA / sizeof(double)];
/* Shorter than a group, a group, groups with a rest. */
static const size_t blocks[] = {64, 192, SWEEP_GROUP, SWEEP_GROUP + 64, 2 * SWEEP_GROUP, LARGEST};
static const uint32_t order[] = {9, 3, 0, 4, 1, 2, 9}; /* five blocks; 9 must not be looked at */

typedef void check_function(const struct sweeper *sweeper, size_t block);

static void for_each(check_function *check) {
    int tried = 0;
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const struct sweeper *sweeper = sweeper_find((enum isa)isa);
        if (sweeper == NULL) {
            continue;
        }
        tried++;
        assert_int_equal(sweeper->isa, isa);
        for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
            check(sweeper, blocks[i]);
        }
    }
    /* Plain C, and on the two architectures that have vectors here those of each CPU. */
    const bool vectors = isa_available(ISA_SSE2) || isa_available(ISA_NEON);
    assert_true(tried >= (vectors ? 2 : 1));
}

static void fill(void) {
    struct random_state random;
    random_seed(&random, 1, 0);
    random_fill(&random, source, sizeof source);
    random_fill(&random, target, sizeof target);
    memcpy(wanted, target, sizeof target);
}

static uint64_t word_at(const unsigned char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint64_t sum(const unsigned char *at, size_t bytes) {
    uint64_t total = 0;
    for (size_t i = 0; i < bytes; i += 8) {
        total += word_at(at + i);
    }
    return total;
}

static void reads_all_once(const struct sweeper *sweeper, size_t block) {
    fill();
    struct sweep same = {.source = source + LINE_BYTES, .block = block, .count = 7};
    assert_true(sweeper->read(&same) == 7 * sum(source + LINE_BYTES, block));
    struct sweep pool = {.source = source, .block = block, .stride = block, .first = 1, .count = 3};
    assert_true(sweeper->read(&pool) == sum(source + block, 3 * block));
    pool.order = order;
    pool.count = 4; /* blocks 3, 0, 4, 1 */
    assert_true(sweeper->read(&pool) ==
                sum(source, 2 * block) + sum(source + 3 * block, 2 * block));
    pool.count = 0;
    assert_true(sweeper->read(&pool) == 0);
}

static void put(size_t at, size_t bytes, uint64_t value) {
    for (size_t i = at; i < at + bytes; i += 8) {
        memcpy(wanted + i, &value, sizeof value);
    }
}

static void writes_all_and_no_more(sweep_function *write, size_t block) {
    fill();
    struct sweep same = {
        .target = target + LINE_BYTES, .block = block, .count = 7, .value = UINT64_MAX - 3};
    write(&same);
    put(LINE_BYTES, block, 2); /* UINT64_MAX - 3 + 6, wrapped around */
    assert_memory_equal(target, wanted, sizeof target);
    fill();
    struct sweep pool = {
        .target = target, .block = block, .stride = block, .order = order, .first = 2, .count = 3};
    pool.value = 100;
    write(&pool); /* blocks 0, 4, 1 */
    put(0, block, 100);
    put(4 * block, block, 101);
    put(block, block, 102);
    assert_memory_equal(target, wanted, sizeof target);
}

static void copies_all_and_no_more(sweep_function *copy, size_t block) {
    fill();
    struct sweep pool = {.source = source,
                         .target = target,
                         .block = block,
                         .stride = block,
                         .order = order,
                         .first = 2,
                         .count = 2};
    copy(&pool); /* blocks 0 and 4 */
    memcpy(wanted, source, block);
    memcpy(wanted + 4 * block, source + 4 * block, block);
    assert_memory_equal(target, wanted, sizeof target);
    /* To one line below itself: each visit moves the data on by one line, so the number of visits
     * shows. */
    fill();
    struct sweep shift = {
        .source = target + LINE_BYTES, .target = target, .block = block, .count = 3};
    copy(&shift);
    for (int visit = 0; visit < 3; visit++) {
        memmove(wanted, wanted + LINE_BYTES, block);
    }
    assert_memory_equal(target, wanted, sizeof target);
}

/* wanted = numbers + 3 * scaled in a block of whole numbers, whose sums no rounding changes. */
static void put_sums(size_t at, size_t bytes) {
    for (size_t i = at; i < at + bytes; i += sizeof(double)) {
        const double sum = numbers[i / sizeof sum] + 3 * scaled[i / sizeof sum];
        memcpy(wanted + i, &sum, sizeof sum);
    }
}

static void adds_all_and_no_more(sweep_function *triad, size_t block) {
    fill();
    for (size_t i = 0; i < AREA / sizeof(double); i++) {
        numbers[i] = (double)(word_at(source + i * sizeof(double)) >> 32);
        scaled[i] = (double)(word_at(source + i * sizeof(double)) & UINT32_MAX);
    }
    struct sweep pool = {.source = (const unsigned char *)numbers,
                         .scaled = (const unsigned char *)scaled,
                         .target = target,
                         .factor = 3,
                         .block = block,
                         .stride = block,
                         .order = order,
                         .first = 2,
                         .count = 2};
    triad(&pool); /* blocks 0 and 4 */
    put_sums(0, block);
    put_sums(4 * block, block);
    assert_memory_equal(target, wanted, sizeof target);
    /* Onto its first operand: each visit adds 3 once more, so the number of visits shows. */
    for (size_t i = 0; i < AREA / sizeof(double); i++) {
        numbers[i] = scaled[i] = 1;
    }
    struct sweep same = {.source = (const unsigned char *)numbers,
                         .scaled = (const unsigned char *)scaled,
                         .target = (unsigned char *)numbers,
                         .factor = 3,
                         .block = block,
                         .count = 7};
    triad(&same);
    for (size_t i = 0; i < AREA / sizeof(double); i++) {
        assert_true(numbers[i] == (i < block / sizeof(double) ? 22 : 1));
    }
}

static void check_writes(const struct sweeper *sweeper, size_t block) {
    writes_all_and_no_more(sweeper->write, block);
    if (sweeper->write_streaming != NULL) {
        writes_all_and_no_more(sweeper->write_streaming, block);
    }
}

static void check_copies(const struct sweeper *sweeper, size_t block) {
    copies_all_and_no_more(sweeper->copy, block);
    if (sweeper->copy_streaming != NULL) {
        copies_all_and_no_more(sweeper->copy_streaming, block);
    }
}

static void check_triads(const struct sweeper *sweeper, size_t block) {
    adds_all_and_no_more(sweeper->triad, block);
    if (sweeper->triad_streaming != NULL) {
        adds_all_and_no_more(sweeper->triad_streaming, block);
    }
}

static void reads(void **state) {
    (void)state;
    for_each(reads_all_once);
}

static void writes(void **state) {
    (void)state;
    for_each(check_writes);
}

static void copies(void **state) {
    (void)state;
    for_each(check_copies);
}

static void triads(void **state) {
    (void)state;
    for_each(check_triads);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads), cmocka_unit_test(writes),
                                       cmocka_unit_test(copies), cmocka_unit_test(triads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
