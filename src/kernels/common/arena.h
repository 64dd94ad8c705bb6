/* Page-aligned memory, on small pages or on huge ones where the kernel gives them. */
#ifndef PEAKMARK_ARENA_H
#define PEAKMARK_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUGE_PAGE ((size_t)2 << 20)
/* More bytes than any process can have; sums of a few such sizes still fit into 64 bits. */
#define BYTES_MOST ((uint64_t)SIZE_MAX / 4)

struct arena {
    unsigned char *base; /* aligned to HUGE_PAGE with huge, else to the page; untouched, so zero */
    size_t bytes;        /* usable, at least those requested */
    void *mapping;
    size_t mapped;
};

/*
 * Maps bytes (rounded up to HUGE_PAGE when huge; else no page is huge). Nothing is touched: the
 * thread that will use it writes first, after pinning, so that pages lie on its NUMA node. False
 * when there is no memory (errno).
 */
bool arena_create(struct arena *arena, size_t bytes, bool huge);
void arena_destroy(struct arena *arena);

/*
 * Bytes of all these arenas that lie on huge pages now (AnonHugePages and Private_Hugetlb of
 * /proc/self/smaps); 0 if unknown. The kernel walks all pages of the process for it: one thread
 * asks once for all arenas.
 */
size_t arena_huge_bytes(const struct arena *const *arenas, int count);

/* Content of /sys/kernel/mm/transparent_hugepage/enabled between the brackets: always, madvise,
 * never; or unknown. */
const char *arena_huge_policy(void);

/* MemAvailable of /proc/meminfo in bytes; 0 if unknown. */
uint64_t memory_available(void);

/* Ends the program if so many bytes of memory are not available: with exit code 77 if the machine
 * has less, else with 1, because other programs may release memory. The message tells the user to
 * make these options smaller. */
void memory_need(uint64_t bytes, const char *options);

#endif
