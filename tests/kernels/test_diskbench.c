/* diskbench as a process, on real files: counts, limits of the machine, and that nothing is left
 * behind. */
#include "process.h"

#include <dirent.h>
#include <sys/stat.h>

static char directory[64]; /* of each test, on the filesystem of $TMPDIR or /tmp */

static int make_directory(void **state) {
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/test_diskbench.XXXXXX",
             parent != NULL && strlen(parent) < 32 ? parent : "/tmp");
    return mkdtemp(directory) != NULL ? 0 : -1;
}

/* rmdir refuses a directory that is not empty: whatever a test left behind makes it fail. */
static int remove_directory(void **state) {
    (void)state;
    return rmdir(directory);
}

static void assert_nothing_left(void) {
    DIR *entries = opendir(directory);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (entry->d_name[0] != '.') {
            fail_msg("%s is left behind", entry->d_name);
        }
    }
    closedir(entries);
}

/* Bytes of the buffers in huge pages; `policy` gets the kernel's word for whether it gives any. */
static double huge_bytes(const char *record, const char *wanted, char policy[16]) {
    struct process *process = process_run(
        NULL, ARGV("diskbench", "--workload", "RS", "--record", record, "--size", "1MiB", "--total",
                   "1MiB", "--warmup", "0", "--huge-pages", wanted, "--directory", directory));
    assert_int_equal(process->status, 0);
    double bytes = json_number(process, "huge_pages");
    snprintf(policy, 16, "%s", json_at(process, "huge_page_policy"));
    process_free(process);
    return bytes;
}

/* A kernel that gives none at all shows it in its policy; where memory is in pieces, it has none at
 * times. */
static void buffers_are_in_huge_pages_unless_refused(void **state) {
    (void)state;
    char policy[16];
    assert_true(huge_bytes("64KiB", "off", policy) == 0);
    assert_true(huge_bytes("4KiB", "on", policy) == 0);
    double bytes = 0;
    for (int i = 0; i < 20 && bytes == 0 && strncmp(policy, "\"never\"", 7) != 0; i++) {
        bytes = huge_bytes("64KiB", "on", policy);
        assert_true(bytes == 0 || bytes == 2 << 20);
    }
    if (bytes == 0) {
        skip_because("the kernel gives no huge page: %s", policy);
    }
}

static void totals_are_exact(void **state) {
    (void)state;
    static const char *const workloads[] = {"RS", "WS", "RR", "WR"};
    for (size_t i = 0; i < 4; i++) {
        /* 3 MiB over files of 1 MiB in all: every workload wraps around; 768 records do not divide
         * by 5. */
        struct process *process =
            process_run(NULL, ARGV("diskbench", "--workload", workloads[i], "--record", "4KiB",
                                   "--size", "1MiB", "--total", "3MiB", "--threads", "5",
                                   "--warmup", "0.01", "--directory", directory));
        assert_int_equal(process->status, 0);
        assert_true(json_number(process, "work") == 3 << 20);
        assert_true(json_number(process, "operations") == 768);
        assert_true(json_number(process, "size") == 51 * 5 * 4096);
        assert_true(json_number(process, "iops") * 4096 > 0.999 * json_number(process, "value"));
        assert_true(json_number(process, "iops") * 4096 < 1.001 * json_number(process, "value"));
        assert_true(json_number(process, "latency_mean") <= json_number(process, "max"));
        assert_true(json_number(process, "verified") >= 5);
        assert_memory_equal(json_at(process, "flushed"), workloads[i][0] == 'W' ? "true" : "false",
                            4);
        assert_percentiles(process);
        process_free(process);
    }
    assert_nothing_left();
}

