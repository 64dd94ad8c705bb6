#include "mpi/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "common/random.h"

enum { TAG = 1, ACKNOWLEDGEMENT = 2, ALIGNMENT = 4096 };

/* Start of the numbers that the message from one rank to another consists of. */
static uint64_t message_key(const struct exchange *x, int from, int to) {
    uint64_t state = x->seed + x->lay_outs;
    state = splitmix64(&state) + (uint64_t)from;
    state = splitmix64(&state) + (uint64_t)to;
    return splitmix64(&state);
}

static void fill(unsigned char *message, size_t bytes, uint64_t key) {
    for (size_t at = 0; at < bytes; at += sizeof key) {
        const uint64_t word = splitmix64(&key);
        memcpy(message + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    }
}

static bool holds(const unsigned char *message, size_t bytes, uint64_t key) {
    for (size_t at = 0; at < bytes; at += sizeof key) {
        const uint64_t word = splitmix64(&key);
        if (memcmp(message + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word) != 0) {
            return false;
        }
    }
    return true;
}

static void lay_out_message(struct exchange *x) {
    fill(x->out, x->block, message_key(x, x->rank, x->peer));
}

static bool message_is_right(struct exchange *x) {
    return holds(x->in, x->block, message_key(x, x->peer, x->rank));
}

static bool one_way_is_right(struct exchange *x) {
    return x->leads || message_is_right(x);
}

static void ping_pong(struct exchange *x, uint64_t calls) {
    const int bytes = (int)x->block;
    while (calls-- > 0) {
        if (x->leads) {
            MPI_Send(x->out, bytes, MPI_BYTE, x->peer, TAG, MPI_COMM_WORLD);
        }
        MPI_Recv(x->in, bytes, MPI_BYTE, x->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!x->leads) {
            MPI_Send(x->out, bytes, MPI_BYTE, x->peer, TAG, MPI_COMM_WORLD);
        }
    }
}

/* All messages of a window share one buffer on each side, as in the OSU benchmarks: with a buffer
 * for each message, large ones would be measured from DRAM. */
static void receive_window(struct exchange *x, MPI_Request *requests) {
    for (int i = 0; i < WINDOW; i++) {
        MPI_Irecv(x->in, (int)x->block, MPI_BYTE, x->peer, TAG, MPI_COMM_WORLD, &requests[i]);
    }
}

static void send_window(struct exchange *x, MPI_Request *requests) {
    for (int i = 0; i < WINDOW; i++) {
        MPI_Isend(x->out, (int)x->block, MPI_BYTE, x->peer, TAG, MPI_COMM_WORLD, &requests[i]);
    }
}

/* The receiver acknowledges each window. */
static void one_way(struct exchange *x, uint64_t calls) {
    char acknowledgement[4] = {0};
    while (calls-- > 0) {
        if (x->leads) {
            send_window(x, x->requests);
            MPI_Waitall(WINDOW, x->requests, x->statuses);
            MPI_Recv(acknowledgement, sizeof acknowledgement, MPI_BYTE, x->peer, ACKNOWLEDGEMENT,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            receive_window(x, x->requests);
            MPI_Waitall(WINDOW, x->requests, x->statuses);
            MPI_Send(acknowledgement, sizeof acknowledgement, MPI_BYTE, x->peer, ACKNOWLEDGEMENT,
                     MPI_COMM_WORLD);
        }
    }
}

static void both_ways(struct exchange *x, uint64_t calls) {
    while (calls-- > 0) {
        receive_window(x, x->requests);
        send_window(x, x->requests + WINDOW);
        MPI_Waitall(2 * WINDOW, x->requests, x->statuses);
    }
}

/* Adds the numbers of one rank: whole and so small that every sum is exact in any order. */
static void add_numbers(const struct exchange *x, int rank) {
    double *sums = (void *)x->out;
    uint64_t key = message_key(x, rank, 0);
    for (size_t i = 0; i < x->block / sizeof *sums; i++) {
        sums[i] += (double)(splitmix64(&key) >> 44);
    }
}

static void lay_out_numbers(struct exchange *x) {
    memset(x->out, 0, x->bytes);
    add_numbers(x, x->rank);
}

static void all_reduce(struct exchange *x, uint64_t calls) {
    const int count = (int)(x->block / sizeof(double));
    while (calls-- > 0) {
        MPI_Allreduce(x->out, x->in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

static bool sums_are_right(struct exchange *x) {
    memset(x->out, 0, x->bytes);
    for (int rank = 0; rank < x->ranks; rank++) {
        add_numbers(x, rank);
    }
    return memcmp(x->out, x->in, x->block) == 0;
}

static void lay_out_for_all(struct exchange *x) {
    for (int to = 0; to < x->ranks; to++) {
        fill(x->out + (size_t)to * x->block, x->block, message_key(x, x->rank, to));
    }
}

static void all_to_all(struct exchange *x, uint64_t calls) {
    const int bytes = (int)x->block;
    while (calls-- > 0) {
        MPI_Alltoall(x->out, bytes, MPI_BYTE, x->in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
}

static bool all_are_right(struct exchange *x) {
    for (int from = 0; from < x->ranks; from++) {
        const unsigned char *message = x->in + (size_t)from * x->block;
        if (!holds(message, x->block, message_key(x, from, x->rank))) {
            return false;
        }
    }
    return true;
}

static void lay_out_at_root(struct exchange *x) {
    if (x->rank == 0) {
        fill(x->in, x->block, message_key(x, 0, 0));
    }
}

/* The next rank passes on what it got, as in the Intel MPI Benchmarks. With one root for all calls
 * it would run ahead of the others, and the time would be that of a pipeline. */
static void broadcast(struct exchange *x, uint64_t calls) {
    while (calls-- > 0) {
        const int root = (int)(x->broadcasts++ % (uint64_t)x->ranks);
        MPI_Bcast(x->in, (int)x->block, MPI_BYTE, root, MPI_COMM_WORLD);
    }
}

static bool broadcast_is_right(struct exchange *x) {
    return holds(x->in, x->block, message_key(x, 0, 0));
}

static void barrier(struct exchange *x, uint64_t calls) {
    (void)x;
    while (calls-- > 0) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static uint64_t one(const struct exchange *x) {
    (void)x;
    return 1;
}

static uint64_t bytes_sent(const struct exchange *x) {
    return (uint64_t)x->block * WINDOW;
}

static uint64_t bytes_led(const struct exchange *x) {
    return x->leads ? bytes_sent(x) : 0;
}

static uint64_t messages_led(const struct exchange *x) {
    return x->leads ? WINDOW : 0;
}

/* clang-format off */
const struct workload workloads[WORKLOADS] = {
    {"PINGPONG", "s", "message", true, true, 8, lay_out_message, ping_pong, message_is_right, one},
    {"RATE", "B/s", "B", true, true, 1 << 20,
     lay_out_message, one_way, one_way_is_right, bytes_led},
    {"BIRATE", "B/s", "B", true, true, 1 << 20,
     lay_out_message, both_ways, message_is_right, bytes_sent},
    {"MSGRATE", "message/s", "message", false, true, 8,
     lay_out_message, one_way, one_way_is_right, messages_led},
    {"ALLREDUCE", "s", "call", false, false, 8, lay_out_numbers, all_reduce, sums_are_right, one},
    {"ALLTOALL", "s", "call", false, false, 8, lay_out_for_all, all_to_all, all_are_right, one},
    {"BARRIER", "s", "call", false, false, 0, NULL, barrier, NULL, one},
    {"BCAST", "s", "call", false, false, 8, lay_out_at_root, broadcast, broadcast_is_right, one},
};
/* clang-format on */

bool exchange_open(struct exchange *x) {
    const bool for_all = x->workload->run == all_to_all;
    const size_t bytes = x->block * (for_all ? (size_t)x->ranks : 1);
    x->leads = x->rank < x->ranks / 2;
    x->peer = x->leads ? x->rank + x->ranks / 2 : x->rank - x->ranks / 2;
    x->bytes = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    x->out = aligned_alloc(ALIGNMENT, x->bytes);
    x->in = aligned_alloc(ALIGNMENT, x->bytes);
    return x->out != NULL && x->in != NULL;
}

void exchange_lay_out(struct exchange *x) {
    x->lay_outs++;
    x->broadcasts = 0;
    memset(x->in, 0, x->bytes);
    if (x->workload->lay_out != NULL) {
        x->workload->lay_out(x);
    }
}
