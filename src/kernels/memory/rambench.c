/* rambench: how fast the caches and the memory give and take data. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/status.h"
#include "common/topology.h"
#include "memory/bench.h"
#include "memory/cache.h"
#include "memory/loaded.h"
#include "memory/rambench.h"

#define NAME_BYTES 24
/* A working set of so many last-level caches lies in DRAM: less is partly read from the caches. */
#define CACHES 4

static const char *const workloads[] = {
    "RS",  "WS",        "RWS",        "RR",     "WR",      "RWR",     "TRIAD",    "LAT",
    "C2C", "LADDER-RS", "LADDER-LAT", "LOADED", "NUMA-RS", "NUMA-WS", "NUMA-LAT", NULL};
static const char *const stores[] = {"auto", "temporal", "streaming", "libc", NULL};
static const char *const switches[] = {"on", "off", NULL};
static const char *const pairs[] = {"sample", "all", NULL};

/* Workloads that measure a whole matrix or curve: they have no block. */
static const struct shape {
    const char *workload;
    shape_function *measure;
} shapes[] = {{"C2C", c2c_measure},           {"LADDER-RS", ladder_measure},
              {"LADDER-LAT", ladder_measure}, {"LOADED", loaded_measure},
              {"NUMA-RS", numa_measure},      {"NUMA-WS", numa_measure},
              {"NUMA-LAT", numa_measure},     {NULL, NULL}};

static const struct shape *shape_of(const char *workload) {
    const struct shape *shape = shapes;
    while (shape->workload != NULL && strcmp(shape->workload, workload) != 0) {
        shape++;
    }
    return shape->workload != NULL ? shape : NULL;
}

static void parse_arguments(struct arguments *a, int argc, char **argv) {
    static const struct program program = {
        .name = "rambench",
        .synopsis = "--workload NAME --block SIZE [option]...",
        .summary =
            "Measures memory throughput in bytes read plus bytes written per second, or the "
            "latency of a "
            "load.\n"
            "RS WS RWS read, write, copy blocks one after the other; RR WR RWR in random order;\n"
            "TRIAD computes a = b + s * c on doubles, as STREAM does, in blocks one after the "
            "other;\n"
            "LAT follows pointers through an area of --block bytes, each load dependent on the one "
            "before.\n"
            "C2C hands a cache line from core to core, for each pair of the CPUs of its threads.\n"
            "LADDER-RS and LADDER-LAT do as RS and LAT in working sets from half the first-level "
            "cache to four\n"
            "times the last, one thread.\n"
            "LOADED measures the latency on the first thread while the others load the memory, at "
            "growing rates; each takes 0.05 --seconds, or 0.03 s.\n"
            "NUMA-RS, NUMA-WS and NUMA-LAT do as RS, WS and LAT from the cores of each NUMA node "
            "to the memory\n"
            "of each, one pair of nodes after the other.",
        .example = "rambench --workload RWS --block 1MiB --pool 1GiB --threads 2 --seconds 1"};
    const struct option_spec specs[] = {
        {"workload", OPTION_CHOICE, &a->workload, "NAME", .help = "what to do",
         .choices = workloads},
        {"block", OPTION_SIZE, &a->block, "SIZE",
         .help = "bytes of a block, a multiple of 64; LAT: of each thread's area"},
        {"pool", OPTION_TEXT, &a->pool, "SIZE",
         .help = "memory of all threads that is walked block by block, or 'block' (default): each "
                 "thread "
                 "uses one block again and again; LADDER: largest working set (default 1GiB); "
                 "LOADED: what the loaders read (default: four times their last-level caches), and "
                 "as much to copy to; NUMA: of all nodes together (default: four times the "
                 "last-level caches)"},
        COMMON_OPTIONS(&a->common),
        {"total", OPTION_SIZE, &a->total, "SIZE",
         .help = "read plus write SIZE bytes in all instead of --seconds"},
        {"accesses", OPTION_COUNT, &a->accesses, "N",
         .help = "LAT: do N loads in all instead of --seconds"},
        {"stride", OPTION_SIZE, &a->stride, "SIZE",
         .help = "LAT: bytes from pointer to pointer, a multiple of 8 (default 8; 64: each cache "
                 "line once a "
                 "lap)"},
        {"isa", OPTION_CHOICE, &a->isa, "NAME", .help = "instruction set (default auto)",
         .choices = isa_choices},
        {"store", OPTION_CHOICE, &a->store, "KIND",
         .help =
             "temporal: through the caches, which first read each line that is written; streaming: "
             "around them; libc: memcpy and memset of the C library; default auto: streaming in a "
             "pool, "
             "temporal in a block",
         .choices = stores},
        {"pairs", OPTION_CHOICE, &a->pairs, "WHICH",
         .help = "C2C: of more than 64 CPUs a sample of pairs of each distance (default), or all",
         .choices = pairs},
        {"steps", OPTION_INTEGER, &a->steps, "N",
         .help = "LADDER: working sets an octave (default 4)", .minimum = 1, .maximum = 8},
        {"reads", OPTION_TEXT, &a->reads, "LIST",
         .help = "LOADED: percent of the traffic that are reads (default 100,75,50)"},
        {"rates", OPTION_INTEGER, &a->rates, "N",
         .help = "LOADED: rates of traffic, the last without pauses (default 12)", .minimum = 1,
         .maximum = LOADED_RATES_MAX},
        {"huge-pages", OPTION_CHOICE, &a->huge_pages, "WHETHER",
         .help = "ask for huge pages (default on), or have none", .choices = switches},
        END_OF_OPTIONS,
    };
    options_no_more(argc, argv, options_parse(&program, specs, argc, argv));
}

