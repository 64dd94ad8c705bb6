/* diskbench: throughput, operations per second and latency of reads and writes, past the page
 * cache. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/options.h"
#include "common/report.h"
#include "common/status.h"
#include "disk/lane.h"
#include "disk/metadata.h"
#include "disk/record.h"
#include "disk/scratch.h"
#include "disk/volume.h"

static const struct program program = {
    .name = "diskbench",
    .synopsis =
        "--workload RS|WS|RR|WR|META [--record SIZE] [--size SIZE] [--directory D] [options]",
    .summary =
        "Measures a disk in B/s, with operations per second and percentiles of the latency. "
        "Each thread "
        "works on\n"
        "a file of its own with O_DIRECT, in a private directory that is removed "
        "afterwards. Files are "
        "first\n"
        "filled with data that cannot be compressed; a run longer than the files starts "
        "over. Writes end "
        "with\n"
        "fdatasync, inside the clock. RS, WS: read and write sequentially; RR, WR: in "
        "random order, each "
        "record\n"
        "once per pass. With --fill new files are empty at first and before each pass, so "
        "that writes "
        "allocate.\n"
        "Percentiles are those of the service time: a stalled thread asks for nothing more.\n"
        "META: create, stat and unlink empty files in a folder of each thread, in 1/s.",
    .example = "diskbench --workload RR --record 4KiB --size 1GiB --directory /tmp --threads 4 "
               "--seconds 5",
};

struct disk_options {
    struct common_options common;
    const char *workload, *directory, *engine, *huge_pages, *sync, *fill, *file;
    uint64_t record, size, total;
    bool total_set, wait;
    int depth, files, part;
};

/* Most files of all threads of META. */
enum { FILES_MAX = 10000000 };
/* Most processes that share a file. */
enum { PARTS_MAX = 100000 };

static void parse(struct disk_options *options, int argc, char **argv) {
    static const char *const workloads[] = {"RS", "WS", "RR", "WR", "META", NULL};
    static const char *const engines[] = {"psync", "io_uring", NULL};
    static const char *const switches[] = {"on", "off", NULL};
    static const char *const syncs[] = {"end", "each", NULL};
    static const char *const fills[] = {"overwrite", "new", NULL};
    const struct option_spec specs[] = {
        {"workload", OPTION_CHOICE, &options->workload, "W", .help = "what is measured",
         .choices = workloads},
        {"record", OPTION_SIZE, &options->record, "SIZE",
         .help = "bytes of one operation, at most 1GiB (default 4KiB)"},
        {"size", OPTION_SIZE, &options->size, "SIZE",
         .help = "bytes of all threads' files together (default 1GiB)"},
        {"directory", OPTION_TEXT, &options->directory, "D",
         .help = "where the files are made (default: the working directory)"},
        {"engine", OPTION_CHOICE, &options->engine, "E",
         .help = "how requests are made (default psync)", .choices = engines},
        {"depth", OPTION_INTEGER, &options->depth, "N",
         .help = "requests in flight per thread; above 1 with io_uring only (default 1)",
         .minimum = 1, .maximum = 4096},
        {"total", OPTION_SIZE, &options->total, "SIZE",
         .help = "move SIZE bytes, shared by the threads, instead of --seconds",
         .is_set = &options->total_set},
        {"huge-pages", OPTION_CHOICE, &options->huge_pages, "WHETHER",
         .help = "ask for huge pages for the buffers of records above 4KiB (default on)",
         .choices = switches},
        {"sync", OPTION_CHOICE, &options->sync, "WHEN",
         .help = "WS, WR: the device has the data at the end, or after each record as with O_SYNC "
                 "(default "
                 "end)",
         .choices = syncs},
        {"fill", OPTION_CHOICE, &options->fill, "HOW",
         .help = "WS, WR: overwrite files that are there, or write new ones (default overwrite)",
         .choices = fills},
        {"files", OPTION_INTEGER, &options->files, "N",
         .help = "META: files of each thread in a cycle (default 1000)", .minimum = 1,
         .maximum = 1000000},
        {"file", OPTION_TEXT, &options->file, "PATH",
         .help = "one file for all threads, and for other processes, which the caller removes"},
        {"part", OPTION_INTEGER, &options->part, "N",
         .help = "of the parts of --file, each of --size bytes, the one that this process uses "
                 "(default 0)",
         .minimum = 0, .maximum = PARTS_MAX - 1},
        {"wait", OPTION_FLAG, &options->wait,
         .help = "print 'ready' on standard error when the files are filled, and start when a line "
                 "comes on standard input"},
        COMMON_OPTIONS(&options->common),
        END_OF_OPTIONS,
    };
    options_no_more(argc, argv, options_parse(&program, specs, argc, argv));
}

