/* Counters of energy, read from made-up trees of sysfs. */
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/energy.h"

#define RAPL "class/powercap/intel-rapl"
#define HWMON "class/hwmon/hwmon0/"

static char tree[] = "/tmp/peakmark-energy-XXXXXX";

/* Writes a file below the tree, with its folders. */
static void put(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    for (char *slash = path + strlen(tree) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void put_zone(const char *zone, const char *name, const char *energy) {
    static const char *const files[] = {"name", "energy_uj", "max_energy_range_uj"};
    const char *const texts[] = {name, energy, "262143328850\n"};
    for (int i = 0; i < 3; i++) {
        char path[256];
        snprintf(path, sizeof path, RAPL "%s/%s", zone, files[i]);
        put(path, texts[i]);
    }
}

static int new_tree(void **state) {
    (void)state;
    strcpy(tree + strlen(tree) - 6, "XXXXXX");
    return mkdtemp(tree) == NULL;
}

static int remove_tree(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", tree);
    return system(command);
}

/* Packages and their memory count, parts of a package and the whole platform would count twice. */
static void packages_and_memory_are_summed(void **state) {
    (void)state;
    struct energy energy;
    put_zone(":0", "package-0\n", "1000000\n");
    put_zone(":0:0", "core\n", "5\n");
    put_zone(":0:1", "dram\n", "7000000\n");
    put_zone(":1", "package-1\n", "262143000000\n");
    put_zone(":2", "psys\n", "9\n");
    put_zone("-mmio:0", "package-0\n", "1000000\n");
    energy_open(&energy, tree);
    assert_string_equal(energy.names, "package-0, dram, package-1");
    energy_start(&energy);
    energy.start_ns -= UINT64_C(1000000000);
    put_zone(":0", "package-0\n", "3000000\n");
    put_zone(":0:0", "core\n", "900000000\n");
    put_zone(":0:1", "dram\n", "7500000\n");
    put_zone(":1", "package-1\n", "1171150\n"); /* it began anew: 0.328850 + 1.171150 J */
    energy_stop(&energy);
    assert_true(energy.joules > 3.999 && energy.joules < 4.001);
    energy_close(&energy);
}

static void the_platform_where_there_is_no_package(void **state) {
    (void)state;
    struct energy energy;
    put_zone(":0", "psys\n", "1000000\n");
    energy_open(&energy, tree);
    assert_string_equal(energy.names, "psys");
    energy_start(&energy);
    energy.start_ns -= UINT64_C(1000000000);
    put_zone(":0", "psys\n", "1250000\n");
    energy_stop(&energy);
    assert_true(energy.joules > 0.249 && energy.joules < 0.251);
    energy_close(&energy);
}

/* A counter that may have come around more than once tells nothing. */
static void a_run_too_long_for_its_counter(void **state) {
    (void)state;
    struct energy energy;
    put_zone(":0", "package-0\n", "1000000\n");
    energy_open(&energy, tree);
    energy_start(&energy);
    put_zone(":0", "package-0\n", "2000000\n");
    energy.start_ns -= UINT64_C(300000000000);
    energy_stop(&energy);
    assert_true(energy.joules == 0);
    energy_close(&energy);
}

static void a_counter_that_jumps(void **state) {
    (void)state;
    struct energy energy;
    put_zone(":0", "package-0\n", "1000000\n");
    energy_open(&energy, tree);
    energy_start(&energy);
    energy.start_ns -= UINT64_C(1000000000);
    put_zone(":0", "package-0\n", "9223372036854775807\n");
    energy_stop(&energy);
    assert_true(energy.joules == 0);
    energy_close(&energy);
}

/* Without that of the socket, the module may hold the processor. */
static void meters_that_may_hold_one_another(void **state) {
    (void)state;
    struct energy energy;
    put(HWMON "name", "power_meter\n");
    put(HWMON "power1_oem_info", "Module Power Socket 0\n");
    put(HWMON "power2_oem_info", "CPU Power Socket 0\n");
    for (int meter = 1; meter <= 2; meter++) {
        char name[64];
        snprintf(name, sizeof name, HWMON "power%d_average", meter);
        put(name, "150000000\n");
        snprintf(name, sizeof name, HWMON "power%d_average_interval", meter);
        put(name, "50\n");
    }
    energy_open(&energy, tree);
    assert_int_equal(energy.count, 0);
    energy_close(&energy);
}

static void a_part_that_cannot_be_read_leaves_nothing(void **state) {
    (void)state;
    struct energy energy;
    put_zone(":0", "package-0\n", "1000000\n");
    put_zone(":1", "package-1\n", "1000000\n");
    put_zone(":1", "package-1\n", "no number\n");
    energy_open(&energy, tree);
    energy_start(&energy);
    energy_stop(&energy);
    assert_true(energy.joules == 0);
    energy_close(&energy);
}

static void sockets_of_hwmon(void **state) {
    (void)state;
    struct energy energy;
    put(HWMON "name", "amd_energy\n");
    put(HWMON "energy1_label", "Ecore000\n");
    put(HWMON "energy1_input", "1\n");
    put(HWMON "energy65_label", "Esocket0\n");
    put(HWMON "energy65_input", "2000000\n");
    energy_open(&energy, tree);
    assert_string_equal(energy.names, "Esocket0");
    energy_start(&energy);
    energy.start_ns -= UINT64_C(1000000000);
    put(HWMON "energy65_input", "3500000\n");
    energy_stop(&energy);
    assert_true(energy.joules > 1.499 && energy.joules < 1.501);
    energy_close(&energy);
}

/* The meter's average counts where all of it lies in the measured time. */
static void a_power_meter(void **state) {
    (void)state;
    struct energy energy;
    put(HWMON "name", "power_meter\n");
    put(HWMON "power1_average", "200000000\n");
    put(HWMON "power1_average_interval", "1000\n");
    for (int seconds = 0; seconds <= 2; seconds += 2) {
        energy_open(&energy, tree);
        energy_start(&energy);
        energy.start_ns -= (uint64_t)seconds * UINT64_C(1000000000);
        energy_stop(&energy);
        assert_true(seconds == 0 ? energy.joules == 0 : energy.joules > 400 && energy.joules < 600);
        energy_close(&energy);
    }
}

/* Of the meters of Grace, only that of the socket counts: the others are parts of it or hold it. */
static void a_socket_of_grace(void **state) {
    (void)state;
    struct energy energy;
    put(HWMON "name", "power_meter\n");
    put(HWMON "power1_oem_info", "Module Power Socket 0\n");
    put(HWMON "power1_average", "210000000\n");
    put(HWMON "power1_average_interval", "50\n");
    put(HWMON "power2_oem_info", "Grace Power Socket 0\n");
    put(HWMON "power2_average", "150000000\n");
    put(HWMON "power2_average_interval", "50\n");
    energy_open(&energy, tree);
    assert_string_equal(energy.names, "Grace Power Socket 0");
    energy_start(&energy);
    energy.start_ns -= UINT64_C(1000000000);
    energy_stop(&energy);
    assert_true(energy.watts > 149.9 && energy.watts < 150.1);
    energy_close(&energy);
}

/* Of a driver that cannot read its meter. */
static void a_power_that_cannot_be(void **state) {
    (void)state;
    static const char *const readings[] = {"0\n", "4294967295\n", "2147483647\n", "65535000000\n"};
    put(HWMON "name", "power_meter\n");
    put(HWMON "power1_average_interval", "50\n");
    for (size_t at = 0; at < sizeof readings / sizeof readings[0]; at++) {
        struct energy energy;
        put(HWMON "power1_average", readings[at]);
        energy_open(&energy, tree);
        energy_start(&energy);
        energy.start_ns -= UINT64_C(1000000000);
        energy_stop(&energy);
        assert_true(energy.joules == 0 && energy.watts == 0);
        energy_close(&energy);
    }
}

static void nothing_is_there(void **state) {
    (void)state;
    struct energy energy;
    energy_open(&energy, tree);
    energy_start(&energy);
    energy_stop(&energy);
    assert_true(energy.count == 0 && energy.joules == 0);
}

#define IN_A_TREE(test) cmocka_unit_test_setup_teardown(test, new_tree, remove_tree)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_A_TREE(packages_and_memory_are_summed),
        IN_A_TREE(the_platform_where_there_is_no_package),
        IN_A_TREE(a_run_too_long_for_its_counter),
        IN_A_TREE(a_counter_that_jumps),
        IN_A_TREE(meters_that_may_hold_one_another),
        IN_A_TREE(a_part_that_cannot_be_read_leaves_nothing),
        IN_A_TREE(sockets_of_hwmon),
        IN_A_TREE(a_power_meter),
        IN_A_TREE(a_socket_of_grace),
        IN_A_TREE(a_power_that_cannot_be),
        IN_A_TREE(nothing_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
