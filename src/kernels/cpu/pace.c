#include "cpu/pace.h"

#include <string.h>

#include "common/chain.h"
#include "common/clock.h"
#include "common/sort.h"

/* The chain takes 1.25 times as long as the work beside it, the longer one half as much again. */
#define SHORT_CHAIN 1.25
#define LONG_CHAIN (1.5 * SHORT_CHAIN)
#define LONG_EVERY 4
#define SAMPLES_MIN 3
/* Samples further away were interrupted: the steps of a clock are smaller. */
#define NEAR 0.15
/* The two lengths may differ by what a little less work adds to the clock; chains that don't bind by far
 * more. */
#define AGREEMENT 0.04

/* The samples in order; returns their median. */
static double sort_samples(double sorted[PACE_SAMPLES], const double *samples, unsigned count) {
    memcpy(sorted, samples, count * sizeof sorted[0]);
    sort_doubles(sorted, count);
    return sorted[count / 2];
}

static double reading_the_time(void) {
    enum { READINGS = 31 };
    double seconds[READINGS], sorted[PACE_SAMPLES];
    for (int i = 0; i < READINGS; i++) {
        uint64_t start = clock_now();
        seconds[i] = (double)(clock_now() - start) * 1e-9;
    }
    return sort_samples(sorted, seconds, READINGS);
}

void pace_begin(struct pace *pace) {
    pace->itself = &pace->itself;
    pace->overhead = reading_the_time();
    pace->load_cycles = clock_load_cycles(&pace->load_seconds);
    pace_restart(pace);
}

void pace_restart(struct pace *pace) {
    pace->count = pace->long_count = 0;
    pace->every = PACE_EVERY;
}

bool pace_wants_long(const struct pace *pace) {
    return pace->count % LONG_EVERY == 2 && pace->long_count < PACE_SAMPLES;
}

unsigned pace_links(const struct pace *pace, double seconds, bool is_long) {
    if (!(pace->load_seconds > 0) || !(seconds > 0)) {
        return 0;
    }
    double links = seconds / pace->load_seconds * (is_long ? LONG_CHAIN : SHORT_CHAIN);
    return links < CHAIN_LINKS_MAX ? (unsigned)links + 1 : 0;
}

void pace_add(struct pace *pace, unsigned links, uint64_t pairs, double seconds, double before,
              bool is_long) {
    const double loads = (double)links * (double)pairs / (seconds - pace->overhead);
    if (is_long) {
        pace->long_ratio[pace->long_count++] = loads / pace->loads[pace->count - 1];
        return;
    }
    if (pace->count == PACE_SAMPLES) { /* every second one stays */
        for (unsigned i = 0; i < PACE_SAMPLES / 2; i++) {
            pace->loads[i] = pace->loads[2 * i];
            pace->before[i] = pace->before[2 * i];
        }
        pace->count /= 2;
        pace->every *= 2;
    }
    pace->before[pace->count] = before;
    pace->loads[pace->count++] = loads;
}

/*
 * Where the chain is not the longer part, a longer one tells a higher clock: here, by what factor in most
 * pairs. An interruption of either call may do so too, but not of every other pair. 0: too few of them.
 */
static double longer_by_shorter(const struct pace *pace) {
    double sorted[PACE_SAMPLES];
    unsigned first = 0;
    sort_samples(sorted, pace->long_ratio, pace->long_count);
    while (first < pace->long_count && sorted[first] < 1 - NEAR) {
        first++;
    }
    return first < pace->long_count ? sorted[first + (pace->long_count - first) / 2] : 0;
}

bool pace_held_up(const struct pace *pace) {
    return pace->long_count >= SAMPLES_MIN && longer_by_shorter(pace) >= 1 + AGREEMENT;
}

void pace_end(struct pace *pace) {
    double seconds;
    if (pace->load_cycles == 0) {
        pace->load_cycles = clock_load_cycles(&seconds);
    }
}

double pace_hz(const struct pace *pace) {
    double sorted[PACE_SAMPLES], sum = 0;
    unsigned kept = 0;
    const double lengths = longer_by_shorter(pace);
    if (pace->load_cycles == 0 || pace->count < SAMPLES_MIN || lengths == 0 || lengths >= 1 + AGREEMENT) {
        return 0;
    }
    /* The mean follows a clock that moves, as the rate does. Whatever else happens makes a sample longer: a
     * neighbour on the core's other thread in his bursts slows the work beyond its chain, most samples even.
     * So the highest eighth begins among those that nothing happened to. */
    sort_samples(sorted, pace->loads, pace->count);
    const double calm = sorted[pace->count - 1 - pace->count / 8];
    for (unsigned i = 0; i < pace->count; i++) {
        if (sorted[i] > (1 - NEAR) * calm && sorted[i] < (1 + NEAR) * calm) {
            sum += sorted[i];
            kept++;
        }
    }
    return sum / kept * pace->load_cycles;
}

double pace_share(const struct pace *pace, double seconds) {
    double calls[PACE_SAMPLES], clocks[PACE_SAMPLES];
    const double hz = pace_hz(pace);
    if (hz == 0 || !(seconds > 0)) {
        return 1;
    }
    /* The fastest calls and the highest clock belong together: what is left are the cycles of a calm call. */
    sort_samples(calls, pace->before, pace->count);
    sort_samples(clocks, pace->loads, pace->count);
    const unsigned few = pace->count / 8;
    return calls[few] * clocks[pace->count - 1 - few] * pace->load_cycles / hz / seconds;
}
