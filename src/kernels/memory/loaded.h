/*
 * Latency under load: the first thread follows pointers through its area while all others read, or
 * read and copy, each in its part of a pool. The traffic grows from point to point: after each
 * burst a loader pauses, ever shorter, at last not at all.
 *
 * Copies store around the caches: of an ordinary store, memory also moves the line that it first
 * reads, on some CPUs and some of the time, so the loop would not know how much it moves.
 */
#ifndef PEAKMARK_MEMORY_LOADED_H
#define PEAKMARK_MEMORY_LOADED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOADED_MIXES 3      /* 100, 75 and 50 % of the traffic are reads */
#define LOADED_RATES_MAX 64 /* of each mix */

/* What a thread did at a point, by CLOCK_MONOTONIC and by its CPU time. All 0: nothing. */
struct loaded_span {
    uint64_t start_ns, stop_ns, cpu_ns, bytes;
};

/*
 * Share of the time of spans[0], the chase, in which all `count` threads were at work. When one of
 * them waits for its CPU, the others are taken not to.
 */
double loaded_overlap(const struct loaded_span *spans, int count);

/*
 * Seconds that a loader pauses after a burst at rate 1 to rates of a mix: shorter from rate to rate
 * by one factor, 0 at the last.
 */
double loaded_pause(int rate, int rates);

/* Reads "100,75,50" or a part of it into mixes[LOADED_MIXES]; returns how many, 0 for another text.
 */
int loaded_parse_mixes(const char *text, int *mixes);

#endif