static bool is_metadata(const struct disk_options *options) {
    return strcmp(options->workload, "META") == 0;
}

/* The same for META, which has no records. */
static void check_metadata(const struct disk_options *options) {
    if (options->total_set || options->file != NULL || strcmp(options->engine, "psync") != 0 ||
        options->depth > 1) {
        fail_usage("--total, --file, --engine io_uring and --depth do not belong to META");
    }
    if ((int64_t)options->files * options->common.threads > FILES_MAX) {
        fail_usage("--files %d of each of %d threads are more than %d files: use fewer",
                   options->files, options->common.threads, FILES_MAX);
    }
}

/* Refuses what is wrong on the command line alone. */
static void check(const struct disk_options *options) {
    char record[32], size[32];
    format_size(options->record, record, sizeof record);
    if (options->workload == NULL) {
        fail_usage("--workload is missing: name RS, WS, RR, WR or META");
    }
    if (options->workload[0] != 'W' &&
        (strcmp(options->sync, "end") != 0 || strcmp(options->fill, "overwrite") != 0)) {
        fail_usage("--sync and --fill say how is written: they do not belong to %s",
                   options->workload);
    }
    if (options->total_set && options->common.seconds_set) {
        fail_usage("--seconds and --total exclude each other: name one");
    }
    if (!options->total_set && options->common.seconds <= 0) {
        fail_usage("--seconds 0 measures nothing: name a time above 0, or --total");
    }
    if (options->record > UINT64_C(1) << 30) {
        fail_usage("--record %s is larger than 1GiB", record);
    }
    if (options->file == NULL && options->part > 0) {
        fail_usage("--part needs --file");
    }
    if (options->file != NULL && strcmp(options->fill, "new") == 0) {
        fail_usage("--fill new empties the file before each pass: it excludes --file, which others "
                   "may use");
    }
    if (is_metadata(options)) {
        check_metadata(options);
        return;
    }
    if (options->total_set &&
        options->total / options->record < (uint64_t)options->common.threads) {
        fail_usage("--total is less than one record of %s for each of %d threads", record,
                   options->common.threads);
    }
    uint64_t records = options->size / (uint64_t)options->common.threads / options->record;
    if (records < (uint64_t)options->depth) {
        fail_usage("--size %s in %d files leaves less than %d record(s) of %s per file: use a "
                   "larger --size",
                   format_size(options->size, size, sizeof size), options->common.threads,
                   options->depth, record);
    }
    if (options->depth > 1 && strcmp(options->engine, "psync") == 0) {
        fail_usage("--depth %d needs --engine io_uring: psync keeps one request in flight",
                   options->depth);
    }
}

/*
 * Makes the files of all lanes, then refuses a record that direct I/O cannot move here (exit 77).
 */