/* Written as requested, through either engine: 3 MiB into files of 1 MiB empty each file twice. */
static void writes_wait_for_each_record_or_make_files_new(void **state) {
    (void)state;
    static const char *const workloads[] = {"WS", "WR"}, *const engines[] = {"psync", "io_uring"};
    static const char *const choices[][2] = {
        {"end", "overwrite"}, {"each", "overwrite"}, {"end", "new"}, {"each", "new"}};
    for (size_t i = 0; i < 16; i++) {
        const char *const *how = choices[i % 4], *engine = engines[i / 8];
        struct process *process = process_run(
            NULL, ARGV("diskbench", "--workload", workloads[i / 4 % 2], "--record", "64KiB",
                       "--size", "1MiB", "--total", "3MiB", "--threads", "2", "--warmup", "0.01",
                       "--engine", engine, "--depth", i < 8 ? "1" : "4", "--sync", how[0], "--fill",
                       how[1], "--directory", directory));
        if (process->status == 77 && i >= 8) {
            process_free(process);
            skip_because("no io_uring here");
            return;
        }
        assert_int_equal(process->status, 0);
        assert_true(json_number(process, "work") == 3 << 20);
        assert_true(json_number(process, "verified") >= 1);
        assert_memory_equal(json_at(process, "sync"), how[0][1] == 'n' ? "\"end\"" : "\"each\"", 5);
        assert_memory_equal(json_at(process, "fill"), how[1][0] == 'n' ? "\"new\"" : "\"overw", 5);
        process_free(process);
    }
    assert_nothing_left();
}

static void runs_for_the_time_set(void **state) {
    (void)state;
    uint64_t began = clock_now();
    struct process *process =
        process_run(NULL, ARGV("diskbench", "--workload", "RR", "--record", "16KiB", "--size",
                               "4MiB", "--seconds", "0.3", "--threads", "2", "--warmup", "0.1",
                               "--directory", directory));
    assert_int_equal(process->status, 0);
    process_lasted(process, began, 0.1 + 0.3);
    assert_true(json_number(process, "work") == json_number(process, "operations") * 16384);
    process_free(process);
}

/*
 * A page cache would serve all reads of a file just written, and swallow writes: the device's
 * counters tell.
 */
static void direct_reaches_the_device(void **state) {
    (void)state;
    static const char *const workloads[] = {"RS", "WS"};
    for (size_t i = 0; i < 2; i++) {
        struct process *process = process_run(
            NULL, ARGV("diskbench", "--workload", workloads[i], "--record", "64KiB", "--size",
                       "4MiB", "--total", "8MiB", "--warmup", "0", "--directory", directory));
        assert_int_equal(process->status, 0);
        if (strncmp(json_at(process, "device_bytes"), "null", 4) == 0) {
            process_free(process);
            skip_because("the scratch directory is on no block device");
            return;
        }
        if (strncmp(json_at(process, "direct"), "true", 4) == 0) {
            assert_true(json_number(process, "device_bytes") >= 8 << 20);
            assert_null(strstr(process->output, "cached"));
        }
        process_free(process);
    }
}

static void memory_is_labelled(void **state) {
    (void)state;
    struct stat status;
    if (stat("/dev/shm", &status) != 0 || access("/dev/shm", W_OK) != 0) {
        skip_because("/dev/shm cannot be written");
        return;
    }
    struct process *process =
        process_run(NULL, ARGV("diskbench", "--workload", "WS", "--size", "1MiB", "--total", "1MiB",
                               "--warmup", "0", "--directory", "/dev/shm"));
    assert_int_equal(process->status, 0);
    if (strncmp(json_at(process, "filesystem"), "\"tmpfs\"", 7) == 0) {
        assert_non_null(strstr(json_at(process, "warnings"), "RAM: tmpfs"));
        assert_memory_equal(json_at(process, "device_bytes"), "null", 4);
    }
    process_free(process);
}

static void record_below_the_alignment_is_impossible(void **state) {
    (void)state;
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "RR", "--record", "100",
                                          "--size", "1MiB", "--directory", directory)),
                   77, "a record of 100 bytes is not possible here");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "RR", "--record", "4097",
                                          "--size", "1MiB", "--directory", directory)),
                   77, "multiples of");
    assert_nothing_left();
}

