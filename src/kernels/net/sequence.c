#include "net/sequence.h"

#include <string.h>

void sequence_init(struct sequence *sequence) {
    memset(sequence, 0, sizeof(*sequence));
    sequence->from = UINT64_MAX;
    sequence->to = UINT64_MAX;
}

static bool test_and_set(struct sequence *sequence, uint64_t number) {
    uint64_t *word = &sequence->seen[number % SEQUENCE_SPAN / 64];
    uint64_t bit = 1ull << (number % 64);
    bool was = *word & bit;
    *word |= bit;
    return was;
}

/* Move the span so that it ends with `number`: the numbers that enter it have not been seen. */
static void advance(struct sequence *sequence, uint64_t number) {
    if (number - sequence->next >= SEQUENCE_SPAN) {
        memset(sequence->seen, 0, sizeof(sequence->seen));
    } else {
        for (uint64_t gap = sequence->next; gap < number; gap++) {
            sequence->seen[gap % SEQUENCE_SPAN / 64] &= ~(1ull << (gap % 64));
        }
    }
    sequence->seen[number % SEQUENCE_SPAN / 64] |= 1ull << (number % 64);
    sequence->next = number + 1;
}

bool sequence_arrived(struct sequence *sequence, uint64_t number) {
    bool counts = number >= sequence->from && number < sequence->to;
    if (number >= sequence->next) {
        advance(sequence, number);
        sequence->received += counts;
        return true;
    }
    if (sequence->next - number > SEQUENCE_SPAN) {
        sequence->stale += counts;
        return false;
    }
    if (test_and_set(sequence, number)) {
        sequence->duplicated += counts;
        return false;
    }
    sequence->received += counts;
    sequence->reordered += counts;
    return true;
}

void sequence_open(struct sequence *sequence) {
    sequence->from = sequence->next;
}

void sequence_close(struct sequence *sequence) {
    sequence->to = sequence->next > sequence->from ? sequence->next : sequence->from;
}

uint64_t sequence_sent(const struct sequence *sequence) {
    return sequence->to - sequence->from;
}

uint64_t sequence_lost(const struct sequence *sequence) {
    return sequence_sent(sequence) - sequence->received;
}
