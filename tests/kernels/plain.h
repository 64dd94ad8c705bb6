/*
 * What the tests use of cmocka, for machines that they are only compiled for: Debian has cmocka for
 * the machine itself, and a test program for another architecture or for an emulated one is linked
 * statically without it. The same names do the same: a failed check or fail_msg ends its test, and
 * the program ends with the number of failed tests.
 */
#ifndef PEAKMARK_TEST_PLAIN_H
#define PEAKMARK_TEST_PLAIN_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
    int (*setup)(void **state), (*teardown)(void **state);
};

enum plain_outcome { PLAIN_PASSED, PLAIN_FAILED, PLAIN_SKIPPED };
static jmp_buf plain_end;

_Noreturn static inline void plain_leave(enum plain_outcome outcome) {
    longjmp(plain_end, (int)outcome);
}

#define print_message(...) printf(__VA_ARGS__)
#define skip() plain_leave(PLAIN_SKIPPED)
#define fail_msg(...)                                                                              \
    do {                                                                                           \
        printf("%s:%d: ", __FILE__, __LINE__);                                                     \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        plain_leave(PLAIN_FAILED);                                                                 \
    } while (0)
#define plain_check(what, condition)                                                               \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fail_msg("%s", what);                                                                  \
        }                                                                                          \
    } while (0)

#define assert_true(c) plain_check("not true: " #c, c)
#define assert_false(c) plain_check("not false: " #c, !(c))
#define assert_null(p) plain_check("not NULL: " #p, (p) == NULL)
#define assert_non_null(p) plain_check("NULL: " #p, (p) != NULL)
#define assert_ptr_equal(a, b)                                                                     \
    plain_check(#a " and " #b " differ", (const void *)(a) == (const void *)(b))
#define assert_ptr_not_equal(a, b) plain_check(#a " is " #b, (const void *)(a) != (const void *)(b))
#define assert_int_equal(a, b)                                                                     \
    plain_check(#a " and " #b " differ", (long long)(a) == (long long)(b))
#define assert_in_range(v, low, high)                                                              \
    plain_check(#v " is out of range", (v) >= (low) && (v) <= (high))
#define assert_string_equal(a, b) plain_check(#a " and " #b " differ", strcmp(a, b) == 0)
#define assert_memory_equal(a, b, n) plain_check(#a " and " #b " differ", memcmp(a, b, n) == 0)
#define assert_memory_not_equal(a, b, n)                                                           \
    plain_check(#a " and " #b " are equal", memcmp(a, b, n) != 0)

#define cmocka_unit_test(f)                                                                        \
    { #f, f, NULL, NULL }
#define cmocka_unit_test_setup_teardown(f, setup, teardown)                                        \
    { #f, f, setup, teardown }
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    plain_group(tests, sizeof(tests) / sizeof *(tests), setup, teardown)

/* What a longjmp brings back into must not be held in registers: hence static. */
static inline int plain_run(const struct CMUnitTest *tests, size_t count) {
    static const char *const words[] = {"passed", "FAILED", "skipped"};
    static void *state;
    static size_t i;
    static int failed, outcome;
    static bool torn_down;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (i = 0; i < count; i++) {
        outcome = PLAIN_PASSED;
        torn_down = false;
        state = NULL;
        switch (setjmp(plain_end)) {
        case 0:
            if (tests[i].setup != NULL && tests[i].setup(&state) != 0) {
                fail_msg("%s: it cannot be set up", tests[i].name);
            }
            tests[i].run(&state);
            break;
        case PLAIN_SKIPPED:
            outcome = PLAIN_SKIPPED;
            break;
        default:
            outcome = PLAIN_FAILED;
        }
        if (tests[i].teardown != NULL && !torn_down) {
            torn_down = true;
            tests[i].teardown(&state);
        }
        failed += outcome == PLAIN_FAILED;
        printf("[ %s ] %s\n", words[outcome], tests[i].name);
    }
    return failed;
}

static inline int plain_group(const struct CMUnitTest *tests, size_t count, int (*setup)(void **),
                              int (*teardown)(void **)) {
    void *state = NULL;
    if (setup != NULL && setup(&state) != 0) {
        printf("the tests cannot be set up\n");
        return 1;
    }
    int failed = plain_run(tests, count);
    if (teardown != NULL) {
        teardown(&state);
    }
    return failed;
}

#endif