static uint32_t open_files(struct disk_test *test, const struct disk_options *options,
                           struct warnings *warnings) {
    test->direct = true;
    for (int i = 0; i < options->common.threads; i++) {
        struct lane *lane = &test->lanes[i];
        if (options->file != NULL) {
            lane->file = scratch_open_shared(options->file, &test->direct);
            uint64_t before = (uint64_t)options->part * (uint64_t)options->common.threads;
            lane->begin = (before + (uint64_t)i) * test->records * test->record;
        } else {
            lane->file = scratch_open(i, &test->direct);
        }
    }
    uint32_t memory, alignment = volume_alignment(test->lanes[0].file, test->volume, &memory);
    if (test->record < alignment || test->record % alignment != 0 ||
        test->record < RECORD_MINIMUM) {
        fail_impossible("a record of %" PRIu64
                        " bytes is not possible here: direct I/O on this %s moves multiples of "
                        "%" PRIu32 " bytes; the next larger record has %" PRIu64,
                        test->record, test->volume->filesystem, alignment,
                        (test->record / alignment + 1) * alignment);
    }
    if (!test->direct) {
        warnings_add(warnings, "not direct: %s refuses O_DIRECT, so the page cache takes part",
                     test->volume->filesystem);
    }
    return alignment;
}

static void check_space(const struct volume *volume, uint64_t needed, const char *directory) {
    if (needed > volume->free_bytes) {
        fail_measurement("not enough space in '%s': the files need %" PRIu64 " bytes, %" PRIu64
                         " are free; use a smaller --size or another --directory",
                         directory, needed, volume->free_bytes);
    }
}

/* The buffers are written to before the run: without the memory for them the kernel would end it.
 */
static void check_memory(const struct disk_test *test, int threads) {
    /* Files are laid out from a buffer of a record more. */
    const uint64_t layout = test->fresh ? 0 : test->record;
    const uint64_t needed = (lane_buffer_bytes(test) + layout) * (uint64_t)threads;
    if (needed > BYTES_MOST) {
        fail_usage("--record, --depth and --threads: their buffers of %" PRIu64
                   " bytes are more memory than a process can have: make one of them smaller",
                   needed);
    }
    memory_need(needed, "--record, --depth or --threads");
}

static void warn_of_memory(const struct volume *volume, struct warnings *warnings) {
    if (volume->memory) {
        warnings_add(warnings, "RAM: %s keeps files in memory, this is no disk",
                     volume->filesystem);
    }
}

/* What the device moved while the clock ran; adds a warning where the result is doubtful. */
static bool device_bytes(const struct disk_test *test, uint64_t requested, uint64_t *moved,
                         struct warnings *warnings) {
    const struct volume *volume = test->volume;
    uint64_t read, written;
    warn_of_memory(volume, warnings);
    if (!test->counted || !volume_counters(volume, &read, &written)) {
        if (!volume->memory) {
            warnings_add(
                warnings,
                "unchecked: no block device is seen below this %s, so it is not known whether the "
                "bytes reached one",
                volume->filesystem);
        }
        return false;
    }
    *moved = test->write ? written - test->device_written : read - test->device_read;
    if ((double)*moved < 0.9 * (double)requested) {
        warnings_add(warnings, "cached: %" PRIu64 " of %" PRIu64 " bytes reached device %s", *moved,
                     requested, volume->device);
    }
    return true;
}

static void verify(struct disk_test *test, int threads, int64_t *verified) {
    *verified = 0;
    for (int i = 0; i < threads; i++) {
        char error[256];
        int64_t count = lane_verify(&test->lanes[i], error, sizeof error);
        if (count < 0) {
            fail_measurement("file of thread %d: %s; the result is not valid", i, error);
        }
        *verified += count;
    }
}

static void json_latency(struct json *json, const struct histogram *latency) {
    json_double(json, "latency_mean", histogram_mean(latency) * 1e-9);
    report_percentiles(json, latency);
}

