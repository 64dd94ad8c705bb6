/* The client: agrees with the server on a test, sends or pings, and prints the result. */
#ifndef PEAKMARK_NET_CLIENT_H
#define PEAKMARK_NET_CLIENT_H

#include "common/place.h"
#include "net/plan.h"

struct client_options {
    const char *host;
    int port;
    const char *workload; /* of the result: TCP, UDP, LAT-TCP, LAT-UDP */
    uint64_t round_trips; /* of all streams; 0: run for plan.seconds */
    uint64_t seed;
    const struct cpu_list *cpus; /* count 0: those allowed */
    struct net_plan plan;
};

/* Prints one JSON object; ends the program when the test fails. */
void client(struct client_options *options);

#endif