static void too_little_space_is_refused(void **state) {
    (void)state;
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "WS", "--size", "500000TiB",
                                          "--directory", directory)),
                   1, "not enough space");
    assert_nothing_left();
}

/* Without it the kernel would end the run once the buffers are filled. */
static void too_little_memory_is_refused(void **state) {
    (void)state;
    process_expect(
        process_run(NULL, ARGV("diskbench", "--workload", "WS", "--record", "1GiB", "--threads",
                               "4096", "--size", "4TiB", "--directory", directory)),
        77, "8796093022208 bytes of memory are needed, but only");
    process_expect(
        process_run(NULL, ARGV("diskbench", "--workload", "WS", "--record", "1GiB", "--threads",
                               "4096", "--size", "8388607TiB", "--directory", directory)),
        77, "make --record, --depth or --threads smaller");
    assert_nothing_left();
}

static void wrong_command_lines_are_refused(void **state) {
    (void)state;
    process_expect(process_run(NULL, ARGV("diskbench", "--directory", directory)), 2,
                   "--workload is missing");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "RWS")), 2, "RS, WS, RR, WR");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "RR", "--depth", "2")), 2,
                   "io_uring");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "RR", "--sync", "each")), 2,
                   "do not belong to RR");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "RS", "--fill", "new")), 2,
                   "do not belong to RS");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "RR", "--seconds", "1",
                                          "--total", "1MiB")),
                   2, "exclude each other");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "RR", "--part", "1")), 2,
                   "--part needs --file");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "WS", "--fill", "new",
                                          "--file", "/tmp/x")),
                   2, "--fill new empties the file");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "META", "--file", "/tmp/x")),
                   2, "do not belong to META");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "RR", "--size", "1MiB",
                                          "--record", "1MiB", "--threads", "2")),
                   2, "use a larger --size");
    process_expect(
        process_run(NULL, ARGV("diskbench", "--workload", "RR", "--size", "1MiB", "--record",
                               "64KiB", "--threads", "2", "--total", "127KiB")),
        2, "--total is less than one record of 64KiB for each of 2 threads");
    process_expect(
        process_run(NULL, ARGV("diskbench", "--workload", "RR", "--directory", "/nonexistent/x")),
        2, "cannot be opened");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "RR", "--seconds", "0")), 2,
                   "measures nothing");
}

static void queue_of_requests(void **state) {
    (void)state;
    static const char *const workloads[] = {"RS", "WS", "RR", "WR"};
    for (size_t i = 0; i < 4; i++) {
        struct process *process =
            process_run(NULL, ARGV("diskbench", "--workload", workloads[i], "--engine", "io_uring",
                                   "--depth", "4", "--size", "256KiB", "--threads", "2", "--total",
                                   "2MiB", "--warmup", "0.01", "--directory", directory));
        if (process->status == 77) {
            assert_non_null(strstr(process->error, "--engine psync"));
            process_free(process);
            skip_because("no io_uring here");
            return;
        }
        assert_int_equal(process->status, 0);
        assert_true(json_number(process, "operations") == 512);
        assert_true(json_number(process, "depth") == 4);
        assert_percentiles(process);
        process_free(process);
    }
}

/* As in a container. */
static void a_forbidden_engine_is_impossible(void **state) {
    (void)state;
    process_expect(process_run_without((struct disabled_call){SYS_io_uring_setup, EPERM}, NULL,
                                       ARGV("diskbench", "--workload", "RR", "--engine", "io_uring",
                                            "--size", "1MiB", "--directory", directory)),
                   77, "use --engine psync");
    assert_nothing_left();
}

