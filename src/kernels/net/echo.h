/* The answering end of a latency test: one thread per stream that sends back what it receives. */
#ifndef PEAKMARK_NET_ECHO_H
#define PEAKMARK_NET_ECHO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/place.h"
#include "net/lines.h"
#include "net/plan.h"

struct echo {
    _Alignas(LINES_BYTES) const struct net_plan *plan;
    const atomic_bool *stop;
    int socket, stream, cpu;
    pthread_t thread;
    bool started;
    _Atomic uint64_t answered;
    atomic_int error; /* errno of what ended it before *stop was set */
};

/* Starts echoes[0 .. plan->streams - 1], sockets set, each pinned to its CPU. False: errno. */
bool echo_start(const struct net_plan *plan, struct echo *echoes, const struct cpu_list *cpus,
                const atomic_bool *stop);

/* Wakes those that wait for a message, and joins all. *stop has been set before. */
void echo_join(const struct net_plan *plan, struct echo *echoes);

#endif
