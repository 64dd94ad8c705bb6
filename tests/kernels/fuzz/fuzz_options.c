/*
 * libFuzzer: whatever stands on a command line, the parsers of sizes, counts, times and CPU lists
 * give a value in their range or refuse. The first byte chooses the parser.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}

/* A size that is printed and reread is the same. */
static void sizes(const char *text) {
    uint64_t bytes = 77, reread = 0;
    char printed[32];
    if (!parse_size(text, &bytes)) {
        require(bytes == 77, "a refused size leaves the value alone");
        return;
    }
    require(bytes > 0, "a size is above 0");
    require(parse_size(format_size(bytes, printed, sizeof printed), &reread) && reread == bytes,
            "a printed size is read as itself");
}

static void counts(const char *text) {
    uint64_t count = 77;
    require(parse_count(text, &count) ? count > 0 : count == 77,
            "a count is above 0 or left alone");
}

static void seconds(const char *text) {
    double value = 77;
    if (parse_seconds(text, &value)) {
        require(isfinite(value) && value >= 0 && value <= 7 * 24 * 3600.0,
                "a time is finite and at most a week");
    } else {
        require(value > 76.5 && value < 77.5, "a refused time leaves the value alone");
    }
}

static void cpus(const char *text) {
    static struct cpu_list list;
    list.count = -1;
    if (!parse_cpu_list(text, &list)) {
        require(list.count == -1, "a refused list leaves the value alone");
        return;
    }
    require(list.count > 0 && list.count <= CPU_LIST_MAX, "a list has entries, and not too many");
    for (int i = 0; i < list.count; i++) {
        require(list.cpu[i] >= 0 && list.cpu[i] < CPU_LIST_MAX, "a CPU is in range");
        for (int j = 0; j < i && j < 64; j++) {
            require(list.cpu[i] != list.cpu[j], "no CPU stands in it twice");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const parsers[])(const char *) = {sizes, counts, seconds, cpus};
    if (size == 0 || size > 4096) {
        return 0;
    }
    char *text = malloc(size);
    require(text != NULL, "there is memory");
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    parsers[data[0] % 4](text);
    free(text);
    return 0;
}
