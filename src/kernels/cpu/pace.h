/*
 * The clock under the work. A core may lower its clock for wide multiplications and raises it again within
 * microseconds of their end, so it is not to be had before or after the work. Between the timed calls of a
 * kernel, a call of its paced form now and then takes the same steps at four fifths of their rate, beside a
 * chain of loads whose latency in cycles is known: the chain is the longer part, and its time tells the
 * clock.
 *
 * Where the chain is not the longer part (a core that executes in order, a thread on the same core) a longer
 * one tells another clock. So after some of these calls comes one with a chain half as long again, and both
 * must agree.
 */
#ifndef PEAKMARK_CPU_PACE_H
#define PEAKMARK_CPU_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_SAMPLES 256
/* Passes of a paced call: 10 to 100 us, so that the clock stays as the work has made it. Even. */
#define PACED_PASSES 4096
/* A paced call comes after so many others, and then so often: about 0.2 % of the work is lost. */
#define PACE_FIRST 16
#define PACE_EVERY 32

struct pace {
    void *itself;         /* the cell whose address the chain loads from it */
    unsigned load_cycles; /* of a load; 0: unknown, no clock can be told, but who held the work up */
    double load_seconds;  /* of a load with no work beside it */
    double overhead;      /* s that reading the time adds to a call */
    uint64_t every;       /* calls from one paced call to the next: doubled when the samples are full */
    unsigned count, long_count;
    double loads[PACE_SAMPLES];      /* of a chain in a second */
    double before[PACE_SAMPLES];     /* seconds of the call without a chain right before it */
    double long_ratio[PACE_SAMPLES]; /* of a longer chain's clock to that of the call before it */
};

/* Finds the latency of a load; 2 ms. The pace must not move in memory afterwards. */
void pace_begin(struct pace *pace);

/* Looks for the latency again where something hid it at the beginning. */
void pace_end(struct pace *pace);

/* Forgets all samples. */
void pace_restart(struct pace *pace);

/* Whether a call with the longer chain comes after the latest sample. */
bool pace_wants_long(const struct pace *pace);

/* Loads beside two passes that take `seconds` without a chain; 0: the clock cannot be told. */
unsigned pace_links(const struct pace *pace, double seconds, bool is_long);

/* A paced call of `pairs` times two passes with `links` loads each took `seconds`, the call without a chain
 * right before it `before`. */
void pace_add(struct pace *pace, unsigned links, uint64_t pairs, double seconds, double before, bool is_long);

/* Mean of the samples without those that were interrupted, in Hz; 0: too few, or the two lengths disagree. */
double pace_hz(const struct pace *pace);

/*
 * Whether the two lengths disagree: the work was held up although its thread ran, so that something else used
 * the core's pipes: a thread on the same core, be it another guest's, or the core executes in order.
 */
bool pace_held_up(const struct pace *pace);

/*
 * Which share of the pipes the work had, whose calls took `seconds` each: the cycles of calls that nothing
 * held up, beside those of all. Below 1 although the thread ran: something else on the core had its turns.
 * 1 where no clock is told, or no time is left for calls: of a paced one that waited for its CPU.
 */
double pace_share(const struct pace *pace, double seconds);

#endif
