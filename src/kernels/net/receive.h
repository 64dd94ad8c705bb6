/* The receiving end of a throughput test: a team of threads, one per stream, that counts what
 * arrives. */
#ifndef PEAKMARK_NET_RECEIVE_H
#define PEAKMARK_NET_RECEIVE_H

#include "common/team.h"
#include "net/plan.h"
#include "net/sequence.h"

struct receiver {
    int socket;
    uint64_t all;      /* TCP: bytes since the connection began */
    unsigned silences; /* waits of SILENCE_SECONDS since something came last */
    unsigned char *buffer;
    struct batch *batch;      /* UDP */
    struct sequence sequence; /* UDP */
};

struct receiving {
    const struct net_plan *plan;
    struct receiver *receivers; /* plan->streams of them, sockets set */
    int control;                /* socket whose end says that the client is gone; -1 for none */
};

/* Context is a struct receiving. A member's work is the bytes that arrived: whole, new, of this
 * run. */
extern const struct team_job receive_job;

/*
 * After the senders stopped, all streams at once: TCP reads each to its end, so that every byte is
 * accounted for; UDP takes what is still in the sockets' buffers or comes within 50 ms, so that
 * late datagrams are not called lost. Returns -1, or the number of a TCP stream that did not end
 * before the deadline.
 */
int receive_rest(const struct net_plan *plan, struct receiver *receivers, uint64_t deadline_ns);

void receive_free(struct receiver *receiver);

#endif
