#include "memory/cache.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/topology.h"

#define SHARED_TEXT 256
#define INDEX_MAX 16

static bool read_line(const char *system, int cpu, int index, const char *name, char *text,
                      size_t capacity) {
    char path[64];
    snprintf(path, sizeof path, "cache/index%d/%s", index, name);
    return topology_text(system, cpu, path, text, capacity);
}

/* "32768K" and "32M" as bytes. */
static uint64_t size_of(const char *text) {
    uint64_t number;
    char unit = '\0';
    if (sscanf(text, "%" SCNu64 "%c", &number, &unit) < 1) {
        return 0;
    }
    return unit == 'K'   ? number << 10
           : unit == 'M' ? number << 20
           : unit == 'G' ? number << 30
                         : number;
}

/* Level and size of cache number `index` of a CPU. False where there is none that holds data. */
static bool read_cache(const char *system, int cpu, int index, int *number, uint64_t *bytes) {
    char level[16], type[32], size[32];
    if (!read_line(system, cpu, index, "level", level, sizeof level) ||
        !read_line(system, cpu, index, "type", type, sizeof type) ||
        !read_line(system, cpu, index, "size", size, sizeof size) ||
        strcmp(type, "Instruction") == 0) {
        return false;
    }
    *number = atoi(level);
    *bytes = size_of(size);
    return true;
}

/*
 * The cache of the highest level that holds data; `shared` names its CPUs and so the cache itself.
 */
static uint64_t last_level_of(const char *system, int cpu, char shared[SHARED_TEXT]) {
    uint64_t bytes = 0, size;
    int highest = 0, level;
    for (int index = 0; index < INDEX_MAX; index++) {
        if (read_cache(system, cpu, index, &level, &size) && level > highest) {
            highest = level;
            bytes = size;
            if (!read_line(system, cpu, index, "shared_cpu_list", shared, SHARED_TEXT)) {
                snprintf(shared, SHARED_TEXT, "%d", cpu);
            }
        }
    }
    return bytes;
}

void cache_read(const char *system, int cpu, struct cache_levels *caches) {
    caches->count = 0;
    for (int wanted = 1; wanted <= CACHE_LEVELS_MAX; wanted++) {
        for (int index = 0; index < INDEX_MAX; index++) {
            uint64_t bytes, before = caches->count > 0 ? caches->bytes[caches->count - 1] : 0;
            int level;
            if (read_cache(system, cpu, index, &level, &bytes) && level == wanted &&
                bytes > before) {
                caches->level[caches->count] = level;
                caches->bytes[caches->count++] = bytes;
                break;
            }
        }
    }
}

uint64_t cache_last_level(const char *system, const struct cpu_list *cpus) {
    uint64_t total = 0;
    char(*seen)[SHARED_TEXT] = calloc((size_t)cpus->count + 1, SHARED_TEXT);
    int caches = 0;
    for (int i = 0; seen != NULL && i < cpus->count; i++) {
        char shared[SHARED_TEXT] = "";
        uint64_t bytes = last_level_of(system, cpus->cpu[i], shared);
        bool known = false;
        for (int j = 0; j < caches && !known; j++) {
            known = strcmp(seen[j], shared) == 0;
        }
        if (bytes > 0 && !known) {
            memcpy(seen[caches++], shared, SHARED_TEXT);
            total += bytes;
        }
    }
    free(seen);
    return total;
}
