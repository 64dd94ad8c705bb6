/* Time and the core's real clock rate, read without privileges. */
#ifndef PEAKMARK_CLOCK_H
#define PEAKMARK_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now(void);

/* Sleeps until clock_now() >= deadline_ns. */
void clock_sleep_until(uint64_t deadline_ns);

/*
 * Clock rate of the core the caller runs on in Hz, from a chain of dependent instructions of known latency;
 * takes about 8 ms. 0 on an architecture without such a chain. Callers are pinned, and all cores that will
 * compute should call at the same time: turbo depends on how many are busy.
 */
double clock_hz(void);

/* The chain in words, for the record: "imul, 3 cycles"; NULL where there is none. */
const char *clock_hz_method(void);

#endif
