/* Starts the kernels of memory.ptx. */
#ifndef PEAKMARK_GPU_MEMORY_H
#define PEAKMARK_GPU_MEMORY_H

#include "gpu/gpu.h"

extern const char ptx_memory[];

/* 2^log_blocks blocks of 2^log_block bytes, in random order unless factor is 1. */
struct sweep {
    device_pointer source, target, sums;
    unsigned log_block, log_blocks;
    uint32_t factor, seed;
};

/* Queues a kernel that handles `width` times 512 bytes of a warp at once. */
int sweep_launch(void *stream, void *function, unsigned width, const struct sweep *sweep);

/* Word i of a pattern is i * PATTERN_STEP + seed. */
#define PATTERN_STEP UINT32_C(0x9E3779B1)

/* Returns whether the words are those of the pattern from word `first` on. */
bool pattern_holds(const uint32_t *words, size_t count, uint64_t first, uint32_t seed);

#endif
