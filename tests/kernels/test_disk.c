/* Parts of diskbench: the order of records, their stamps, what is known of a volume, and that
 * damage is noticed. */
#include "process.h"

#include <sys/stat.h>

#include "common/random.h"
#include "disk/lane.h"
#include "disk/order.h"
#include "disk/record.h"
#include "disk/volume.h"

static void every_record_comes_once_per_pass(void **state) {
    (void)state;
    static const uint64_t counts[] = {1, 2, 3, 5, 64, 1000, 4095, 4097, 100000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct order order = {.records = counts[i], .seed = 7 + i, .random = true};
        unsigned char *seen = calloc(counts[i], 1);
        assert_non_null(seen);
        for (uint64_t operation = 0; operation < 3 * counts[i]; operation++) {
            uint64_t at = order_at(&order, operation);
            assert_true(at < counts[i]);
            assert_int_equal(seen[at], operation / counts[i]);
            seen[at]++;
        }
        free(seen);
    }
}

/* Neighbours in time are hardly ever neighbours in the file, and no pass repeats the one before. */
static void random_order_is_random(void **state) {
    (void)state;
    struct order order = {.records = 10000, .seed = 1, .random = true}, other = {10000, 2, true};
    unsigned neighbours = 0, repeated = 0, as_other = 0, upper = 0;
    for (uint64_t i = 0; i + 1 < order.records; i++) {
        uint64_t now = order_at(&order, i), then = order_at(&order, i + 1);
        neighbours += then == now + 1;
        repeated += now == order_at(&order, i + order.records);
        as_other += now == order_at(&other, i);
        upper += i < 5000 && now >= 5000;
    }
    assert_true(neighbours < 20);
    assert_true(repeated < 20);
    assert_true(as_other < 20);
    assert_in_range(upper, 2300, 2700);
}

static void sequential_order_wraps_around(void **state) {
    (void)state;
    struct order order = {.records = 5, .seed = 1, .random = false};
    for (uint64_t i = 0; i < 12; i++) {
        assert_int_equal(order_at(&order, i), i % 5);
    }
}

static void stamps_tell_records_apart(void **state) {
    (void)state;
    static unsigned char data[3 * RECORD_PART + 512];
    static const size_t sizes[] = {512, 1024, 4096, 8192, sizeof data};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t generation = 0;
        record_stamp(data, sizes[i], 11, 22, 33);
        assert_true(record_check(data, sizes[i], 11, 22, &generation));
        assert_int_equal(generation, 33);
        assert_false(record_check(data, sizes[i], 12, 22, &generation));
        assert_false(record_check(data, sizes[i], 11, 23, &generation));
    }
    uint64_t generation;
    data[2 * RECORD_PART + 17] ^= 1; /* one part is of another write, or damaged */
    assert_false(record_check(data, sizeof data, 11, 22, &generation));
    record_stamp(data, sizeof data, 11, 22, 34);
    memcpy(data, data + RECORD_PART, RECORD_MINIMUM); /* a part in another part's place */
    assert_false(record_check(data, sizeof data, 11, 22, &generation));
    memset(data, 0, sizeof data);
    assert_false(record_check(data, sizeof data, 0, 0, &generation));
}

static void filesystems_have_names(void **state) {
    (void)state;
    assert_string_equal(volume_filesystem_name(0xef53), "ext4");
    assert_string_equal(volume_filesystem_name(0x01021994), "tmpfs");
    assert_string_equal(volume_filesystem_name(0x0bd00bd0), "lustre");
    assert_null(volume_filesystem_name(0x12345678));
}

static void memory_is_no_disk(void **state) {
    (void)state;
    struct volume volume;
    int directory = open("/dev/shm", O_RDONLY | O_DIRECTORY);
    if (directory < 0 || !volume_inspect(directory, &volume) ||
        strcmp(volume.filesystem, "tmpfs") != 0) {
        skip_because("/dev/shm is no tmpfs");
        return;
    }
    uint64_t read, written;
    assert_true(volume.memory);
    assert_string_equal(volume.device, "");
    assert_false(volume_counters(&volume, &read, &written));
    close(directory);
}

