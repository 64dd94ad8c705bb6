/* A cache line that two pinned threads hand to each other, to measure how long that takes. */
#ifndef PEAKMARK_HANDOVER_H
#define PEAKMARK_HANDOVER_H

#include <stdatomic.h>

#define HANDOVER_ROUND_TRIPS 100 /* of one sample */
#define LINE_AND_NEIGHBOUR 128

/* The line, away from all else, its neighbour included. All zero before and after a measurement. */
struct handover {
    _Alignas(LINE_AND_NEIGHBOUR) atomic_uint holder;
    char rest[LINE_AND_NEIGHBOUR - sizeof(atomic_uint)];
};

/* Seconds of one way, the mean of HANDOVER_ROUND_TRIPS. *mine: 0 before the first sample. */
double handover_sample(struct handover *line, unsigned *mine);

/* Ends the measurement after at least one sample, and waits until the other has let the line go. */
void handover_end(struct handover *line, unsigned mine);

/* The other thread's part: answers until the first thread ends the measurement. */
void handover_answer(struct handover *line);

#endif
