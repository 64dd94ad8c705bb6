/* A folder that stands for /sys/devices/system/cpu. */
#ifndef PEAKMARK_MACHINE_ROOT_H
#define PEAKMARK_MACHINE_ROOT_H

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"

static char root[64];

static int make_root(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/test_machine.XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static int remove_root(void **state) {
    (void)state;
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes the folders above root/cpuN/name, and returns its path. */
static const char *machine_path(int cpu, const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/cpu%d/%s", root, cpu, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0) {
            assert_int_equal(errno, EEXIST);
        }
        *slash = '/';
    }
    return path;
}

/* Writes a line to root/cpuN/name, with the folders above it. */
__attribute__((format(printf, 3, 4))) static void fact(int cpu, const char *name,
                                                       const char *format, ...) {
    FILE *file = fopen(machine_path(cpu, name), "w");
    va_list values;
    assert_non_null(file);
    va_start(values, format);
    vfprintf(file, format, values);
    va_end(values);
    fputc('\n', file);
    assert_int_equal(fclose(file), 0);
}

#endif
