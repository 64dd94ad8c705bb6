#include "common/handover.h"

#include <limits.h>

#include "common/clock.h"

#define ENDED UINT_MAX

/* Takes the line when it holds `mine` and hands it on, so often or until the other ends it. */
static void hand_over(atomic_uint *holder, unsigned mine, unsigned times) {
    for (unsigned i = 0; i < times; i++, mine += 2) {
        unsigned seen = mine;
        while (!atomic_compare_exchange_weak_explicit(holder, &seen, mine + 1, memory_order_relaxed,
                                                      memory_order_relaxed)) {
            if (seen == ENDED) {
                return;
            }
            seen = mine;
        }
    }
}

double handover_sample(struct handover *line, unsigned *mine) {
    uint64_t before = clock_now();
    hand_over(&line->holder, *mine, HANDOVER_ROUND_TRIPS);
    double seconds = (double)(clock_now() - before) * 1e-9;
    *mine += 2 * HANDOVER_ROUND_TRIPS;
    return seconds / (2 * HANDOVER_ROUND_TRIPS);
}

void handover_end(struct handover *line, unsigned mine) {
    /* The other has answered when the line holds `mine`; then it lets the line go. */
    hand_over(&line->holder, mine, 1);
    while (atomic_load_explicit(&line->holder, memory_order_relaxed) != mine + 2) {
    }
    atomic_store_explicit(&line->holder, ENDED, memory_order_relaxed);
    while (atomic_load_explicit(&line->holder, memory_order_relaxed) != 0) {
    }
}

void handover_answer(struct handover *line) {
    hand_over(&line->holder, 1, UINT_MAX);
    atomic_store_explicit(&line->holder, 0, memory_order_relaxed);
}
