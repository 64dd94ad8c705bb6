/* What is to be measured, as both sides must know it, and the line that carries it over the control
 * connection. */
#ifndef PEAKMARK_NET_PLAN_H
#define PEAKMARK_NET_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STREAMS_MAX = 1024, UDP_PAYLOAD_MAX = 65507, TCP_MESSAGE_MAX = 64 << 20 };

/* No progress for so long, in seconds, and a test has failed: the other side or the way to it is
 * gone. */
#define STALL_SECONDS 10.0
/* Steps of the handshake and the result. */
#define ANSWER_SECONDS 15.0

struct net_plan {
    bool latency; /* ping-pong instead of throughput */
    bool udp;
    bool offload;   /* UDP_SEGMENT and UDP_GRO */
    bool busy_poll; /* ping-pong without sleeping */
    uint64_t message;
    int streams;
    double warmup, seconds;
    uint64_t total; /* bytes of all streams; 0: run for seconds. Not used for latency: the client
                       ends it */
    uint64_t run;   /* random, from the server: connections and datagrams of this run carry it */
};

void plan_write(const struct net_plan *plan, char *line, size_t capacity);

/* False, and *plan is as it was, when the line is no plan or has a number out of range. `run` is
 * not part of the line. */
bool plan_read(const char *line, struct net_plan *plan);

#endif
