/* The asking end of a latency test: one thread per stream, one message under way at a time. */
#ifndef PEAKMARK_NET_PING_H
#define PEAKMARK_NET_PING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/histogram.h"
#include "common/team.h"
#include "net/plan.h"

struct ping {
    int socket;
    atomic_uint_fast64_t number; /* of pings sent; the last 8 bits are in the message */
    uint64_t lost;               /* UDP: no answer within LOST_SECONDS, warm-up excluded */
    unsigned unanswered;         /* in a row */
    unsigned char *data;
    struct histogram latency; /* round-trip times in ns, warm-up and lost ones excluded */
};

struct pinging {
    const struct net_plan *plan;
    struct ping *pings; /* plan->streams of them, sockets set */
};

/* Context is a struct pinging. A member's work is the number of round trips. */
extern const struct team_job ping_job;

/* Runs the team, and hangs up on a server that answers no stream for STALL_SECONDS. */
bool ping_run(struct team *team, const struct cpu_list *cpus, const struct team_plan *plan,
              struct pinging *pinging);

#endif
