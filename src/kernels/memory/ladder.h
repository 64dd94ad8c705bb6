/*
 * The ladder: latency (the chase of LAT, one pointer a line) or read throughput (the sweep of RS)
 * of one thread in working sets from half the first-level cache to four times the last. Each level
 * of the caches, and the memory, becomes a row: the plateau of the working sets clearly inside.
 */
#ifndef PEAKMARK_MEMORY_LADDER_H
#define PEAKMARK_MEMORY_LADDER_H

#include "common/team.h"
#include "memory/cache.h"
#include "memory/sweep.h"

#define LADDER_POINTS_MAX 512
/* Largest working set that is taken unasked: guests may be shown the caches of a whole socket. */
#define LADDER_MOST (UINT64_C(1) << 30)
#define LADDER_LAST_FACTOR 4

struct ladder_point {
    size_t bytes;
    double value; /* s a load, or B/s */
};

struct ladder {
    bool chase, huge_pages;
    double seconds; /* of measuring, for all points together */
    uint64_t seed;
    const struct sweeper *sweeper; /* not for the chase */
    int points;
    struct ladder_point point[LADDER_POINTS_MAX];
    size_t huge_bytes; /* of the memory that holds the largest working set */
};

/* A row of the result: the points of a level, in the order of the sizes. */
struct ladder_row {
    char variant[24]; /* l1-small, l2-huge, dram-huge: the level and the pages */
    uint64_t cache;   /* bytes; 0 for dram */
    int first, end; /* points first .. end - 1 lie in the level, or between it and the one before */
    uint64_t block; /* smallest working set clearly inside the level; of dram the largest */
    double value;   /* of this working set */
};

/*
 * Sets the sizes: `steps` an octave, whole KiB, in ascending order, none above `most`. Their
 * number, 0 where not even half the first-level cache fits.
 */
int ladder_choose(struct ladder *ladder, const struct cache_levels *caches, int steps,
                  uint64_t most);

/*
 * The plateaus: a level's points between twice the level before and half the level (the first
 * level: up to three quarters of it; DRAM: from 2.5 times the last cache). A level without such
 * points gives its points to the row before. Returns the number of rows.
 */
int ladder_rows(const struct ladder *ladder, const struct cache_levels *caches,
                struct ladder_row rows[CACHE_LEVELS_MAX + 1]);

/* A thread that measures all points in random order; the context is the ladder. */
extern const struct team_job ladder_job;

#endif