/* No filesystem at hand takes 0 bytes of a write, but a driver may. */
static void a_write_of_nothing_fails(void **state) {
    (void)state;
    static const char *const fills[] = {"overwrite",
                                        "new"}; /* while the file is laid out, and measured */
    for (size_t i = 0; i < 2; i++) {
        process_expect(
            process_run_without((struct disabled_call){SYS_pwrite64, 0}, NULL,
                                ARGV("diskbench", "--workload", "WS", "--size", "64KiB", "--total",
                                     "64KiB", "--fill", fills[i], "--directory", directory)),
            1, strerror(EIO));
    }
    assert_nothing_left();
}

/* Path of the first entry of a directory whose name begins with the marker; false when there is
 * none yet. */
static bool find_marked(const char *parent, char *path, size_t capacity) {
    DIR *entries = opendir(parent);
    bool is_found = false;
    for (struct dirent *entry = entries != NULL ? readdir(entries) : NULL;
         entry != NULL && !is_found; entry = readdir(entries)) {
        if (strncmp(entry->d_name, "peakmark-", 9) == 0) {
            snprintf(path, capacity, "%s/%.200s", parent, entry->d_name);
            is_found = true;
        }
    }
    if (entries != NULL) {
        closedir(entries);
    }
    return is_found;
}

static void signals_leave_nothing_behind(void **state) {
    (void)state;
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char private[300], file[600];
        struct stat status;
        struct process *process =
            process_start(NULL, ARGV("diskbench", "--workload", "WR", "--size", "4MiB", "--threads",
                                     "2", "--seconds", "50", "--directory", directory));
        uint64_t deadline = clock_now() + UINT64_C(20000000000);
        while (!(find_marked(directory, private, sizeof private) &&
                 find_marked(private, file, sizeof file) && stat(file, &status) == 0 &&
                 status.st_size > 0)) {
            assert_true(clock_now() < deadline);
        }
        assert_int_equal(status.st_mode & 07777, 0600);
        assert_int_equal(stat(private, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0700);
        kill(process->pid, numbers[i]);
        process_wait(process);
        process_expect(process, -numbers[i], NULL);
        assert_nothing_left();
    }
}

/* Each cycle creates, looks at and removes the files of all threads. */
static void metadata_is_measured_in_whole_cycles(void **state) {
    (void)state;
    static const char *const threads[] = {"1", "3"};
    for (size_t i = 0; i < 2; i++) {
        struct process *process = process_run(
            NULL, ARGV("diskbench", "--workload", "META", "--files", "20", "--threads", threads[i],
                       "--warmup", "0.01", "--seconds", "0.1", "--directory", directory));
        assert_int_equal(process->status, 0);
        double cycles = json_number(process, "cycles");
        assert_true(cycles >= 1);
        assert_true(json_number(process, "work") == cycles * 3 * 20 * atoi(threads[i]));
        static const char *const names[] = {"create", "stat", "unlink"};
        const char *row = process->output;
        for (size_t j = 0; j < 3; j++) {
            char variant[40];
            snprintf(variant, sizeof variant, "{\"variant\": \"%s\", \"value\": ", names[j]);
            row = strstr(row, variant);
            assert_non_null(row);
            /* The phases take parts of the time, so that each is faster than the cycle. */
            double rate = strtod(row + strlen(variant), NULL);
            assert_true(rate * 3 > json_number(process, "value"));
        }
        process_free(process);
    }
    assert_nothing_left();
}

static void a_refused_file_fails_the_metadata(void **state) {
    (void)state;
    process_expect(process_run_without((struct disabled_call){SYS_statx, EACCES}, NULL,
                                       ARGV("diskbench", "--workload", "META", "--threads", "2",
                                            "--directory", directory)),
                   1, "stat of an empty file failed: Permission denied");
    assert_nothing_left();
}

static void options_of_records_do_not_belong_to_metadata(void **state) {
    (void)state;
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "META", "--total", "1MiB")), 2,
                   "do not belong to META");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "META", "--sync", "each")), 2,
                   "do not belong to META");
    process_expect(process_run(NULL, ARGV("diskbench", "--workload", "META", "--files", "1000000",
                                          "--threads", "11")),
                   2, "more than 10000000 files");
}

