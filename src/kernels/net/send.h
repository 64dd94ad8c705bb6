/* The sending end of a throughput test: one thread per stream that sends until it is stopped. */
#ifndef PEAKMARK_NET_SEND_H
#define PEAKMARK_NET_SEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/place.h"
#include "net/lines.h"
#include "net/plan.h"

struct sender {
    _Alignas(LINES_BYTES) const struct sending *sending;
    int socket;
    int stream, cpu;
    _Atomic uint64_t sent; /* TCP: bytes, UDP: datagrams */
    atomic_int error;      /* errno of what ended it, 0 while all is well */
    atomic_bool done;
};

struct sending {
    const struct net_plan *plan;
    uint64_t seed;
    struct sender *senders; /* plan->streams of them, sockets set */
    atomic_bool stop;
    void *threads;
};

/* Starts the threads, pinned. False: errno. */
bool send_start(struct sending *sending, const struct cpu_list *cpus);

/*
 * Tells all threads to stop and waits for them; a TCP stream's end is then visible to the receiver.
 */
void send_stop(struct sending *sending);

/* The same when the test has failed: does not wait for the receiver to take what is on its way. */
void send_abandon(struct sending *sending);

/* First error of any sender, 0 if there is none. */
int send_error(const struct sending *sending);

/* Sum over all streams of what has been sent so far: grows as long as the other side takes it. */
uint64_t send_progress(const struct sending *sending);

#endif
