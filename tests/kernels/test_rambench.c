/* rambench as a process: every workload, exact counts, what the record says, and the sentence for
 * wrong input. */
#include "process.h"

#include <inttypes.h>

#include "common/isa.h"
#include "common/place.h"
#include "common/team.h"
#include "memory/bench.h"
#include "memory/cache.h"

static const char *const workloads[] = {"RS", "WS", "RWS", "RR", "WR", "RWR", "TRIAD"};
enum { WORKLOADS = 7 };

/* Bytes of a visit to a block of 1088 B: a copy reads and writes, a triad reads twice and writes.
 */
static double visit_bytes(const char *workload) {
    return workload[0] == 'T' ? 3264 : workload[1] == 'W' ? 2176 : 1088;
}

static bool is(const struct process *process, const char *key, const char *json) {
    return strncmp(json_at(process, key), json, strlen(json)) == 0;
}

/* 1 MiB of work in blocks of 1088 B: 964 visits, of a pool of 61 such blocks (30 and 30 for a copy,
 * 20, 20 and 20 for a triad) on two threads. The instruction sets take block and pool in turn, each
 * of them both. */
static void totals_are_exact(void **state) {
    (void)state;
    static const char *const pools[] = {"block", "64KiB"};
    for (size_t i = 0; i < WORKLOADS; i++) {
        size_t p = i % 2;
        for (int isa = 0; isa < ISA_COUNT; isa++) {
            if (!isa_available((enum isa)isa)) {
                continue;
            }
            struct process *process =
                process_run(NULL, ARGV("rambench", "--workload", workloads[i], "--block", "1088",
                                       "--pool", pools[p], "--isa", isa_name((enum isa)isa),
                                       "--total", "1MiB", "--threads", "2", "--warmup", "0.001"));
            double visit = visit_bytes(workloads[i]), work = json_number(process, "work");
            assert_int_equal(process->status, 0);
            assert_true(work >= 1048576 && work < 1048576 + 2 * visit);
            assert_true((uint64_t)work % (uint64_t)visit == 0);
            assert_true(is(process, "working_set", p == 0 ? "\"block\"" : "\"pool\""));
            assert_true(json_number(process, "working_set_bytes") <= (p == 0 ? 2 * visit : 65536));
            assert_true(is(process, "pool", p == 0 ? "null" : "65536"));
            process_free(process);
            p = 1 - p;
        }
    }
}

static void both_kinds_of_stores(void **state) {
    (void)state;
    static const char *const stores[] = {"temporal", "streaming"};
    for (size_t i = 0; i < WORKLOADS; i++) {
        for (size_t s = 0; s < 2; s++) {
            char wanted[32];
            struct process *process = process_run(
                NULL, ARGV("rambench", "--workload", workloads[i], "--block", "4KiB", "--pool",
                           "8MiB", "--store", stores[s], "--seconds", "0.02", "--warmup", "0.001"));
            snprintf(wanted, sizeof wanted, "\"%s\"", stores[s]);
            assert_int_equal(process->status, 0);
            assert_true(is(process, "store",
                           workloads[i][0] == 'R' && workloads[i][1] != 'W' ? "null" : wanted));
            process_free(process);
        }
    }
}

/*
 * The rule behind --store auto: a pool around the caches, one block through them, whatever the
 * caches hold.
 */
static void stores_follow_the_working_set(void **state) {
    (void)state;
    const bool can = isa_available(ISA_SSE2) || isa_available(ISA_NEON);
    struct process *process =
        process_run(NULL, ARGV("rambench", "--workload", "WS", "--block", "64KiB", "--pool", "1MiB",
                               "--seconds", "0.01", "--warmup", "0"));
    assert_int_equal(process->status, 0);
    assert_true(is(process, "store", can ? "\"streaming\"" : "\"temporal\""));
    process_free(process);
    process = process_run(NULL, ARGV("rambench", "--workload", "RWS", "--block", "64KiB",
                                     "--seconds", "0.01", "--warmup", "0"));
    assert_int_equal(process->status, 0);
    assert_true(is(process, "store", "\"temporal\"") && is(process, "warnings", "[]"));
    process_free(process);
}

