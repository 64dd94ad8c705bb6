/* What the JSON writer puts out, character by character. */
#include "check.h"

#include <math.h>

#include "common/json.h"

static char *text;
static size_t length;

static struct json start(void) {
    struct json json;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    json_init(&json, out);
    return json;
}

static void finish(struct json *json, const char *wanted) {
    assert_true(json_finish(json));
    fclose(json->out);
    assert_string_equal(text, wanted);
    free(text);
}

static void members_and_nesting(void **state) {
    (void)state;
    struct json json = start();
    json_begin_object(&json, NULL);
    json_string(&json, "a", "b");
    json_begin_array(&json, "empty");
    json_end_array(&json);
    json_begin_array(&json, "list");
    json_integer(&json, NULL, INT64_MIN);
    json_unsigned(&json, NULL, UINT64_MAX);
    json_begin_object(&json, NULL);
    json_bool(&json, "yes", true);
    json_bool(&json, "no", false);
    json_end_object(&json);
    json_end_array(&json);
    json_null(&json, "none");
    json_string(&json, "missing", NULL);
    json_end_object(&json);
    finish(&json,
           "{\"a\": \"b\", \"empty\": [], \"list\": [-9223372036854775808, 18446744073709551615, "
           "{\"yes\": true, \"no\": false}], \"none\": null, \"missing\": null}\n");
}

static void strings_are_escaped(void **state) {
    (void)state;
    struct json json = start();
    json_begin_array(&json, NULL);
    json_string(&json, NULL, "quote \" slash \\ tab \t line \n bell \a del \x7f");
    json_string(&json, NULL, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
    json_string(&json, NULL, "\xff \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xc3");
    json_end_array(&json);
    finish(
        &json,
        "[\"quote \\\" slash \\\\ tab \\u0009 line \\u000a bell \\u0007 del \\u007f\", "
        "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\", "
        "\"\\ufffd \\ufffd\\ufffd \\ufffd\\ufffd\\ufffd \\ufffd\\ufffd\\ufffd\\ufffd \\ufffd\"]\n");
}

static void doubles_come_back_the_same(void **state) {
    (void)state;
    const double values[] = {0.1, 1e300, 5e-324, 123456789.123456789, 1.0 / 3};
    struct json json = start();
    json_begin_array(&json, NULL);
    for (size_t i = 0; i < 5; i++) {
        json_double(&json, NULL, values[i]);
    }
    json_end_array(&json);
    assert_true(json_finish(&json));
    fclose(json.out);
    char *at = text + 1;
    for (size_t i = 0; i < 5; i++) {
        assert_true(strtod(at, &at) == values[i]);
        at += 2;
    }
    free(text);
}

static void not_a_number_is_null(void **state) {
    (void)state;
    struct json json = start();
    json_begin_object(&json, NULL);
    json_double(&json, "nan", NAN);
    json_double(&json, "inf", -INFINITY);
    json_end_object(&json);
    finish(&json, "{\"nan\": null, \"inf\": null}\n");
}

static void an_open_object_is_an_error(void **state) {
    (void)state;
    struct json json = start();
    json_begin_object(&json, NULL);
    assert_false(json_finish(&json));
    fclose(json.out);
    free(text);
}

static void a_full_disk_is_an_error(void **state) {
    (void)state;
    struct json json;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    json_init(&json, full);
    json_begin_object(&json, NULL);
    json_end_object(&json);
    assert_false(json_finish(&json));
    fclose(full);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_and_nesting),        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(doubles_come_back_the_same), cmocka_unit_test(not_a_number_is_null),
        cmocka_unit_test(an_open_object_is_an_error), cmocka_unit_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
