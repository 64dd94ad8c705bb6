#include "net/send.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/random.h"
#include "net/datagram.h"

enum { SEGMENTS_MAX = 64 };

static bool is_stopped(const struct sender *sender) {
    return atomic_load_explicit(&sender->sending->stop, memory_order_relaxed);
}

static void add_sent(struct sender *sender, uint64_t count) {
    uint64_t sent = atomic_load_explicit(&sender->sent, memory_order_relaxed);
    atomic_store_explicit(&sender->sent, sent + count,
                          memory_order_relaxed); /* this thread alone writes it */
}

/* One send() per message; the kernel takes less only when a signal interrupts it. Returns an errno
 * value or 0. */
static int tcp_send(struct sender *sender, const unsigned char *data, size_t message) {
    size_t at = 0;
    while (!is_stopped(sender)) {
        ssize_t count = send(sender->socket, data + at, message - at, MSG_NOSIGNAL);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return count == 0 ? EIO : errno;
        }
        at += count > 0 ? (size_t)count : 0;
        at = at == message ? 0 : at;
        add_sent(sender, count > 0 ? (uint64_t)count : 0);
    }
    return shutdown(sender->socket, SHUT_WR) == 0 ? 0 : errno;
}

static void write_header(unsigned char *data, const struct sender *sender, uint64_t number) {
    struct datagram header =
        datagram_make(sender->sending->plan->run, number, sender->stream, DATAGRAM_DATA);
    memcpy(data, &header, sizeof header);
}

/* The queue of the interface is full, or a signal came. An answer of ICMP to an earlier datagram,
 * as ECONNREFUSED, is none: the other side has closed the socket or is not reached. */
static bool is_transient(int error) {
    return error == EINTR || error == ENOBUFS || error == EAGAIN;
}

static int udp_send(struct sender *sender, unsigned char *data, size_t message) {
    struct mmsghdr header[DATAGRAM_BATCH];
    struct iovec part[DATAGRAM_BATCH];
    unsigned batch = datagram_batch(message);
    memset(header, 0, sizeof header);
    for (unsigned i = 0; i < batch; i++) {
        part[i] = (struct iovec){data + (size_t)i * message, message};
        header[i].msg_hdr = (struct msghdr){.msg_iov = &part[i], .msg_iovlen = 1};
    }
    for (uint64_t next = 0; !is_stopped(sender);) {
        for (unsigned i = 0; i < batch; i++) {
            write_header(part[i].iov_base, sender, next + i);
        }
        int count = sendmmsg(sender->socket, header, batch, MSG_NOSIGNAL);
        if (count < 0 && !is_transient(errno)) {
            return errno;
        }
        next += count > 0 ? (uint64_t)count : 0;
        add_sent(sender, count > 0 ? (uint64_t)count : 0);
    }
    return 0;
}

/* The kernel cuts one large send into datagrams of the message size, as late as it can. */
static int udp_send_offloaded(struct sender *sender, unsigned char *data, size_t message) {
    int size = (int)message;
    if (setsockopt(sender->socket, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) != 0) {
        return errno;
    }
    size_t segments =
        UDP_PAYLOAD_MAX / message < SEGMENTS_MAX ? UDP_PAYLOAD_MAX / message : SEGMENTS_MAX;
    for (uint64_t next = 0; !is_stopped(sender);) {
        for (size_t i = 0; i < segments; i++) {
            write_header(data + i * message, sender, next + i);
        }
        ssize_t count = send(sender->socket, data, segments * message, MSG_NOSIGNAL);
        if (count < 0 && !is_transient(errno)) {
            return errno;
        }
        next += count > 0 ? segments : 0;
        add_sent(sender, count > 0 ? segments : 0);
    }
    return 0;
}

static void *sender_main(void *argument) {
    struct sender *sender = argument;
    const struct net_plan *plan = sender->sending->plan;
    size_t message = (size_t)plan->message, copies = plan->udp ? datagram_batch(plan->message) : 1;
    int error = place_pin(sender->cpu);
    unsigned char *data = error == 0 ? malloc(message * copies) : NULL;
    if (data == NULL) {
        error = error != 0 ? error : ENOMEM;
    } else {
        struct random_state random;
        random_seed(&random, sender->sending->seed, (uint64_t)sender->stream);
        random_fill(&random, data, message * copies);
        error = !plan->udp      ? tcp_send(sender, data, message)
                : plan->offload ? udp_send_offloaded(sender, data, message)
                                : udp_send(sender, data, message);
    }
    free(data);
    atomic_store(&sender->error, error);
    atomic_store(&sender->done, true);
    return NULL;
}

bool send_start(struct sending *sending, const struct cpu_list *cpus) {
    pthread_t *threads = calloc((size_t)sending->plan->streams, sizeof *threads);
    sending->threads = threads;
    if (threads == NULL) {
        return false;
    }
    for (int i = 0; i < sending->plan->streams; i++) {
        struct sender *sender = &sending->senders[i];
        sender->sending = sending;
        sender->stream = i;
        sender->cpu = cpus->cpu[i];
        int error = pthread_create(&threads[i], NULL, sender_main, sender);
        if (error != 0) {
            errno = error;
            return false;
        }
    }
    return true;
}

void send_stop(struct sending *sending) {
    pthread_t *threads = sending->threads;
    atomic_store(&sending->stop, true);
    for (int i = 0; i < sending->plan->streams; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
    sending->threads = NULL;
}

void send_abandon(struct sending *sending) {
    atomic_store(&sending->stop, true);
    for (int i = 0; i < sending->plan->streams; i++) {
        shutdown(sending->senders[i].socket, SHUT_RDWR); /* wakes a blocked send */
    }
    send_stop(sending);
}

int send_error(const struct sending *sending) {
    for (int i = 0; i < sending->plan->streams; i++) {
        int error = atomic_load(&sending->senders[i].error);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

uint64_t send_progress(const struct sending *sending) {
    uint64_t sum = 0;
    for (int i = 0; i < sending->plan->streams; i++) {
        sum += atomic_load_explicit(&sending->senders[i].sent, memory_order_relaxed);
    }
    return sum;
}