static void print(const struct disk_options *options, struct disk_test *test,
                  const struct team *team, uint32_t alignment, struct warnings *warnings) {
    static struct histogram latency;
    uint64_t flush_ns = 0, moved = 0;
    bool known = device_bytes(test, team->work, &moved, warnings);
    int64_t verified;
    verify(test, team->threads, &verified);
    for (int i = 0; i < team->threads; i++) {
        histogram_merge(&latency, &test->lanes[i].latency);
        flush_ns = test->lanes[i].flush_ns > flush_ns ? test->lanes[i].flush_ns : flush_ns;
    }
    struct report report = {.instrument = "diskbench",
                            .workload = options->workload,
                            .value = team_rate(team),
                            .unit = "B/s",
                            .work_unit = "B",
                            .isa = NULL,
                            .team = team,
                            .warnings = warnings};
    struct json json;
    report_begin(&json, &report);
    json_unsigned(&json, "operations", latency.count);
    json_double(&json, "iops", (double)latency.count / team->seconds);
    json_latency(&json, &latency);
    json_unsigned(&json, "record", test->record);
    json_unsigned(&json, "size", test->record * test->records * (uint64_t)team->threads);
    json_string(&json, "engine", test->engine->name);
    json_integer(&json, "depth", test->depth);
    json_bool(&json, "direct", test->direct);
    json_bool(&json, "flushed", test->write);
    if (test->write) {
        json_string(&json, "sync", options->sync);
        json_string(&json, "fill", options->fill);
    }
    json_double(&json, "flush_seconds", (double)flush_ns * 1e-9);
    json_string(&json, "filesystem", test->volume->filesystem);
    json_string(&json, "device", test->volume->device[0] != '\0' ? test->volume->device : NULL);
    if (known) {
        json_unsigned(&json, "device_bytes", moved);
    } else {
        json_null(&json, "device_bytes");
    }
    json_unsigned(&json, "alignment", alignment);
    json_unsigned(&json, "huge_pages", test->huge_bytes);
    json_string(&json, "huge_page_policy", arena_huge_policy());
    json_integer(&json, "verified", verified);
    report_end(&json, &report);
}

static void make_test(struct disk_test *test, const struct disk_options *options,
                      const struct volume *volume) {
    int threads = options->common.threads;
    *test = (struct disk_test){.engine = strcmp(options->engine, "psync") == 0 ? &engine_psync
                                                                               : &engine_io_uring,
                               .volume = volume,
                               .write = options->workload[0] == 'W',
                               .random = options->workload[1] == 'R',
                               .sync = strcmp(options->sync, "each") == 0,
                               .fresh = strcmp(options->fill, "new") == 0,
                               .huge_pages = strcmp(options->huge_pages, "on") == 0,
                               .record = options->record,
                               .records = options->size / (uint64_t)threads / options->record,
                               .depth = options->depth,
                               .seed = options->common.seed,
                               .lanes = calloc((size_t)threads, sizeof(struct lane))};
    if (test->lanes == NULL ||
        getrandom(&test->run, sizeof test->run, 0) != (ssize_t)sizeof test->run) {
        fail_measurement("no memory or no random number for %d threads: %s", threads,
                         strerror(errno));
    }
    for (int i = 0; i < threads; i++) {
        test->lanes[i].test = test;
        test->lanes[i].file = -1;
    }
    if (test->engine->probe != NULL) {
        test->engine->probe(test);
    }
}

