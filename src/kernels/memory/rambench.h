/* What rambench was asked for, and the workloads that measure a whole matrix or curve in one run.
 */
#ifndef PEAKMARK_MEMORY_RAMBENCH_H
#define PEAKMARK_MEMORY_RAMBENCH_H

#include <stdint.h>

#include "common/options.h"
#include "common/place.h"
#include "common/report.h"

struct arguments {
    struct common_options common;
    const char *workload, *isa, *pool, *store, *huge_pages, *pairs, *reads;
    uint64_t block, stride, total, accesses;
    int steps, rates;
};

/* Measures on these CPUs and prints the result; ends the program where it fails. */
typedef void shape_function(const struct arguments *arguments, const struct cpu_list *cpus,
                            struct warnings *warnings);

shape_function c2c_measure, ladder_measure, loaded_measure;

#endif