static enum operation operation_of(const char *workload) {
    return strcmp(workload, "LAT") == 0      ? OPERATION_CHASE
           : strcmp(workload, "TRIAD") == 0  ? OPERATION_TRIAD
           : strncmp(workload, "RW", 2) == 0 ? OPERATION_COPY
           : workload[0] == 'R'              ? OPERATION_READ
                                             : OPERATION_WRITE;
}

/* Sizes beyond any memory are mistakes; sums and products of the others fit into 64 bits. */
static void check_memory(const struct arguments *a) {
    char text[NAME_BYTES];
    static const char *const uses[] = {"", "", ", once to read and once to write,",
                                       ", twice to read and once to write,"};
    const unsigned each = bench_buffers(operation_of(a->workload));
    const uint64_t buffers = (uint64_t)a->common.threads * each;
    uint64_t pool;
    if (a->block > BYTES_MOST / buffers) {
        fail_usage(
            "--block: %s for each of %d thread%s%s is more memory than any machine has: make "
            "--block or --threads smaller",
            format_size(a->block, text, sizeof text), a->common.threads,
            a->common.threads > 1 ? "s" : "", uses[each]);
    }
    if (a->pool != NULL && parse_size(a->pool, &pool) && pool > BYTES_MOST) {
        fail_usage("--pool: %s is more memory than any machine has: make --pool smaller",
                   format_size(pool, text, sizeof text));
    }
}

/* A thread without work would be none, and the rate that of fewer threads than the record says. */
static void check_work(const struct arguments *a) {
    char total[NAME_BYTES], block[NAME_BYTES], least[NAME_BYTES];
    const uint64_t threads = (uint64_t)a->common.threads;
    static const char *const uses[] = {"", "", ", read and written,", ", in three arrays,"};
    const unsigned moves = bench_buffers(operation_of(a->workload));
    if (a->total > 0 && a->total / moves / a->block < threads) {
        fail_usage(
            "--total: %s is less than one block of %s%s for each of %d threads: give %s or more",
            format_size(a->total, total, sizeof total), format_size(a->block, block, sizeof block),
            uses[moves], a->common.threads,
            format_size(moves * a->block * threads, least, sizeof least));
    }
    if (a->accesses > 0 && a->accesses < threads) {
        fail_usage("--accesses: %" PRIu64
                   " are less than one for each of %d threads: give %d or more",
                   a->accesses, a->common.threads, a->common.threads);
    }
}

