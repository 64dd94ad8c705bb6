/*
 * What became of numbered datagrams: received, lost, reordered, duplicated, counted over a window
 * of the stream.
 *
 * The sender numbers a stream's datagrams 0, 1, 2, ... The receiver's clock opens and closes the
 * window at the highest number seen so far; the numbers in between are the ones that count. A
 * datagram that comes late, even after the window was closed, is not lost but reordered.
 */
#ifndef PEAKMARK_NET_SEQUENCE_H
#define PEAKMARK_NET_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

/* A datagram later than this many numbers cannot be distinguished from a duplicate: it counts as
 * lost and stale. */
enum { SEQUENCE_SPAN = 65536 };

struct sequence {
    uint64_t next;       /* highest number seen plus one */
    uint64_t from;       /* the window: from <= number < to; UINT64_MAX before it is opened */
    uint64_t to;         /* UINT64_MAX while it is open */
    uint64_t received;   /* different numbers of the window that arrived */
    uint64_t reordered;  /* of these, the ones that arrived after a higher number */
    uint64_t duplicated; /* repeated arrivals of a number of the window */
    uint64_t stale;      /* arrivals too late to tell new ones from duplicates */
    uint64_t seen[SEQUENCE_SPAN / 64];
};

/* An empty stream whose window has not been opened: nothing counts yet. */
void sequence_init(struct sequence *sequence);

/* One datagram arrived. True when it is neither a duplicate nor stale, whether it is in the window
 * or not. */
bool sequence_arrived(struct sequence *sequence, uint64_t number);

/* The window begins after, and ends with, the highest number seen so far. */
void sequence_open(struct sequence *sequence);
void sequence_close(struct sequence *sequence);

/* Of a closed window: the numbers in it, which is what the sender sent, and those that never
 * arrived. */
uint64_t sequence_sent(const struct sequence *sequence);
uint64_t sequence_lost(const struct sequence *sequence);

#endif
