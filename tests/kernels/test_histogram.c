/* The histogram against sorted values, and its bucket borders over the whole range. */
#include "check.h"

#include <math.h>

#include "common/histogram.h"
#include "common/random.h"

static void every_bucket_ends_where_the_next_begins(void **state) {
    (void)state;
    for (unsigned i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        uint64_t next = histogram_lower(i + 1);
        assert_int_equal(histogram_index(next - 1), i);
        assert_int_equal(histogram_index(next), i + 1);
        assert_true(next - histogram_lower(i) <= 1 + histogram_lower(i) / 128);
    }
    assert_int_equal(histogram_index(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
    assert_int_equal(histogram_index(0), 0);
}

static int ascending(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/*
 * Latencies over six powers of ten: nearest rank of the sorted values, and at most one part in 128
 * from it.
 */
static void percentiles_match_sorted_values(void **state) {
    (void)state;
    enum { COUNT = 20001 };
    static const double fractions[] = {0, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
    static uint64_t values[COUNT];
    static struct histogram histogram;
    struct random_state random;
    double sum = 0;
    histogram_clear(&histogram);
    random_seed(&random, 7, 0);
    for (int i = 0; i < COUNT; i++) {
        values[i] = random_next(&random) >> (24 + random_below(&random, 20));
        sum += (double)values[i];
        histogram_add(&histogram, values[i]);
    }
    qsort(values, COUNT, sizeof values[0], ascending);
    assert_true(histogram.minimum == values[0] && histogram.maximum == values[COUNT - 1]);
    assert_true(histogram_mean(&histogram) == sum / COUNT);
    for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
        double rank = fractions[i] * COUNT;
        size_t place = (size_t)rank + ((double)(size_t)rank < rank ? 1 : 0);
        double exact = (double)values[place > 0 ? place - 1 : 0];
        assert_true(fabs(histogram_percentile(&histogram, fractions[i]) - exact) <= exact / 128);
    }
}

static void merging_is_adding_all(void **state) {
    (void)state;
    static struct histogram parts[3], merged, whole;
    struct random_state random;
    random_seed(&random, 3, 1);
    for (int i = 0; i < 3000; i++) {
        uint64_t value = random_below(&random, 1 << (1 + i % 30));
        histogram_add(&parts[i % 2], value); /* the third stays empty */
        histogram_add(&whole, value);
    }
    for (int i = 0; i < 3; i++) {
        histogram_merge(&merged, &parts[i]);
    }
    assert_true(merged.count == whole.count && merged.sum == whole.sum);
    assert_true(merged.minimum == whole.minimum && merged.maximum == whole.maximum);
    assert_memory_equal(merged.bucket, whole.bucket, sizeof merged.bucket);
}

static void empty_and_single(void **state) {
    (void)state;
    static struct histogram histogram;
    assert_true(histogram_percentile(&histogram, 0.5) == 0 && histogram_mean(&histogram) == 0);
    histogram_add(&histogram, 1000003);
    assert_true(histogram_percentile(&histogram, 0) == 1000003);
    assert_true(histogram_percentile(&histogram, 0.5) == 1000003);
    assert_true(histogram_percentile(&histogram, 1) == 1000003);
}

static void text_has_runs_of_buckets(void **state) {
    (void)state;
    static const uint64_t values[] = {5, 6, 6, 8, 255, 256, 257, UINT64_MAX};
    static struct histogram histogram;
    char *text = histogram_text(&histogram);
    assert_string_equal(text, "");
    free(text);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        histogram_add(&histogram, values[i]);
    }
    text = histogram_text(&histogram);
    assert_string_equal(text, "5 1 2;8 1;255 1 2;7423 1");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bucket_ends_where_the_next_begins),
        cmocka_unit_test(percentiles_match_sorted_values),
        cmocka_unit_test(merging_is_adding_all),
        cmocka_unit_test(empty_and_single),
        cmocka_unit_test(text_has_runs_of_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