static void check_arguments(const struct arguments *a) {
    if (a->workload == NULL) {
        fail_usage("--workload is missing: choose one of RS, WS, RWS, RR, WR, RWR, TRIAD, LAT, "
                   "C2C, LADDER-RS, LADDER-LAT, LOADED, NUMA-RS, NUMA-WS, NUMA-LAT");
    }
    check_memory(a);
    if (shape_of(a->workload) != NULL) {
        bool pool = a->pool != NULL && shape_of(a->workload)->measure == c2c_measure;
        if (a->block > 0 || pool || a->total > 0 || a->accesses > 0) {
            fail_usage("%s measures sizes of its own: leave --block, --pool, --total and "
                       "--accesses out",
                       a->workload);
        }
        return;
    }
    if (a->block == 0) {
        fail_usage("--block is missing: give the bytes of a block, e.g. 1KiB, 1MiB or 10MiB");
    }
    if (a->block % LINE_BYTES != 0) {
        fail_usage("--block: %" PRIu64 " bytes are not whole cache lines: give a multiple of %d",
                   a->block, LINE_BYTES);
    }
    bool chase = strcmp(a->workload, "LAT") == 0;
    if (chase && (a->pool != NULL || a->total > 0 || strcmp(a->store, "auto") != 0)) {
        fail_usage("LAT takes none of --pool, --total and --store: --block is the area, --accesses "
                   "the work");
    }
    if (strcmp(a->store, "libc") == 0 && (operation_of(a->workload) == OPERATION_READ ||
                                          operation_of(a->workload) == OPERATION_TRIAD)) {
        fail_usage("--store libc writes with memcpy or memset: it does not belong to %s",
                   a->workload);
    }
    if (a->stride % sizeof(void *) != 0 || a->stride > a->block) {
        fail_usage("--stride: %" PRIu64
                   " bytes are not a multiple of 8 or more than the area of --block",
                   a->stride);
    }
    if (!chase && a->accesses > 0) {
        fail_usage("--accesses belongs to LAT; for %s give --total or --seconds", a->workload);
    }
    if ((a->total > 0 || a->accesses > 0) && a->common.seconds_set) {
        fail_usage("--seconds and %s exclude each other: the run ends by time or by work",
                   a->total > 0 ? "--total" : "--accesses");
    }
    check_work(a);
}

/* Blocks of each thread; 1 without a pool. */
static uint64_t blocks_per_thread(const struct arguments *a, uint64_t pool, int buffers,
                                  struct warnings *warnings) {
    char block[NAME_BYTES], total[NAME_BYTES];
    if (pool == 0) {
        return 1;
    }
    uint64_t part = pool / (uint64_t)a->common.threads / (uint64_t)buffers,
             blocks = part / a->block;
    if (blocks > UINT32_MAX) {
        fail_usage("--pool: %s has more than 2^32 blocks of %s for a thread: use larger blocks",
                   format_size(pool, total, sizeof total),
                   format_size(a->block, block, sizeof block));
    }
    if (blocks == 0) {
        warnings_add(warnings,
                     "the block of %s is larger than a thread's part of the pool of %s: the pool "
                     "is one block",
                     format_size(a->block, block, sizeof block),
                     format_size(pool, total, sizeof total));
        blocks = 1;
    }
    return blocks;
}

static uint64_t pool_bytes(const struct arguments *a) {
    uint64_t bytes = 0;
    if (a->pool != NULL && strcmp(a->pool, "block") != 0 && !parse_size(a->pool, &bytes)) {
        fail_usage("--pool: '%s' is neither a size such as 1GiB nor the word block", a->pool);
    }
    return bytes;
}

/* The workload that goes over the same blocks one after the other. */
static const char *sequential_of(enum operation operation) {
    return operation == OPERATION_COPY ? "RWS" : operation == OPERATION_READ ? "RS" : "WS";
}

/* A pool is walked to see the memory, so its rows show the memory's best; one block lies in the
 * caches. */
