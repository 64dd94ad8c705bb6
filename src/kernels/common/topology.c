#include "common/topology.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/place.h"

#define CACHES_MAX 16

const char *const distance_names[DISTANCES] = {"same-core", "same-cache", "same-node",
                                               "same-socket", "other-socket"};

bool topology_text(const char *system, int cpu, const char *name, char *text, size_t capacity) {
    char path[512];
    snprintf(path, sizeof path, "%s/cpu%d/%s", system, cpu, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool found = fgets(text, (int)capacity, file) != NULL;
    fclose(file);
    if (found) {
        text[strcspn(text, "\n")] = '\0';
    }
    return found;
}

int topology_number(const char *system, int cpu, const char *name, int otherwise) {
    char text[32], *end;
    if (!topology_text(system, cpu, name, text, sizeof text)) {
        return otherwise;
    }
    long number = strtol(text, &end, 10);
    return end == text || number < 0 || number > INT_MAX ? otherwise : (int)number;
}

static int last_level_cache(const char *system, int cpu) {
    int cache = cpu, highest = 0;
    for (int index = 0; index < CACHES_MAX; index++) {
        char name[64], type[32];
        snprintf(name, sizeof name, "cache/index%d/type", index);
        bool holds_data =
            topology_text(system, cpu, name, type, sizeof type) && strcmp(type, "Instruction") != 0;
        snprintf(name, sizeof name, "cache/index%d/level", index);
        int level = topology_number(system, cpu, name, 0);
        if (holds_data && level > highest) {
            highest = level;
            snprintf(name, sizeof name, "cache/index%d/shared_cpu_list", index);
            cache = topology_number(system, cpu, name, cpu);
        }
    }
    return cache;
}

/* The number of the NUMA node, whose folder stands in that of the CPU. */
static int numa_node(const char *system, int cpu) {
    char path[512];
    snprintf(path, sizeof path, "%s/cpu%d", system, cpu);
    DIR *folder = opendir(path);
    int node = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char *end;
        if (strncmp(entry->d_name, "node", 4) == 0) {
            long number = strtol(entry->d_name + 4, &end, 10);
            node = *end == '\0' && end != entry->d_name + 4 ? (int)number : node;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return node;
}

static int compare(const void *left, const void *right) {
    const struct cpu_location *a = left, *b = right;
    const int difference[] = {a->socket - b->socket, a->node - b->node, a->cache - b->cache,
                              a->core - b->core, a->cpu - b->cpu};
    int place = 0;
    while (place < 4 && difference[place] == 0) {
        place++;
    }
    return difference[place];
}

void topology_locate(const char *system, const struct cpu_list *cpus,
                     struct cpu_location *locations) {
    for (int i = 0; i < cpus->count; i++) {
        int cpu = cpus->cpu[i];
        locations[i] = (struct cpu_location){
            .cpu = cpu,
            .core = topology_number(system, cpu, "topology/thread_siblings_list", cpu),
            .cache = last_level_cache(system, cpu),
            .node = numa_node(system, cpu),
            .socket = topology_number(system, cpu, "topology/physical_package_id", 0)};
    }
    qsort(locations, (size_t)cpus->count, sizeof *locations, compare);
}

enum distance topology_distance(const struct cpu_location *a, const struct cpu_location *b) {
    return a->core == b->core       ? DISTANCE_CORE
           : a->cache == b->cache   ? DISTANCE_CACHE
           : a->socket != b->socket ? DISTANCE_OTHER
           : a->node == b->node     ? DISTANCE_NODE
                                    : DISTANCE_SOCKET;
}