/* True when a line came on standard input, false when it ended. */
static bool wait_for_line(void) {
    char first;
    ssize_t got;
    fputs("ready\n", stderr);
    do {
        got = read(STDIN_FILENO, &first, sizeof first);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof first;
}

static void run_team(struct team *team, const struct disk_options *options,
                     const struct cpu_list *cpus, uint64_t work, uint64_t grain,
                     const struct team_job *job, void *context) {
    static struct cpu_list shared_cpus;
    shared_cpus = options->common.cpus;
    if (shared_cpus.count == 0 && !place_allowed(&shared_cpus)) {
        fail_measurement("the CPUs of this process cannot be read: %s", strerror(errno));
    }
    struct team_plan plan = {.warmup = options->common.warmup,
                             .seconds = options->common.seconds,
                             .work = work,
                             .grain = grain,
                             .clock_rate = false,
                             .shared_cpus = &shared_cpus,
                             .released = options->wait ? wait_for_line : NULL};
    if (!team_run(team, cpus, &plan, job, context)) {
        fail_measurement("%s", team->error);
    }
}

static void run_records(const struct disk_options *options, const struct cpu_list *cpus,
                        const struct volume *volume, struct warnings *warnings) {
    static struct disk_test test;
    struct team team;
    int threads = options->common.threads;
    make_test(&test, options, volume);
    check_memory(&test, threads);
    check_space(volume, test.record * test.records * (uint64_t)threads, options->directory);
    uint32_t alignment = open_files(&test, options, warnings);
    uint64_t work = options->total_set ? options->total / test.record * test.record : 0;
    run_team(&team, options, cpus, work, test.record, &lane_job, &test);
    print(options, &test, &team, alignment, warnings);
    for (int i = 0; i < threads; i++) {
        lane_free(&test.lanes[i]);
    }
    free(test.lanes);
    team_free(&team);
}

static void print_metadata(const struct disk_options *options, const struct metadata_test *test,
                           const struct team *team, const struct volume *volume,
                           struct warnings *warnings) {
    warn_of_memory(volume, warnings);
    struct report report = {.instrument = "diskbench",
                            .workload = options->workload,
                            .value = team_rate(team),
                            .unit = "1/s",
                            .work_unit = "op",
                            .isa = NULL,
                            .team = team,
                            .warnings = warnings};
    struct json json;
    report_begin(&json, &report);
    json_begin_array(&json, "rows");
    for (int phase = 0; phase < METADATA_PHASES; phase++) {
        report_row_begin(&json, metadata_names[phase],
                         metadata_rate(test, team->threads, (enum metadata_phase)phase));
        json_end_object(&json);
    }
    json_end_array(&json);
    json_integer(&json, "files", options->files);
    json_unsigned(&json, "cycles", test->cycles);
    json_string(&json, "filesystem", volume->filesystem);
    json_string(&json, "device", volume->device[0] != '\0' ? volume->device : NULL);
    report_end(&json, &report);
}

/* Threads wait for the filesystem, so that they may run on any CPU, as in measure. */
static void run_metadata(const struct disk_options *options, const struct cpu_list *cpus,
                         const struct volume *volume, struct warnings *warnings) {
    static struct metadata_test test;
    struct team team;
    if (!metadata_create(&test, options->common.threads, options->files)) {
        fail_measurement("no memory or no barrier for %d threads", options->common.threads);
    }
    scratch_make_folders(options->common.threads, options->files);
    run_team(&team, options, cpus, 0, 0, &metadata_job, &test);
    print_metadata(options, &test, &team, volume, warnings);
    metadata_free(&test);
    team_free(&team);
}

int main(int argc, char **argv) {
    static struct disk_options options = {.common = COMMON_DEFAULTS,
                                          .directory = ".",
                                          .engine = "psync",
                                          .huge_pages = "on",
                                          .sync = "end",
                                          .fill = "overwrite",
                                          .record = 4096,
                                          .size = UINT64_C(1) << 30,
                                          .depth = 1,
                                          .files = 1000};
    static struct cpu_list cpus;
    static struct volume volume;
    struct warnings warnings = {.count = 0};

    parse(&options, argc, argv);
    check(&options);
    place_choose(&options.common.cpus, options.common.threads, &cpus, &warnings);
    scratch_create(options.directory);
    if (!volume_inspect(scratch_directory(), &volume)) {
        fail_measurement("the filesystem of '%s' cannot be read: %s", options.directory,
                         strerror(errno));
    }
    if (is_metadata(&options)) {
        run_metadata(&options, &cpus, &volume, &warnings);
    } else {
        run_records(&options, &cpus, &volume, &warnings);
    }
    warnings_free(&warnings);
    scratch_remove();
    return STATUS_OK;
}
