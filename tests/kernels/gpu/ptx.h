/* Runs a kernel's PTX on the CPU, as far as the kernels of gpubench need it. */
#ifndef PEAKMARK_TEST_PTX_H
#define PEAKMARK_TEST_PTX_H

#include <stdbool.h>

/* The threads of a block advance together: those that are behind first. False where the
 * module has no such kernel; an instruction that is not known here ends the program. */
bool ptx_run(const char *module, const char *name, unsigned grid, unsigned block,
             void **parameters);

#endif
