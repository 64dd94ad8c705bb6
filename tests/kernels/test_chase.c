/* The chase: one cycle over the whole area, an exact number of loads, and a check that notices when
 * it is not so. */
#include "check.h"

#include "memory/chase.h"

static _Alignas(64) unsigned char area[64 * 1024];

static void link_area(struct chase *chase, size_t bytes, size_t stride, uint64_t seed) {
    struct random_state random;
    random_seed(&random, seed, 0);
    chase_link(chase, area, bytes, stride, &random);
}

static void every_pointer_once_a_lap(void **state) {
    (void)state;
    static const size_t strides[] = {8, 64, 128, 4096};
    for (size_t s = 0; s < 4; s++) {
        for (size_t bytes = strides[s]; bytes <= sizeof area; bytes *= 4) {
            struct chase chase;
            bool seen[sizeof area / 8] = {false};
            link_area(&chase, bytes, strides[s], bytes);
            assert_true(chase.nodes == bytes / strides[s]);
            for (uint64_t hop = 0; hop < chase.nodes; hop++) {
                size_t at = (size_t)((unsigned char *)chase.at - area);
                assert_true(at < bytes && at % strides[s] == 0 && !seen[at / strides[s]]);
                seen[at / strides[s]] = true;
                chase_run(&chase, 1);
            }
            assert_ptr_equal(chase.at, area);
        }
    }
}

/* The unrolled loop and its rest do exactly what single hops do: pmbw's unrolled version miscounts
 * here. */
static void hops_are_exact(void **state) {
    (void)state;
    struct chase chase;
    link_area(&chase, 43 * 8, 8, 1);
    for (uint64_t hops = 0; hops < 100; hops++) {
        void **at = chase.at;
        for (uint64_t i = 0; i < hops; i++) {
            at = *at;
        }
        chase_run(&chase, hops);
        assert_ptr_equal(chase.at, at);
        assert_null(chase_verify(&chase));
    }
    assert_true(chase.hops == 99 * 100 / 2);
}

static void a_wrong_count_is_noticed(void **state) {
    (void)state;
    struct chase chase;
    link_area(&chase, 4096, 64, 1);
    chase_run(&chase, 1000);
    assert_null(chase_verify(&chase));
    chase.hops++;
    assert_non_null(strstr(chase_verify(&chase), "number of loads"));
}

static void a_short_cycle_is_noticed(void **state) {
    (void)state;
    struct chase chase;
    link_area(&chase, 4096, 64, 1);
    void **first = (void **)(void *)area;
    void **second = *first;
    *second = first; /* a cycle of two */
    chase_run(&chase, 63);
    assert_non_null(strstr(chase_verify(&chase), "return to the start"));
}

static void seeds_make_different_orders(void **state) {
    (void)state;
    struct chase chase;
    void *first, *second;
    link_area(&chase, sizeof area, 64, 1);
    chase_run(&chase, 100);
    first = chase.at;
    link_area(&chase, sizeof area, 64, 1);
    chase_run(&chase, 100);
    second = chase.at;
    assert_ptr_equal(first, second);
    link_area(&chase, sizeof area, 64, 2);
    chase_run(&chase, 100);
    assert_ptr_not_equal(first, chase.at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pointer_once_a_lap),    cmocka_unit_test(hops_are_exact),
        cmocka_unit_test(a_wrong_count_is_noticed),    cmocka_unit_test(a_short_cycle_is_noticed),
        cmocka_unit_test(seeds_make_different_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
