#include "common/energy.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define PATH_BYTES 4096
#define TEXT_BYTES 64
/* W. A counter that such a load would take around twice in the measured time tells nothing. */
#define MOST_POWER 1000.0
/* uW of a meter, which may be that of a whole node with its GPUs. */
#define MOST_METERED 20e9

/* First line of a file; false where it cannot be read or is empty. */
static bool read_text(int file, char *text) {
    ssize_t length = pread(file, text, TEXT_BYTES - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return text[0] != '\0';
}

static bool read_number(int file, uint64_t *number) {
    char text[TEXT_BYTES], *end;
    if (!read_text(file, text)) {
        return false;
    }
    *number = strtoull(text, &end, 10);
    return end != text && *end == '\0';
}

/* A file whose path is `path` with the text after its last `mark` replaced by `name`; -1: none. */
static int open_sibling(const char *path, char mark, const char *name) {
    char sibling[PATH_BYTES];
    const char *at = strrchr(path, mark);
    snprintf(sibling, sizeof sibling, "%.*s%s", (int)(at - path) + 1, path, name);
    return open(sibling, O_RDONLY | O_CLOEXEC);
}

static bool text_beside(const char *path, char mark, const char *name, char *text) {
    int file = open_sibling(path, mark, name);
    bool known = file >= 0 && read_text(file, text);
    if (file >= 0) {
        close(file);
    }
    return known;
}

static uint64_t number_beside(const char *path, char mark, const char *name) {
    int file = open_sibling(path, mark, name);
    uint64_t number = 0;
    bool known = file >= 0 && read_number(file, &number);
    if (file >= 0) {
        close(file);
    }
    return known ? number : 0;
}

/* A kind of counter: files that match `pattern`, of those the ones named with one of the
 * prefixes. */
struct source {
    const char *pattern;   /* below the root of sysfs */
    char mark;             /* the file of the name stands in the same folder, or differs behind */
    const char *name;      /* this character of its path */
    const char *prefix[3]; /* of the name */
    bool alone;            /* one of several such meters may hold the others */
};

static const struct source sources[] = {
    {"class/powercap/intel-rapl:*/energy_uj", '/', "name", {"package-", "dram", NULL}, false},
    {"class/powercap/intel-rapl:*/energy_uj", '/', "name", {"psys", NULL}, false},
    {"class/hwmon/hwmon*/energy*_input", '_', "label", {"Esocket", NULL}, false},
    /* Grace has meters of a whole socket, of its module and of its parts. */
    {"class/hwmon/hwmon*/power*_average", '_', "oem_info", {"Grace Power", NULL}, false},
    {"class/hwmon/hwmon*/device/power*_average", '_', "oem_info", {"Grace Power", NULL}, false},
    {"class/hwmon/hwmon*/power*_average", '/', "name", {"power_meter", NULL}, true},
    {"class/hwmon/hwmon*/device/power*_average", '/', "name", {"power_meter", NULL}, true},
};

static bool is_of(const struct source *source, const char *name) {
    for (const char *const *prefix = source->prefix; *prefix != NULL; prefix++) {
        if (strncmp(name, *prefix, strlen(*prefix)) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds the counter at `path` if it is of the kind; false where it is and cannot be read. */
static bool add(struct energy *energy, const struct source *source, const char *path) {
    char name[TEXT_BYTES];
    if (!text_beside(path, source->mark, source->name, name) || !is_of(source, name)) {
        return true;
    }
    int file = energy->count < ENERGY_MAX ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        return false;
    }
    energy->file[energy->count] = file;
    energy->range[energy->count++] = number_beside(path, '/', "max_energy_range_uj");
    size_t have = strlen(energy->names);
    snprintf(energy->names + have, sizeof energy->names - have, "%s%s", have > 0 ? ", " : "", name);
    if (strstr(path, "_average") != NULL) {
        energy->interval = (double)number_beside(path, '_', "average_interval") * 1e-3;
        return energy->interval > 0;
    }
    return true;
}

/* What can be read of some counters only counts as nothing. */
static void forget(struct energy *energy) {
    energy_close(energy);
    energy->names[0] = '\0';
}

void energy_open(struct energy *energy, const char *system) {
    char pattern[PATH_BYTES];
    memset(energy, 0, sizeof *energy);
    for (size_t i = 0; i < sizeof sources / sizeof sources[0] && energy->count == 0; i++) {
        glob_t found;
        bool whole = true;
        snprintf(pattern, sizeof pattern, "%s/%s", system, sources[i].pattern);
        int failed = glob(pattern, 0, NULL, &found);
        for (size_t at = 0; failed == 0 && at < found.gl_pathc; at++) {
            whole = add(energy, &sources[i], found.gl_pathv[at]) && whole;
        }
        globfree(&found);
        if (!whole || (sources[i].alone && energy->count > 1)) {
            forget(energy);
        }
    }
}

void energy_start(struct energy *energy) {
    for (int i = 0; i < energy->count; i++) {
        if (!read_number(energy->file[i], &energy->value[i])) {
            forget(energy);
        }
    }
    energy->start_ns = clock_now();
}

/* Whether a meter's microwatts can be: drivers show zero or a number of ones for what they lack. */
static bool is_power(uint64_t microwatts) {
    return microwatts > 0 && (double)microwatts <= MOST_METERED && microwatts != UINT32_MAX &&
           microwatts != INT32_MAX;
}

/* Microjoules that a counter went on by; it begins anew behind its range. */
static double growth(uint64_t before, uint64_t after, uint64_t range) {
    return after >= before ? (double)(after - before) : (double)after + (double)(range - before);
}

void energy_stop(struct energy *energy) {
    const double seconds = (double)(clock_now() - energy->start_ns) * 1e-9;
    double microjoules = 0;
    for (int i = 0; i < energy->count; i++) {
        const uint64_t before = energy->value[i], range = energy->range[i];
        uint64_t now;
        if (!read_number(energy->file[i], &now)) {
            return;
        }
        if (energy->interval > 0) {
            if (!is_power(now)) {
                return;
            }
            microjoules += (double)now * seconds;
            continue;
        }
        if ((now < before && range < before) ||
            (range > 0 && seconds * MOST_POWER > (double)range * 1e-6)) {
            return;
        }
        microjoules += growth(before, now, range);
    }
    if (energy->interval <= seconds && microjoules <= MOST_METERED * seconds) {
        energy->joules = microjoules * 1e-6;
        energy->watts = energy->joules / seconds;
    }
}

void energy_close(struct energy *energy) {
    for (int i = 0; i < energy->count; i++) {
        close(energy->file[i]);
    }
    energy->count = 0;
}