/* Other threads still create files when the signal comes. */
static void signals_end_the_metadata_and_leave_nothing_behind(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        char private[300], file[600];
        struct process *process =
            process_start(NULL, ARGV("diskbench", "--workload", "META", "--threads", "4",
                                     "--seconds", "50", "--directory", directory));
        uint64_t deadline = clock_now() + UINT64_C(20000000000);
        while (!(find_marked(directory, private, sizeof private) &&
                 find_marked(private, file, sizeof file))) {
            assert_true(clock_now() < deadline);
        }
        kill(process->pid, SIGTERM);
        process_wait(process);
        process_expect(process, -SIGTERM, NULL);
        assert_nothing_left();
    }
}

/* Starts a program whose standard input is the pipe that `*line` writes into. */
static struct process *start_with_input(int *line, const char *const *argv) {
    int ends[2], before = dup(STDIN_FILENO);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    struct process *process = process_start(NULL, argv);
    dup2(before, STDIN_FILENO);
    close(before);
    close(ends[0]);
    *line = ends[1];
    return process;
}

static void programs_of_one_file_wait_until_all_have_filled_it(void **state) {
    (void)state;
    static const char *const parts[] = {"0", "1"};
    char path[128];
    struct process *processes[2];
    struct stat status;
    int lines[2];
    snprintf(path, sizeof path, "%s/shared", directory);
    for (size_t i = 0; i < 2; i++) {
        processes[i] = start_with_input(
            &lines[i], ARGV("diskbench", "--workload", "WR", "--record", "64KiB", "--size", "1MiB",
                            "--total", "2MiB", "--warmup", "0.01", "--threads", "2", "--wait",
                            "--file", path, "--part", parts[i], "--directory", directory));
        assert_true(process_listen(processes[i], "ready\n"));
        assert_int_equal(processes[i]->out_have, 0);
    }
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 2 << 20);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(write(lines[i], "go\n", 3), 3);
    }
    for (size_t i = 0; i < 2; i++) {
        process_wait(processes[i]);
        assert_int_equal(processes[i]->status, 0);
        assert_true(json_number(processes[i], "work") == 2 << 20);
        assert_true(json_number(processes[i], "verified") >= 1);
        process_free(processes[i]);
        close(lines[i]);
    }
    assert_int_equal(unlink(path), 0);
    assert_nothing_left();
}

static void a_run_that_is_called_off_leaves_nothing_behind(void **state) {
    (void)state;
    static const char *const workloads[] = {"RR", "META"};
    for (size_t i = 0; i < 2; i++) {
        int line;
        struct process *process =
            start_with_input(&line, ARGV("diskbench", "--workload", workloads[i], "--size", "1MiB",
                                         "--wait", "--directory", directory));
        assert_true(process_listen(process, "ready\n"));
        close(line);
        process_wait(process);
        process_expect(process, 1, "called off before its start");
        assert_nothing_left();
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_directory, remove_directory)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(buffers_are_in_huge_pages_unless_refused),
        TEST(totals_are_exact),
        TEST(writes_wait_for_each_record_or_make_files_new),
        TEST(runs_for_the_time_set),
        TEST(direct_reaches_the_device),
        TEST(memory_is_labelled),
        TEST(record_below_the_alignment_is_impossible),
        TEST(too_little_space_is_refused),
        TEST(too_little_memory_is_refused),
        TEST(wrong_command_lines_are_refused),
        TEST(queue_of_requests),
        TEST(a_forbidden_engine_is_impossible),
        TEST(a_write_of_nothing_fails),
        TEST(signals_leave_nothing_behind),
        TEST(metadata_is_measured_in_whole_cycles),
        TEST(a_refused_file_fails_the_metadata),
        TEST(options_of_records_do_not_belong_to_metadata),
        TEST(signals_end_the_metadata_and_leave_nothing_behind),
        TEST(programs_of_one_file_wait_until_all_have_filled_it),
        TEST(a_run_that_is_called_off_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