static void choose_stores(struct bench *bench, const struct arguments *a, bool pool) {
    bool writes = bench_writes(bench->operation);
    bool can = writes && bench->sweeper->write_streaming != NULL;
    bench->streaming = can && pool;
    if (strcmp(a->store, "temporal") == 0) {
        bench->streaming = false;
    } else if (strcmp(a->store, "streaming") == 0) {
        if (writes && !can) {
            fail_impossible("there are no streaming stores with --isa %s",
                            isa_name(bench->sweeper->isa));
        }
        bench->streaming = can;
    } else if (strcmp(a->store, "libc") == 0) {
        bench->streaming = false;
        bench->libc = true;
    }
}

static void warn(const struct arguments *a, const struct bench *bench, uint64_t pool,
                 uint64_t working_set, uint64_t cache, struct warnings *warnings) {
    char block[NAME_BYTES], total[NAME_BYTES];
    if (pool > 0 && cache > 0 && working_set < cache) {
        warnings_add(warnings,
                     "the pool of %s is smaller than the last-level cache of %s: this is no figure "
                     "of the memory",
                     format_size(working_set, block, sizeof block),
                     format_size(cache, total, sizeof total));
    }
    if (bench->random && bench->blocks == 1) {
        warnings_add(warnings,
                     "each thread has one block only, so %s measures what %s does: give a --pool "
                     "of many blocks",
                     a->workload, sequential_of(bench->operation));
    }
    const uint64_t each = bench_bytes_per_thread(bench), threads = (uint64_t)a->common.threads;
    memory_need(each > UINT64_MAX / threads ? UINT64_MAX : each * threads,
                "--pool, --block or --threads");
}

/* Mean time of a load over all threads, and that of the fastest portion. */
static double mean_latency(const struct team *team, double *fastest) {
    double seconds = 0;
    *fastest = 0;
    for (int i = 0; i < team->threads; i++) {
        const struct team_member *member = &team->members[i];
        double best = bench_worker(member)->fastest;
        seconds += (double)(member->stop_ns - member->start_ns) * 1e-9;
        *fastest = best > 0 && (*fastest == 0 || best < *fastest) ? best : *fastest;
    }
    return team->work > 0 ? seconds / (double)team->work : 0;
}

/* After the run: a visit that is long against it. */
static void warn_of_long_visits(const struct bench *bench, const struct team *team,
                                struct warnings *warnings) {
    char block[NAME_BYTES];
    const double visit = bench_long_visit(team, bench_work_per_visit(bench));
    if (bench->operation != OPERATION_CHASE && visit > 0) {
        warnings_add(warnings,
                     "the threads stopped apart, as each ends its visit to a block of %s, which "
                     "takes %.2g s of %.2g s: the rate is too low; give more --seconds",
                     format_size(bench->block, block, sizeof block), visit, team->seconds);
    }
}

static void print_result(const struct arguments *a, const struct bench *bench,
                         const struct team *team, uint64_t pool, uint64_t working_set,
                         const struct warnings *warnings) {
    struct json json;
    double fastest = 0;
    bool chase = bench->operation == OPERATION_CHASE;
    bool writes = bench_writes(bench->operation);
    bool triad = bench->operation == OPERATION_TRIAD;
    struct report report = {.instrument = "rambench",
                            .workload = a->workload,
                            .value = chase ? mean_latency(team, &fastest) : team_rate(team),
                            .unit = chase ? "s" : "B/s",
                            .work_unit = chase ? "access" : "B",
                            .isa = chase || bench->libc ? NULL : isa_name(bench->sweeper->isa),
                            .team = team,
                            .warnings = warnings};
    report_begin(&json, &report);
    report_clock(&json, team);
    json_unsigned(&json, "block", a->block);
    if (pool > 0) {
        json_unsigned(&json, "pool", pool);
    } else {
        json_null(&json, "pool");
    }
    json_string(&json, "working_set", pool > 0 ? "pool" : "block");
    json_unsigned(&json, "working_set_bytes", working_set);
    if (team->probe_before > 0 && team->probe_after > 0) {
        json_double(&json, "probe_before", team->probe_before);
        json_double(&json, "probe_after", team->probe_after);
    }
    json_unsigned(&json, "huge_pages", bench->huge_bytes);
    json_string(&json, "huge_page_policy", arena_huge_policy());
    json_string(&json, "store",
                !writes            ? NULL
                : bench->libc      ? "libc"
                : bench->streaming ? "streaming"
                                   : "temporal");
    json_string(&json, "instruction",
                chase         ? "dependent load"
                : bench->libc ? (bench->operation == OPERATION_COPY ? "memcpy" : "memset")
                : triad       ? bench->sweeper->triad_instruction
                              : bench->sweeper->instruction);
    if (chase) {
        json_unsigned(&json, "stride", a->stride);
    }
    if (chase && fastest > 0) {
        json_double(&json, "fastest", fastest);
    }
    report_end(&json, &report);
}

