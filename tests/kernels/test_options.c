/* The values of options, and what a table of options does with a whole command line. */
#include "check.h"

#include "common/options.h"

static void sizes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"1", 1},
                {"4096", 4096},
                {"17B", 17},
                {"1KiB", 1024},
                {"1.5KiB", 1536},
                {"16MiB", UINT64_C(16) << 20},
                {"1GiB", UINT64_C(1) << 30},
                {"2TiB", UINT64_C(2) << 40},
                {"1e3", 1000},
                {"9007199254740993", UINT64_C(9007199254740993)}, /* 2^53 + 1 is no double */
                {"9223372036854775807", INT64_MAX},
                {"8388607TiB", UINT64_C(8388607) << 40}};
    static const char *const bad[] = {"",
                                      "0",
                                      "-1",
                                      " 1",
                                      "1 KiB",
                                      "1KB",
                                      "1k",
                                      "1K",
                                      "KiB",
                                      "0.3KiB",
                                      "1.5",
                                      "0x10",
                                      "1KiBB",
                                      "1e400",
                                      "nan",
                                      "inf",
                                      "1MiB ",
                                      "1e19",
                                      "1e20",
                                      "+5",
                                      "9223372036854775808",
                                      "18446744073709551617",
                                      "8388608TiB",
                                      "9007199254740992KiB",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 7;
        assert_true(parse_size(good[i].text, &bytes));
        assert_true(bytes == good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes = 7;
        if (parse_size(bad[i], &bytes)) {
            fail_msg("'%s' was taken as a size", bad[i]);
        }
        assert_true(bytes == 7);
    }
}

static void counts(void **state) {
    (void)state;
    uint64_t count = 7;
    assert_true(parse_count("1e12", &count));
    assert_true(count == UINT64_C(1000000000000));
    assert_true(parse_count("2.5e3", &count));
    assert_true(count == 2500);
    assert_true(parse_count("9007199254740993", &count));
    assert_true(count == UINT64_C(9007199254740993)); /* 2^53 + 1: no double in between */
    assert_true(parse_count("9223372036854775807", &count));
    assert_true(count == INT64_MAX);
    assert_true(parse_count("9007199254740993", &count));
    assert_false(parse_count("9223372036854775808", &count));
    assert_false(parse_count("18446744073709551617", &count));
    assert_false(parse_count("2.5", &count));
    assert_false(parse_count("0", &count));
    assert_false(parse_count("1e12x", &count));
    assert_false(parse_count("1KiB", &count));
    assert_false(parse_count("1e30", &count));
    assert_true(count == UINT64_C(9007199254740993));
}

static void times(void **state) {
    (void)state;
    double seconds = 7;
    assert_true(parse_seconds("0", &seconds) && seconds == 0);
    assert_true(parse_seconds("0.25", &seconds) && seconds == 0.25);
    assert_true(parse_seconds("1e-3", &seconds) && seconds == 1e-3);
    assert_false(parse_seconds("-1", &seconds));
    assert_false(parse_seconds("1s", &seconds));
    assert_false(parse_seconds("nan", &seconds));
    assert_false(parse_seconds("1e9", &seconds));
    assert_true(seconds == 1e-3);
}

static void cpu_lists(void **state) {
    (void)state;
    static struct cpu_list list;
    static const char *const bad[] = {"",    ",",     "0,", "0-",  "-1",       "3-1",
                                      "0,0", "1,0-2", "a",  "0 1", "99999999", "0-99999999"};
    assert_true(parse_cpu_list("5,2-4,0", &list));
    assert_int_equal(list.count, 5);
    const int wanted[] = {5, 2, 3, 4, 0};
    assert_memory_equal(list.cpu, wanted, sizeof wanted);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (parse_cpu_list(bad[i], &list)) {
            fail_msg("'%s' was taken as a CPU list", bad[i]);
        }
    }
    assert_int_equal(list.count, 5);
}

static void sizes_for_people(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(format_size(1024, text, sizeof text), "1KiB");
    assert_string_equal(format_size(1500, text, sizeof text), "1500B");
    assert_string_equal(format_size(UINT64_C(3) << 40, text, sizeof text), "3TiB");
    assert_string_equal(format_size(1536, text, sizeof text), "1536B");
}

static void whole_command_line(void **state) {
    (void)state;
    static const struct program program = {
        .name = "test", .synopsis = "", .summary = "", .example = ""};
    static const char *const choices[] = {"one", "two", NULL};
    static struct common_options common = COMMON_DEFAULTS;
    const char *choice = NULL, *text = NULL;
    bool flag = false;
    uint64_t size = 0, count = 0;
    const struct option_spec specs[] = {
        COMMON_OPTIONS(&common),
        {.name = "choice",
         .kind = OPTION_CHOICE,
         .value = &choice,
         .argument = "C",
         .help = "",
         .choices = choices},
        {.name = "text", .kind = OPTION_TEXT, .value = &text, .argument = "T", .help = ""},
        {.name = "flag", .kind = OPTION_FLAG, .value = &flag, .help = ""},
        {.name = "size", .kind = OPTION_SIZE, .value = &size, .argument = "S", .help = ""},
        {.name = "count", .kind = OPTION_COUNT, .value = &count, .argument = "N", .help = ""},
        END_OF_OPTIONS,
    };
    char *argv[] = {(char *)"test",
                    (char *)"place",
                    (char *)"--threads",
                    (char *)"3",
                    (char *)"--cpus=1,0",
                    (char *)"--seed",
                    (char *)"18446744073709551615",
                    (char *)"--choice",
                    (char *)"two",
                    (char *)"--text",
                    (char *)"--flag",
                    (char *)"--flag",
                    (char *)"--size",
                    (char *)"1KiB",
                    (char *)"--count",
                    (char *)"1e6",
                    NULL};
    int first = options_parse(&program, specs, 16, argv);
    assert_int_equal(first, 15);
    assert_string_equal(argv[first], "place");
    assert_int_equal(common.threads, 3);
    assert_int_equal(common.cpus.count, 2);
    assert_int_equal(common.cpus.cpu[0], 1);
    assert_true(common.seed == UINT64_MAX);
    assert_false(common.seconds_set);
    assert_ptr_equal(choice, choices[1]);
    assert_string_equal(text, "--flag");
    assert_true(flag && size == 1024 && count == 1000000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(counts),
        cmocka_unit_test(times),
        cmocka_unit_test(cpu_lists),
        cmocka_unit_test(sizes_for_people),
        cmocka_unit_test(whole_command_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
