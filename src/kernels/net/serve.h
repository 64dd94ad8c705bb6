/* The server: waits for one client with the right key, takes part in its test, and ends. */
#ifndef PEAKMARK_NET_SERVE_H
#define PEAKMARK_NET_SERVE_H

#include "common/place.h"

struct serve_options {
    const char *address;
    int port;
    double deadline;             /* s to wait for a client */
    const struct cpu_list *cpus; /* count 0: those allowed */
};

/* Returns after a test that went well; else ends the program. */
void serve(const struct serve_options *options);

#endif