/* A damaged record, or one of an older write, is found after the clock. */
static void damage_is_found(void **state) {
    (void)state;
    char path[] = "/tmp/test_disk.XXXXXX", error[256];
    int file = mkstemp(path);
    assert_true(file >= 0);
    unlink(path);
    struct volume volume = {.device = ""};
    struct cpu_list cpus;
    for (int write = 0; write <= 1; write++) {
        struct lane lane = {.file = dup(file)};
        struct disk_test test = {.engine = &engine_psync,
                                 .volume = &volume,
                                 .write = write,
                                 .random = true,
                                 .record = 4096,
                                 .records = 16,
                                 .depth = 1,
                                 .seed = 3,
                                 .run = 99,
                                 .lanes = &lane};
        struct team_plan plan = {.warmup = 0, .work = 40 * 4096, .grain = 4096};
        struct team team;
        lane.test = &test;
        assert_true(place_allowed(&cpus));
        cpus.count = 1;
        assert_true(team_run(&team, &cpus, &plan, &lane_job, &test));
        assert_int_equal(team.work, 40 * 4096);
        assert_int_equal(lane.latency.count, 40);
        assert_int_equal(lane_verify(&lane, error, sizeof error), write ? 16 : 17);
        unsigned char data[4096], *buffer = lane_buffer(&lane, 0);
        uint64_t index = order_at(&lane.order, 39);
        assert_int_equal(pread(file, data, sizeof data, (off_t)(index * 4096)), sizeof data);
        record_stamp(data, sizeof data, lane.name, index, write ? 39 : 1);
        assert_int_equal(pwrite(file, data, sizeof data, (off_t)(index * 4096)), sizeof data);
        record_stamp(buffer, 4096, lane.name, index,
                     0); /* what the last read brought is still good */
        assert_int_equal(lane_verify(&lane, error, sizeof error), -1);
        assert_non_null(strstr(error, "does not hold what was written"));
        buffer[9] ^= 1;
        if (!write) {
            assert_int_equal(lane_verify(&lane, error, sizeof error), -1);
            assert_non_null(strstr(error, "did not bring"));
        }
        lane_free(&lane);
        team_free(&team);
    }
    close(file);
}

/*
 * 40 records of 4 KiB in files of 16: a new file is empty at first and before each pass, so it ends
 * with 8.
 */
static void a_new_file_holds_its_last_pass_only(void **state) {
    (void)state;
    char path[] = "/tmp/test_disk.XXXXXX", error[256];
    struct volume volume = {.device = ""};
    struct cpu_list cpus;
    int file = mkstemp(path);
    assert_true(file >= 0);
    unlink(path);
    for (int fresh = 0; fresh <= 1; fresh++) {
        struct stat status;
        struct lane lane = {.file = dup(file)};
        struct disk_test test = {.engine = &engine_psync,
                                 .volume = &volume,
                                 .write = true,
                                 .sync = fresh,
                                 .fresh = fresh,
                                 .record = 4096,
                                 .records = 16,
                                 .depth = 1,
                                 .run = 99,
                                 .lanes = &lane};
        struct team_plan plan = {.warmup = 0, .work = 40 * 4096, .grain = 4096};
        struct team team;
        lane.test = &test;
        assert_int_equal(ftruncate(file, 0), 0);
        assert_true(place_allowed(&cpus));
        cpus.count = 1;
        assert_true(team_run(&team, &cpus, &plan, &lane_job, &test));
        assert_int_equal(team.work, 40 * 4096);
        assert_int_equal(fstat(file, &status), 0);
        assert_int_equal(status.st_size, (fresh ? 8 : 16) * 4096);
        assert_int_equal(lane_verify(&lane, error, sizeof error), fresh ? 8 : 16);
        lane_free(&lane);
        team_free(&team);
    }
    close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_comes_once_per_pass),
        cmocka_unit_test(random_order_is_random),
        cmocka_unit_test(sequential_order_wraps_around),
        cmocka_unit_test(stamps_tell_records_apart),
        cmocka_unit_test(filesystems_have_names),
        cmocka_unit_test(memory_is_no_disk),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(a_new_file_holds_its_last_pass_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
