/*
 * Energy that the processors of the node and their memory used, as far as the kernel lets a user
 * read it: powercap (RAPL) of all packages and their DRAM, where there are none the platform
 * (psys); else hwmon: sockets of amd_energy, or the power meter that the firmware shows (ACPI).
 */
#ifndef PEAKMARK_ENERGY_H
#define PEAKMARK_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

#define ENERGY_MAX 64
#define ENERGY_NAMES_BYTES 512

struct energy {
    int count; /* 0: nothing can be read */
    int file[ENERGY_MAX];
    uint64_t range[ENERGY_MAX];     /* at which a counter begins anew, microjoules */
    uint64_t value[ENERGY_MAX];     /* microjoules at the last reading */
    double interval;                /* s over which a power meter averages; 0: counters of energy */
    char names[ENERGY_NAMES_BYTES]; /* "package-0, dram, package-1, dram" */
    uint64_t start_ns;
    double joules, watts; /* between energy_start and energy_stop; 0: unknown */
};

/* Opens what can be read below `system`, which is /sys. All of a kind or nothing: a part of the
 * sockets is not the node. */
void energy_open(struct energy *energy, const char *system);

/* Around the measured time; energy_stop sets joules. */
void energy_start(struct energy *energy);
void energy_stop(struct energy *energy);

void energy_close(struct energy *energy);

#endif
