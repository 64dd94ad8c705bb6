/* What is to be measured, as both sides must know it, and the line that carries it over the control
 * connection. */
#ifndef PEAKMARK_NET_PLAN_H
#define PEAKMARK_NET_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STREAMS_MAX = 1024, UDP_PAYLOAD_MAX = 65507, TCP_MESSAGE_MAX = 64 << 20 };

/* No progress for so long, in seconds, and a test has failed: the other side or the way to it is gone. */
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
    uint64_t total; /* bytes of all streams; 0: run for seconds. Not used for latency: the client ends it */
    uint64_t
        run; /* chosen by the server at random: marks connections and datagrams as belonging to this run */
};

/* Every datagram of a throughput test begins with this, in the byte order of the sender. */
struct datagram {
    uint64_t run;
    uint64_t number;
    uint32_t stream;
    uint32_t kind; /* DATAGRAM_HELLO or DATAGRAM_DATA */
};

enum { DATAGRAM_HELLO = 0x6f6c6c65, DATAGRAM_DATA = 0x61746164 };

void plan_write(const struct net_plan *plan, char *line, size_t capacity);

/* False when the line is not a plan, or one with numbers out of range. `run` is not part of the line. */
bool plan_read(const char *line, struct net_plan *plan);

#endif
