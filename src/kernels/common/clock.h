/* Time and the core's real clock rate, read without privileges. */
#ifndef PEAKMARK_CLOCK_H
#define PEAKMARK_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now(void);

/* CPU time of the calling thread in nanoseconds, without waiting and other threads. */
uint64_t clock_thread_now(void);

/* Sleeps until clock_now() >= deadline_ns. */
void clock_sleep_until(uint64_t deadline_ns);

/*
 * Clock rate of the core the caller runs on in Hz, from a chain of dependent instructions of known
 * latency; takes about 8 ms. 0 on an architecture without such a chain. Callers are pinned, and all
 * cores that will compute should call at the same time: turbo depends on how many are busy.
 */
double clock_hz(void);

/*
 * Latency in cycles of a load from the first-level cache: 3 to 6 on all CPUs known. A chain of
 * loads is compared with the chain of clock_hz. *seconds is the latency at the present clock rate.
 * 0 where the result is not close to a whole number.
 */
unsigned clock_load_cycles(double *seconds);

/* Description of the chain for the record: "imul, 3 cycles"; NULL where there is none. */
const char *clock_hz_method(void);

#endif