static void latency_counts_exactly(void **state) {
    (void)state;
    struct process *process =
        process_run(NULL, ARGV("rambench", "--workload", "LAT", "--block", "64KiB", "--accesses",
                               "1000003", "--threads", "3", "--warmup", "0.001"));
    assert_int_equal(process->status, 0);
    assert_true(json_number(process, "work") == 1000003);
    assert_true(is(process, "unit", "\"s\"") && is(process, "work_unit", "\"access\""));
    assert_true(json_number(process, "stride") == 8);
    double value = json_number(process, "value");
    assert_true(value > 0 && value < json_number(process, "seconds"));
    process_free(process);
    process =
        process_run(NULL, ARGV("rambench", "--workload", "LAT", "--block", "1MiB", "--stride", "64",
                               "--seconds", "0.05", "--warmup", "0.01", "--huge-pages", "off"));
    assert_int_equal(process->status, 0);
    assert_true(json_number(process, "fastest") <= json_number(process, "value"));
    assert_true(is(process, "huge_pages", "0"));
    process_free(process);
}

static void doubtful_requests_warn(void **state) {
    (void)state;
    struct process *process =
        process_run(NULL, ARGV("rambench", "--workload", "RR", "--block", "1MiB", "--pool", "1MiB",
                               "--threads", "2", "--seconds", "0.01", "--warmup", "0"));
    assert_int_equal(process->status, 0);
    assert_non_null(
        strstr(json_at(process, "warnings"), "larger than a thread's part of the pool"));
    process_free(process);
}

/*
 * Of a random order over one block the warning names the workload that does the same in sequence.
 */
static void one_block_is_sequential(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"RR", "RR measures what RS does"},
                                           {"WR", "WR measures what WS does"},
                                           {"RWR", "RWR measures what RWS does"}};
    for (size_t i = 0; i < 3; i++) {
        struct process *process =
            process_run(NULL, ARGV("rambench", "--workload", pairs[i][0], "--block", "1MiB",
                                   "--pool", "block", "--seconds", "0.01", "--warmup", "0"));
        assert_int_equal(process->status, 0);
        assert_non_null(strstr(json_at(process, "warnings"), pairs[i][1]));
        process_free(process);
    }
}

/* What works in DRAM reads it before and after its run; what caches hold does not. */
static void memory_is_probed_beyond_the_caches(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* one thread, and each byte of memory takes four more */
#endif
    static struct cpu_list cpus;
    char in_dram[32], cached[32];
    assert_true(place_allowed(&cpus));
    cpus.count = 1;
    uint64_t cache = cache_last_level("/sys/devices/system/cpu", &cpus);
    if (cache == 0 || cache > UINT64_C(64) << 20) {
        skip_because("the last-level cache is unknown or large");
    }
    /* Each of the three buffers of a triad holds whole blocks only. */
    snprintf(in_dram, sizeof in_dram, "%" PRIu64, 4 * cache + UINT64_C(3) * 4096);
    snprintf(cached, sizeof cached, "%" PRIu64, cache);
    static const char *const kinds[] = {"RS", "WR", "RWS", "TRIAD", "LAT"};
    for (size_t i = 0; i < 5; i++) {
        for (int beyond = 0; beyond < 2; beyond++) {
            const char *bytes = beyond ? in_dram : cached;
            struct process *process =
                i == 4
                    ? process_run(NULL,
                                  ARGV("rambench", "--workload", "LAT", "--block", bytes,
                                       "--stride", "64", "--accesses", "1000", "--warmup", "0"))
                    : process_run(NULL, ARGV("rambench", "--workload", kinds[i], "--block", "4096",
                                             "--pool", bytes, "--total", "1MiB", "--warmup", "0"));
            assert_int_equal(process->status, 0);
            assert_true((strstr(process->output, "\"probe_before\"") != NULL) == (beyond == 1));
            if (beyond) {
                assert_true(json_number(process, "probe_before") > 0 &&
                            json_number(process, "probe_after") > 0);
            }
            process_free(process);
        }
    }
}

