/* Time and the core's real clock rate, read without privileges. */
#ifndef PEAKMARK_CLOCK_H
#define PEAKMARK_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now(void);

/* CPU time of the calling thread in nanoseconds: what others and waiting took is not in it. */
uint64_t clock_thread_now(void);

/* Sleeps until clock_now() >= deadline_ns. */
void clock_sleep_until(uint64_t deadline_ns);

/*
 * Clock rate of the core the caller runs on in Hz, from a chain of dependent instructions of known latency;
 * takes about 8 ms. 0 on an architecture without such a chain. Callers are pinned, and all cores that will
 * compute should call at the same time: turbo depends on how many are busy.
 */
double clock_hz(void);

/*
 * Cycles from a load in the first-level cache to the next one that needs its value: 3 to 6 on all CPUs known,
 * told by a chain of them beside the chain of clock_hz. *seconds is the time of such a load now. 0 where the
 * answer is not whole.
 */
unsigned clock_load_cycles(double *seconds);

/* The chain in words, for the record: "imul, 3 cycles"; NULL where there is none. */
const char *clock_hz_method(void);

#endif