int main(int argc, char **argv) {
    static struct arguments a = {.common = COMMON_DEFAULTS};
    static struct cpu_list cpus;
    struct warnings warnings = {0};
    a.stride = sizeof(void *);
    a.isa = isa_choices[0];
    a.store = stores[0];
    a.huge_pages = switches[0];
    a.pairs = pairs[0];
    a.steps = 4;
    a.reads = "100,75,50";
    a.rates = 12;
    parse_arguments(&a, argc, argv);
    check_arguments(&a);
    const struct shape *shape = shape_of(a.workload);
    if (shape != NULL) {
        place_choose(&a.common.cpus, a.common.threads, &cpus, &warnings);
        shape->measure(&a, &cpus, &warnings);
        warnings_free(&warnings);
        return STATUS_OK;
    }
    struct bench bench = {.operation = operation_of(a.workload),
                          .random = a.workload[strlen(a.workload) - 1] == 'R',
                          .huge_pages = strcmp(a.huge_pages, "on") == 0,
                          .block = (size_t)a.block,
                          .stride = (size_t)a.stride,
                          .blocks = 1,
                          .seed = a.common.seed,
                          .sweeper = sweeper_find(isa_from_name(a.isa))};
    if (bench.sweeper == NULL) {
        fail_impossible(
            "this CPU or its operating system does not run %s; --isa auto takes the best it has",
            a.isa);
    }
    bool chase = bench.operation == OPERATION_CHASE;
    int buffers = (int)bench_buffers(bench.operation);
    uint64_t pool = pool_bytes(&a);
    place_choose(&a.common.cpus, a.common.threads, &cpus, &warnings);
    bench.blocks = blocks_per_thread(&a, pool, buffers, &warnings);
    uint64_t working_set = (uint64_t)a.common.threads * (uint64_t)buffers * a.block * bench.blocks;
    uint64_t cache = cache_last_level(SYSTEM_CPU, &cpus);
    bench.probe = cache > 0 && working_set >= CACHES * cache;
    choose_stores(&bench, &a, pool > 0);
    warn(&a, &bench, pool, working_set, cache, &warnings);
    const struct team_plan plan = {.warmup = a.common.warmup,
                                   .seconds = a.common.seconds,
                                   .work = chase ? a.accesses : a.total,
                                   .grain = bench_work_per_visit(&bench),
                                   .clock_rate = true};
    struct team team;
    const char *better = chase || bench.libc
                             ? NULL
                             : isa_better_left_out(bench.sweeper->isa, ISA_FEATURE_NONE, false);
    if (better != NULL) {
        warnings_add(&warnings,
                     "rambench was built without %s, which this CPU has: build it with a newer "
                     "compiler and assembler",
                     better);
    }
    if (!team_run(&team, &cpus, &plan, chase ? &bench_chase_job : &bench_sweep_job, &bench)) {
        report_failure(&team);
    }
    warn_of_long_visits(&bench, &team, &warnings);
    print_result(&a, &bench, &team, pool, working_set, &warnings);
    bench_free(&team);
    team_free(&team);
    warnings_free(&warnings);
    return STATUS_OK;
}