static void libc_copies(void **state) {
    (void)state;
    struct process *process =
        process_run(NULL, ARGV("rambench", "--workload", "RWR", "--block", "1KiB", "--pool", "1MiB",
                               "--total", "8MiB", "--store", "libc", "--warmup", "0"));
    assert_int_equal(process->status, 0);
    assert_true(json_number(process, "work") == 8388608);
    assert_true(is(process, "store", "\"libc\"") && is(process, "instruction", "\"memcpy\""));
    process_free(process);
    process =
        process_run(NULL, ARGV("rambench", "--workload", "WR", "--block", "1KiB", "--pool", "1MiB",
                               "--total", "8MiB", "--store", "libc", "--warmup", "0"));
    assert_int_equal(process->status, 0); /* what memset wrote was checked */
    assert_true(is(process, "store", "\"libc\"") && is(process, "instruction", "\"memset\""));
    process_free(process);
    process_expect(process_run(NULL, ARGV("rambench", "--workload", "RR", "--block", "1KiB",
                                          "--store", "libc")),
                   2, "--store libc writes with memcpy or memset: it does not belong to RR");
    process_expect(process_run(NULL, ARGV("rambench", "--workload", "TRIAD", "--block", "1KiB",
                                          "--store", "libc")),
                   2, "--store libc writes with memcpy or memset: it does not belong to TRIAD");
}

static struct process *rambench(const char *workload, const char *block, const char *option,
                                const char *value) {
    return process_run(NULL,
                       ARGV("rambench", "--workload", workload, "--block", block, option, value));
}

static void wrong_command_lines(void **state) {
    (void)state;
    process_expect(process_run(NULL, ARGV("rambench")), 2, "--workload is missing");
    process_expect(process_run(NULL, ARGV("rambench", "--workload", "RS")), 2,
                   "--block is missing");
    process_expect(rambench("RS", "1KB", "--seconds", "1"), 2, "--block: '1KB' is not a size");
    process_expect(rambench("RS", "100", "--seconds", "1"), 2, "not whole cache lines");
    process_expect(rambench("RS", "1KiB", "--pool", "much"), 2,
                   "neither a size such as 1GiB nor the word block");
    process_expect(rambench("RS", "1KiB", "--accesses", "5"), 2, "--accesses belongs to LAT");
    process_expect(rambench("LAT", "1KiB", "--pool", "1GiB"), 2, "LAT takes none of --pool");
    process_expect(rambench("LAT", "1KiB", "--stride", "12"), 2, "not a multiple of 8");
    process_expect(rambench("LAT", "1KiB", "--stride", "2KiB"), 2, "more than the area");
    process_expect(rambench("WS", "1KiB", "--store", "maybe"), 2,
                   "not one of auto, temporal, streaming, libc");
    process_expect(process_run(NULL, ARGV("rambench", "--workload", "RS", "--block", "1KiB",
                                          "--seconds", "1", "--total", "1GiB")),
                   2, "exclude each other");
}

/* Two threads and blocks of 1088 B: the least total is two blocks of each array. */
static void every_thread_has_work(void **state) {
    (void)state;
    for (size_t i = 0; i < WORKLOADS; i++) {
        const int least = 2 * (int)visit_bytes(workloads[i]);
        const char *arrays = workloads[i][0] == 'T'   ? ", in three arrays,"
                             : workloads[i][1] == 'W' ? ", read and written,"
                                                      : "";
        char enough[16], little[16], sentence[160];
        snprintf(enough, sizeof enough, "%d", least);
        snprintf(little, sizeof little, "%d", least - 1);
        snprintf(sentence, sizeof sentence,
                 "--total: %dB is less than one block of 1088B%s for each of 2 threads: give %dB "
                 "or more",
                 least - 1, arrays, least);
        struct process *process = NULL;
        process = process_run(NULL, ARGV("rambench", "--workload", workloads[i], "--block", "1088",
                                         "--pool", "64KiB", "--total", enough, "--threads", "2",
                                         "--warmup", "0.001"));
        assert_int_equal(process->status, 0);
        assert_true(json_number(process, "work") == least);
        process_free(process);
        process = process_run(NULL, ARGV("rambench", "--workload", workloads[i], "--block", "1088",
                                         "--pool", "64KiB", "--total", little, "--threads", "2"));
        process_expect(process, 2, sentence);
    }
    process_expect(process_run(NULL, ARGV("rambench", "--workload", "LAT", "--block", "1KiB",
                                          "--accesses", "2", "--threads", "3")),
                   2, "--accesses: 2 are less than one for each of 3 threads: give 3 or more");
}

