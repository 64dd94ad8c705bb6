#include "common/place.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "common/status.h"
#include "common/topology.h"

#define TAKEN (-1)

bool cpu_list_has(const struct cpu_list *list, int cpu) {
    for (int i = 0; i < list->count; i++) {
        if (list->cpu[i] == cpu) {
            return true;
        }
    }
    return false;
}

bool place_allowed(struct cpu_list *allowed) {
    cpu_set_t *set = CPU_ALLOC(CPU_LIST_MAX);
    if (set == NULL) {
        return false;
    }
    size_t size = CPU_ALLOC_SIZE(CPU_LIST_MAX);
    if (sched_getaffinity(0, size, set) != 0) {
        int error = errno;
        CPU_FREE(set);
        errno = error;
        return false;
    }
    allowed->count = 0;
    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++) {
        if (CPU_ISSET_S(cpu, size, set)) {
            allowed->cpu[allowed->count++] = cpu;
        }
    }
    CPU_FREE(set);
    return true;
}

struct core_of {
    int package, die, core;
};

/* Unknown topology: a negative, unique number, so that the CPU counts as a separate core. */
static struct core_of core_of_cpu(const char *system, int cpu) {
    return (struct core_of){.package =
                                topology_number(system, cpu, "topology/physical_package_id", 0),
                            .die = topology_number(system, cpu, "topology/die_id", 0),
                            .core = topology_number(system, cpu, "topology/core_id", -1 - cpu)};
}

/*
 * Appends the CPUs of one round, one socket and one die after the other in the order in which they
 * appear: many firmwares number CPUs so that neighbours lie on different sockets.
 */
static void take_round(const struct cpu_list *cpus, const struct core_of *cores, int *rank,
                       int round, struct cpu_list *ordered) {
    for (int first = 0; first < cpus->count; first++) {
        bool open = rank[first] == round;
        for (int i = first; open && i < cpus->count; i++) {
            if (rank[i] == round && cores[i].package == cores[first].package &&
                cores[i].die == cores[first].die) {
                ordered->cpu[ordered->count++] = cpus->cpu[i];
                rank[i] = TAKEN;
            }
        }
    }
}

void place_order(const char *system, const struct cpu_list *cpus, struct cpu_list *ordered) {
    ordered->count = 0;
    struct core_of *cores = calloc((size_t)cpus->count + 1, sizeof *cores);
    int *rank = calloc((size_t)cpus->count + 1, sizeof *rank);
    if (cores == NULL || rank == NULL) {
        *ordered = *cpus;
        free(cores);
        free(rank);
        return;
    }
    int ranks = 0;
    for (int i = 0; i < cpus->count; i++) {
        cores[i] = core_of_cpu(system, cpus->cpu[i]);
        for (int j = 0; j < i; j++) {
            if (cores[i].package == cores[j].package && cores[i].die == cores[j].die &&
                cores[i].core == cores[j].core) {
                rank[i]++;
            }
        }
        ranks = rank[i] + 1 > ranks ? rank[i] + 1 : ranks;
    }
    for (int round = 0; round < ranks; round++) {
        take_round(cpus, cores, rank, round, ordered);
    }
    free(cores);
    free(rank);
}

/* The first CPU of `wanted` that is not allowed; -1 when all are. */
static int not_allowed(const struct cpu_list *wanted, const struct cpu_list *allowed) {
    for (int i = 0; i < wanted->count; i++) {
        if (!cpu_list_has(allowed, wanted->cpu[i])) {
            return wanted->cpu[i];
        }
    }
    return -1;
}

void place_choose(const struct cpu_list *wanted, int threads, struct cpu_list *chosen,
                  struct warnings *warnings) {
    static struct cpu_list allowed,
        ordered; /* 64 KiB: not for the stack; called once, before threads start */
    if (!place_allowed(&allowed)) {
        fail_measurement("the CPUs of this process cannot be read: %s", strerror(errno));
    }
    if (wanted->count > 0) {
        int cpu = not_allowed(wanted, &allowed);
        if (cpu >= 0) {
            fail_usage("--cpus: CPU %d is not among the %d CPUs this process may use (see taskset "
                       "-cp $$); "
                       "leave --cpus "
                       "out to use those",
                       cpu, allowed.count);
        }
        ordered = *wanted;
    } else {
        place_order(SYSTEM_CPU, &allowed, &ordered);
    }
    if (threads > ordered.count) {
        warnings_add(
            warnings,
            "%d threads share %d CPUs: the threads take turns, so this is no scaling result",
            threads, ordered.count);
    }
    chosen->count = threads;
    for (int i = 0; i < threads; i++) {
        chosen->cpu[i] = ordered.cpu[i % ordered.count];
    }
}

static int place_set(const int *cpus, int count) {
    cpu_set_t *set = CPU_ALLOC(CPU_LIST_MAX);
    if (set == NULL) {
        return ENOMEM;
    }
    size_t size = CPU_ALLOC_SIZE(CPU_LIST_MAX);
    CPU_ZERO_S(size, set);
    for (int i = 0; i < count; i++) {
        CPU_SET_S(cpus[i], size, set);
    }
    int error = sched_setaffinity(0, size, set) == 0 ? 0 : errno;
    CPU_FREE(set);
    return error;
}

int place_pin_to_any(const struct cpu_list *cpus) {
    return place_set(cpus->cpu, cpus->count);
}

int place_pin(int cpu) {
    if (cpu < 0 || cpu >= CPU_LIST_MAX) {
        return EINVAL;
    }
    return place_set(&cpu, 1);
}
