/*
 * The clock rate under the work. A core may lower its clock for wide multiplications and raise it
 * within microseconds of their end, so it cannot be measured before or after the work. Between the
 * timed calls of a kernel, a call of its paced form now and then does the same steps at four fifths
 * of their rate, with a chain of loads whose latency in cycles is known: the chain is the longer
 * part, and its time gives the clock rate.
 *
 * Where the chain is not the longer part (a core that executes in order, a thread on the same core)
 * a longer one gives another clock rate. So some of these calls are followed by one with a
 * chain 1.5 times as long, and both must agree.
 */
#ifndef PEAKMARK_CPU_PACE_H
#define PEAKMARK_CPU_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_SAMPLES 256
/* Passes of a paced call: 10 to 100 us, so that the clock stays as the work has made it. Even. */
#define PACED_PASSES 4096
/* Number of calls before the first paced call, and from one to the next: about 0.2 % of the work is
 * lost. */
#define PACE_FIRST 16
#define PACE_EVERY 32

struct pace {
    void *cell;           /* the cell whose address the chain loads from it */
    unsigned load_cycles; /* of a load; 0: unknown, and so is the clock rate, but not whether the
                             work was held up */
    double load_seconds;  /* of a load without other work */
    double overhead;      /* s that reading the clock adds to a call */
    uint64_t every; /* calls from one paced call to the next: doubled when the samples are full */
    unsigned count, long_count;
    double loads[PACE_SAMPLES];      /* of a chain in a second */
    double before[PACE_SAMPLES];     /* seconds of the call without a chain right before it */
    double long_ratio[PACE_SAMPLES]; /* of a longer chain's clock to that of the call before it */
};

/* Finds the latency of a load; 2 ms. The pace must not move in memory afterwards. */
void pace_begin(struct pace *pace);

/* Measures the latency once more where that failed at the beginning. */
void pace_end(struct pace *pace);

/* Forgets all samples. */
void pace_restart(struct pace *pace);

/* Whether a call with the longer chain comes after the latest sample. */
bool pace_wants_long(const struct pace *pace);

/*
 * Loads for two passes that take `seconds` without a chain, a few more in plain C; 0: the clock
 * rate cannot be measured.
 */
unsigned pace_links(const struct pace *pace, double seconds, bool is_plain, bool is_long);

/* A paced call of `pairs` times two passes with `links` loads each took `seconds`, the call without
 * a chain right before it `before`. */
void pace_add(struct pace *pace, unsigned links, uint64_t pairs, double seconds, double before,
              bool is_long);

/* Mean of the samples without those that were interrupted, in Hz; 0: too few, or the two lengths
 * disagree. A sample is at least the clock that the call before it proves. */
double pace_hz(const struct pace *pace);

/*
 * Whether the two lengths disagree: the work was held up although its thread ran. Something else
 * used the core's execution units, such as a thread of another guest on the same core, or the core
 * executes in order.
 */
bool pace_held_up(const struct pace *pace);

/*
 * Share of the execution units that the work had, whose calls took `seconds` each: cycles of an
 * undisturbed call by those of the mean call. Below 1 although the thread ran: something else on
 * the core used them too. 1 where the clock rate is unknown, or `seconds` is not above 0, as when a
 * paced call waited for its CPU.
 */
double pace_share(const struct pace *pace, double seconds);

#endif