/* Sizes whose sums or products would wrap to small ones. */
static void sizes_beyond_any_memory(void **state) {
    (void)state;
    static const char *const names[] = {"RS", "WS", "RWS", "RR", "WR", "RWR", "TRIAD", "LAT"};
    static const char *const blocks[] = {"9223372036854775744", "4611686018427387904", "4194304TiB",
                                         "2251799813685248KiB"};
    static const char *const threads[] = {"2", "4096"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
            process_expect(rambench(names[i], blocks[b], "--threads", threads[(i + b) % 2]), 2,
                           "is more memory than any machine has: make --block or --threads "
                           "smaller");
        }
        if (strcmp(names[i], "LAT") != 0) {
            process_expect(rambench(names[i], "64GiB", "--pool", "9223372036854775807"), 2,
                           "--pool: 9223372036854775807B is more memory than any machine has");
            process_expect(rambench(names[i], "9223372036854775744", "--total", "1GiB"), 2,
                           "--block: 9223372036854775744B for each of 1 thread");
        }
    }
    static const char *const shapes[] = {"LADDER-RS", "LADDER-LAT", "LOADED", "NUMA-RS"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        process_expect(process_run(NULL, ARGV("rambench", "--workload", shapes[i], "--threads", "3",
                                              "--pool", "9223372036854775807")),
                       2, "--pool: 9223372036854775807B is more memory than any machine has");
    }
    /* Not beyond any, but beyond this one. */
    struct process *process = process_run(
        NULL, ARGV("rambench", "--workload", "LOADED", "--threads", "3", "--pool", "4000000TiB"));
    assert_int_equal(process->status, 77);
    process_free(process);
}

/* Two threads of 10 visits a second that stop 0.2 s apart, unless the table says otherwise. */
static void long_visits_are_found(void **state) {
    (void)state;
    static const struct {
        uint64_t apart_ns, visits, work;
        bool found;
    } cases[] = {{200000000, 10, 0, true},
                 {0, 10, 0, false},             /* they stop together */
                 {200000000, 10, 1000, false},  /* each has its share of work */
                 {200000000, 10000, 0, false}}; /* something else held one up */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct team_member members[2] = {{.stop_ns = 1000000000, .work = 64 * cases[i].visits},
                                         {.work = 64 * cases[i].visits}};
        struct team team = {.threads = 2, .members = members, .seconds = 1};
        members[1].stop_ns = members[0].stop_ns - cases[i].apart_ns;
        team.plan.work = cases[i].work;
        const double visit = bench_long_visit(&team, 64);
        assert_true(cases[i].found ? visit > 0.099 && visit < 0.101 : visit == 0);
    }
}

/* With other programs ended, the memory of this machine may suffice. */
static void memory_that_other_programs_use_is_a_failure(void **state) {
    (void)state;
    char pool[32];
    snprintf(pool, sizeof pool, "%ldB", sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    process_expect(rambench("RS", "64MiB", "--pool", pool), 1, "are available: make --pool");
}

static void impossible_requests(void **state) {
    (void)state;
    process_expect(rambench("RS", "1KiB", "--pool", "900TiB"), 2, "use larger blocks");
    process_expect(rambench("RS", "64MiB", "--pool", "900TiB"), 77, "make --pool");
    process_expect(process_run(NULL, ARGV("rambench", "--workload", "WS", "--block", "1KiB",
                                          "--isa", "scalar", "--store", "streaming")),
                   77, "no streaming stores");
    process_expect(rambench("RS", "1KiB", "--isa", isa_available(ISA_NEON) ? "avx2" : "neon"), 77,
                   "does not run");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_exact),
        cmocka_unit_test(both_kinds_of_stores),
        cmocka_unit_test(stores_follow_the_working_set),
        cmocka_unit_test(latency_counts_exactly),
        cmocka_unit_test(doubtful_requests_warn),
        cmocka_unit_test(one_block_is_sequential),
        cmocka_unit_test(memory_is_probed_beyond_the_caches),
        cmocka_unit_test(libc_copies),
        cmocka_unit_test(wrong_command_lines),
        cmocka_unit_test(every_thread_has_work),
        cmocka_unit_test(sizes_beyond_any_memory),
        cmocka_unit_test(long_visits_are_found),
        cmocka_unit_test(memory_that_other_programs_use_is_a_failure),
        cmocka_unit_test(impossible_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
