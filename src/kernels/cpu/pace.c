#include "cpu/pace.h"

#include <string.h>

#include "common/chain.h"
#include "common/clock.h"
#include "common/sort.h"

/* The chain takes 1.25 times as long as the work, the long chain 1.5 times as long as the chain. */
#define SHORT_CHAIN 1.25
#define LONG_CHAIN (1.5 * SHORT_CHAIN)
#define LONG_EVERY 4
/* Plain C may keep a core's front end busy, as scalar QP does on Zen 5: 66 instructions in 8
 * cycles. The chain's tests and jumps, 14 instructions with up to 6 jumps taken, then make a turn
 * longer by about so many loads. */
#define PLAIN_LOADS 1.5
#define SAMPLES_MIN 3
/* Samples further off were interrupted: the steps of a clock are smaller. */
#define NEAR 0.15
/* The clock rates of the two lengths may differ by what a little less work adds to the clock; where
 * the chain is not the longer part, they differ by far more. */
#define AGREEMENT 0.04

/* The samples in order; returns their median. */
static double sort_samples(double sorted[PACE_SAMPLES], const double *samples, unsigned count) {
    memcpy(sorted, samples, count * sizeof sorted[0]);
    sort_doubles(sorted, count);
    return sorted[count / 2];
}

static double clock_overhead(void) {
    enum { READINGS = 31 };
    double seconds[READINGS], sorted[PACE_SAMPLES];
    for (int i = 0; i < READINGS; i++) {
        uint64_t start = clock_now();
        seconds[i] = (double)(clock_now() - start) * 1e-9;
    }
    return sort_samples(sorted, seconds, READINGS);
}

void pace_begin(struct pace *pace) {
    pace->cell = &pace->cell;
    pace->overhead = clock_overhead();
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

unsigned pace_links(const struct pace *pace, double seconds, bool is_plain, bool is_long) {
    if (!(pace->load_seconds > 0) || !(seconds > 0)) {
        return 0;
    }
    double loads = seconds / pace->load_seconds + (is_plain ? PLAIN_LOADS : 0);
    double links = loads * (is_long ? LONG_CHAIN : SHORT_CHAIN);
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
 * Clock rate of the long chain relative to the chain, in most pairs: above 1 where the chain is not
 * the longer part. An interruption of either call may do so too, but not in every other pair. 0:
 * too few pairs.
 */
static double long_to_short(const struct pace *pace) {
    double sorted[PACE_SAMPLES];
    unsigned first = 0;
    sort_samples(sorted, pace->long_ratio, pace->long_count);
    while (first < pace->long_count && sorted[first] < 1 - NEAR) {
        first++;
    }
    return first < pace->long_count ? sorted[first + (pace->long_count - first) / 2] : 0;
}

bool pace_held_up(const struct pace *pace) {
    return pace->long_count >= SAMPLES_MIN && long_to_short(pace) >= 1 + AGREEMENT;
}

void pace_end(struct pace *pace) {
    double seconds;
    if (pace->load_cycles == 0) {
        pace->load_cycles = clock_load_cycles(&seconds);
    }
}

/*
 * Finds the least disturbed samples: the seconds of the shortest eighth of the calls, and the loads
 * in a second of the fastest eighth of the chains. The fastest calls ran at the highest clock rate,
 * so both belong together.
 */
static void find_undisturbed(const struct pace *pace, double *call, double *loads) {
    double sorted[PACE_SAMPLES];
    const unsigned few = pace->count / 8;
    sort_samples(sorted, pace->before, pace->count);
    *call = sorted[few];
    sort_samples(sorted, pace->loads, pace->count);
    *loads = sorted[pace->count - 1 - few];
}

double pace_hz(const struct pace *pace) {
    double call, highest, sum = 0;
    unsigned used = 0;
    const double lengths = long_to_short(pace);
    if (pace->load_cycles == 0 || pace->count < SAMPLES_MIN || lengths == 0 ||
        lengths >= 1 + AGREEMENT) {
        return 0;
    }
    find_undisturbed(pace, &call, &highest);
    /* The mean follows a clock that changes, as the rate does. Work on the core's other thread
     * delays the chain or the call before it, often one of them alone: loads of the other thread
     * delay a chain by 5 to 20 % and no multiplication. Neither can be faster than the clock
     * allows, so the higher of the clocks that they show counts. */
    for (unsigned i = 0; i < pace->count; i++) {
        const double before = pace->before[i] > call ? pace->before[i] : call;
        const double by_call = highest * call / before;
        const double loads = pace->loads[i] > by_call ? pace->loads[i] : by_call;
        if (loads > (1 - NEAR) * highest && loads < (1 + NEAR) * highest) {
            sum += loads;
            used++;
        }
    }
    return sum / used * pace->load_cycles;
}

double pace_share(const struct pace *pace, double seconds) {
    double call, highest;
    const double hz = pace_hz(pace);
    if (hz == 0 || !(seconds > 0)) {
        return 1;
    }
    find_undisturbed(pace, &call, &highest);
    return call * highest * pace->load_cycles / hz / seconds;
}
