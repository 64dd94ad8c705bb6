/* Latency under load: how far threads overlapped, the pauses, and what a short run says. */
#include "process.h"

#include <sched.h>

#include "memory/sweep.h"

static const struct sweeper *find_faulty(enum isa isa);

#define sweeper_find find_faulty
#include "memory/loaded.c"
#undef sweeper_find

static int victim;

#define MS UINT64_C(1000000)

static struct loaded_span busy(uint64_t start, uint64_t stop) {
    return (struct loaded_span){start * MS, stop * MS, (stop - start) * MS, 1};
}

static void check_overlap(double wanted, struct loaded_span first, struct loaded_span second,
                          struct loaded_span third) {
    const struct loaded_span spans[] = {first, second, third};
    double overlap = loaded_overlap(spans, 3);
    assert_true(overlap > wanted - 1e-9 && overlap < wanted + 1e-9);
}

static void overlap_is_common_time(void **state) {
    (void)state;
    struct loaded_span waited = busy(90, 210), absent = {0, 0, 0, 0};
    waited.cpu_ns -= 20 * MS;
    check_overlap(1.0, busy(100, 200), busy(90, 210), busy(100, 200));
    check_overlap(0.9, busy(100, 200), busy(110, 210), busy(90, 210));
    check_overlap(0.7, busy(100, 200), busy(110, 210), busy(90, 180));
    check_overlap(0.0, busy(100, 200), busy(100, 140), busy(150, 200));
    check_overlap(0.8, busy(100, 200), waited, busy(90, 210));
    check_overlap(0.6, busy(100, 200), waited, waited);
    check_overlap(0.0, busy(100, 200), busy(90, 210), absent);
}

static void pauses_shrink_to_none(void **state) {
    (void)state;
    for (int rates = 1; rates <= LOADED_RATES_MAX; rates++) {
        assert_true(loaded_pause(rates, rates) == 0);
        for (int rate = 1; rate < rates; rate++) {
            assert_true(loaded_pause(rate, rates) > loaded_pause(rate + 1, rates));
        }
    }
    /* By one factor each. */
    double first = loaded_pause(1, 4), second = loaded_pause(2, 4), third = loaded_pause(3, 4);
    assert_true(second * second > 0.999 * first * third && second * second < 1.001 * first * third);
}

static void mixes_are_those_known(void **state) {
    (void)state;
    int mixes[LOADED_MIXES];
    static const char *const wrong[] = {"", ",", "100,", "1000", "50,100", "75,75", "60", "100 75"};
    assert_int_equal(loaded_parse_mixes("100,75,50", mixes), 3);
    assert_true(mixes[0] == 100 && mixes[1] == 75 && mixes[2] == 50);
    assert_int_equal(loaded_parse_mixes("50", mixes), 1);
    assert_int_equal(mixes[0], 50);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(loaded_parse_mixes(wrong[i], mixes), 0);
    }
}

/* The value is that of the first mix at the last of its rates. */
static void each_mix_has_its_points(void **state) {
    (void)state;
    struct process *process = process_run(
        NULL, ARGV("rambench", "--workload", "LOADED", "--threads", "2", "--rates", "2", "--reads",
                   "75,50", "--seconds", "0.01", "--warmup", "0.01", "--pool", "32MiB"));
    assert_int_equal(process->status, 0);
    const char *at = json_at(process, "rows");
    double latency[2][3];
    for (int mix = 0; mix < 2; mix++) {
        char variant[8];
        double value;
        int used = 0;
        assert_int_equal(sscanf(at, "%*[^v]variant\":%*[ ]\"%7[^\"]\",%*[^v]value\": %lf%n",
                                variant, &value, &used),
                         2);
        assert_string_equal(variant, mix == 0 ? "r75" : "r50");
        at = strstr(at + used, "[[") + 1;
        for (int point = 0; point < 3; point++) {
            double rate, overlap, pause;
            assert_int_equal(
                sscanf(at, "[%lf, %lf, %lf, %lf]", &rate, &latency[mix][point], &overlap, &pause),
                4);
            assert_true(rate > 0 && latency[mix][point] > 0 && latency[mix][point] < 1e-3);
            assert_true(overlap >= 0 && overlap <= 1);
            assert_true(point < 2 ? pause > 0 : pause == 0);
            at = strchr(at, ']') + 3;
        }
        assert_true(value == latency[mix][2]);
    }
    assert_true(json_number(process, "value") == latency[0][2]);
    process_free(process);
}

static void needs_a_load(void **state) {
    (void)state;
    process_expect(process_run(NULL, ARGV("rambench", "--workload", "LOADED", "--threads", "1")),
                   77, "LOADED needs two threads");
    process_expect(process_run(NULL, ARGV("rambench", "--workload", "LOADED", "--threads", "2",
                                          "--reads", "60")),
                   2, "--reads: '60' is not 100,75,50 or a part of it");
}

static uint64_t read_faulty(const struct sweep *sweep) {
    return sweeper_find(ISA_COUNT)->read(sweep) + (sched_getcpu() == victim);
}

static const struct sweeper *find_faulty(enum isa isa) {
    static struct sweeper faulty;
    faulty = *sweeper_find(isa);
    faulty.read = read_faulty;
    return &faulty;
}

static void load_memory(void) {
    static struct cpu_list allowed;
    struct warnings warnings = {0};
    const struct arguments arguments = {.common = COMMON_DEFAULTS,
                                        .workload = "LOADED",
                                        .isa = "auto",
                                        .huge_pages = "off",
                                        .reads = "100",
                                        .pool = "8MiB",
                                        .rates = 2};
    assert_true(place_allowed(&allowed));
    allowed.count = 2;
    loaded_measure(&arguments, &allowed, &warnings);
}

static void a_core_that_reads_wrong_is_named(void **state) {
    (void)state;
    struct cpu_list allowed;
    char wanted[64];
    assert_true(place_allowed(&allowed));
    if (allowed.count < 2) {
        skip();
    }
    victim = allowed.cpu[1];
    struct process *process = process_run_job(load_memory);
    snprintf(wanted, sizeof wanted, "{\"wrong_cpus\": [%d]}\n", victim);
    assert_string_equal(process->output, wanted);
    snprintf(wanted, sizeof wanted, "on CPU %d ", victim);
    process_expect(process, 1, wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap_is_common_time),
        cmocka_unit_test(pauses_shrink_to_none),
        cmocka_unit_test(mixes_are_those_known),
        cmocka_unit_test(each_mix_has_its_points),
        cmocka_unit_test(needs_a_load),
        cmocka_unit_test(a_core_that_reads_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
