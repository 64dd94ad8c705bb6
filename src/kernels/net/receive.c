#include "net/receive.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "net/control.h"
#include "net/datagram.h"
#include "net/endpoint.h"

/* How long a silent stream takes to see the stop flag. */
#define SILENCE_SECONDS 0.1

enum { TCP_BUFFER = 128 << 10, OFFLOAD_BATCH = 8, OFFLOAD_BUFFER = 65536, REST_MS = 50 };

/*
 * A sender pays for each wake-up of a receiver that sleeps: about 4 us on a virtual CPU, of 6 us
 * for a message of 32 KiB. Smaller messages leave more to be received with one call when the
 * receiver comes later.
 */
enum { LOOK_NS = 50000, LOOK_MESSAGE = 16 << 10 };

/* Room for several datagrams received with one call; with GRO each place holds many datagrams of
 * one size. */
struct batch {
    unsigned places;
    size_t room; /* bytes of a place */
    struct mmsghdr header[DATAGRAM_BATCH];
    struct iovec part[DATAGRAM_BATCH];
    _Alignas(struct cmsghdr) char ancillary[DATAGRAM_BATCH][CMSG_SPACE(sizeof(int))];
};

static void prepare(struct team_member *member) {
    const struct receiving *receiving = member->context;
    const struct net_plan *plan = receiving->plan;
    struct receiver *receiver = &receiving->receivers[member->index];
    size_t bytes = TCP_BUFFER;
    if (plan->udp) {
        sequence_init(&receiver->sequence);
        struct batch *batch = receiver->batch = calloc(1, sizeof *batch);
        if (batch == NULL) {
            team_fail(member, "the server has no memory for its buffers");
            return;
        }
        batch->places = plan->offload ? OFFLOAD_BATCH : datagram_batch(plan->message);
        /* One byte more than expected, so that a datagram that is too long is seen to be. */
        batch->room = plan->offload ? OFFLOAD_BUFFER : plan->message + 1;
        bytes = batch->room * batch->places;
    }
    receiver->buffer = malloc(bytes);
    if (receiver->buffer == NULL) {
        team_fail(member, "the server has no memory for its buffers");
        return;
    }
    memset(receiver->buffer, 0, bytes);
    endpoint_receive_timeout(receiver->socket, SILENCE_SECONDS);
}

/*
 * Nothing came for SILENCE_SECONDS: fails the team when the client is gone or this happened too
 * often in a row.
 */
static void handle_silence(struct team_member *member, struct receiver *receiver) {
    const struct receiving *receiving = member->context;
    char byte;
    if (receiving->control >= 0 &&
        recv(receiving->control, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
        team_fail(member, "the client closed the connection during the test");
    }
    if (++receiver->silences * SILENCE_SECONDS >= STALL_SECONDS) {
        team_fail(member, "stream %d brought nothing for %.0f s", member->index, STALL_SECONDS);
    }
}

/* Not before something has arrived: on a busy machine the sender may get the CPU only after a short
 * run should have ended, and no data is no rate. A sender that stays silent ends the run. */
static bool is_over(const struct team_member *member) {
    return team_failed(member) || (team_stopped(member) && (member->work > 0 || member->warming));
}

/* Waits at most LOOK_NS for data without sleeping. poll leaves the socket's lock to the sender, and
 * the yield the CPU to whoever wants it. */
static void look_for_data(int socket) {
    struct pollfd wait = {.fd = socket, .events = POLLIN};
    uint64_t deadline = 0, now = 0;
    while (now <= deadline && poll(&wait, 1, 0) == 0) {
        sched_yield();
        now = clock_now();
        deadline = deadline == 0 ? now + LOOK_NS : deadline;
    }
}

static void tcp_run(struct team_member *member, struct receiver *receiver) {
    const struct receiving *receiving = member->context;
    bool looks = receiving->plan->message >= LOOK_MESSAGE;
    do {
        if (looks) {
            look_for_data(receiver->socket);
        }
        uint64_t remaining = member->limit - member->work;
        ssize_t count = recv(receiver->socket, receiver->buffer,
                             remaining < TCP_BUFFER ? (size_t)remaining : TCP_BUFFER, 0);
        if (count > 0) {
            member->work += (uint64_t)count;
            receiver->silences = 0;
        } else if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            handle_silence(member, receiver);
        } else {
            team_fail(member, "the client ended stream %d too early%s%s", member->index,
                      count < 0 ? ": " : "", count < 0 ? strerror(errno) : "");
            break;
        }
    } while (member->work < member->limit && !is_over(member));
    receiver->all += member->work;
}

/* Is this a datagram of the stream? True also says that it is new. */
static bool accept_datagram(const struct net_plan *plan, struct receiver *receiver, int stream,
                            const unsigned char *data, size_t size) {
    struct datagram header;
    if (size != plan->message) {
        return false;
    }
    memcpy(&header, data, sizeof header);
    return datagram_is(&header, plan->run, stream, DATAGRAM_DATA) &&
           sequence_arrived(&receiver->sequence, datagram_number(&header));
}

/* Size of the datagrams that GRO has joined in a message, else that of the message. */
static size_t segment_size(struct msghdr *header, size_t size) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
         part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level == IPPROTO_UDP && part->cmsg_type == UDP_GRO) {
            int segment;
            memcpy(&segment, CMSG_DATA(part), sizeof segment);
            return segment > 0 ? (size_t)segment : size;
        }
    }
    return size;
}

/* Receives what is there, up to `most` messages, and returns the new bytes, or -1: errno. */
static int64_t udp_receive(const struct net_plan *plan, struct receiver *receiver, int stream,
                           uint64_t most, int flags) {
    struct batch *batch = receiver->batch;
    unsigned places = most < batch->places ? (unsigned)most : batch->places;
    for (unsigned i = 0; i < places; i++) {
        batch->part[i] = (struct iovec){receiver->buffer + i * batch->room, batch->room};
        batch->header[i].msg_hdr = (struct msghdr){.msg_iov = &batch->part[i], .msg_iovlen = 1};
        if (plan->offload) {
            batch->header[i].msg_hdr.msg_control = batch->ancillary[i];
            batch->header[i].msg_hdr.msg_controllen = sizeof batch->ancillary[i];
        }
    }
    int count = recvmmsg(receiver->socket, batch->header, places, flags, NULL);
    int64_t bytes = count < 0 ? -1 : 0;
    for (int i = 0; i < count; i++) {
        const unsigned char *data = batch->part[i].iov_base;
        size_t size = batch->header[i].msg_len;
        size_t segment = plan->offload ? segment_size(&batch->header[i].msg_hdr, size) : size;
        for (size_t at = 0; at < size; at += segment) {
            if (accept_datagram(plan, receiver, stream, data + at,
                                size - at < segment ? size - at : segment)) {
                bytes += (int64_t)plan->message;
            }
        }
    }
    return bytes;
}

static void udp_run(struct team_member *member, const struct net_plan *plan,
                    struct receiver *receiver) {
    if (!member->warming) {
        sequence_open(&receiver->sequence);
    }
    do {
        uint64_t remaining = (member->limit - member->work) / plan->message;
        int64_t bytes = udp_receive(plan, receiver, member->index, remaining > 0 ? remaining : 1,
                                    MSG_WAITFORONE);
        if (bytes >= 0) {
            member->work += (uint64_t)bytes;
            receiver->silences = 0;
        } else if (errno == EAGAIN || errno == EINTR) {
            handle_silence(member, receiver);
        } else {
            team_fail(member, "stream %d cannot be received: %s", member->index, strerror(errno));
            return;
        }
    } while (member->work < member->limit && !is_over(member));
    if (!member->warming) {
        sequence_close(&receiver->sequence);
    }
}

static void run(struct team_member *member) {
    const struct receiving *receiving = member->context;
    struct receiver *receiver = &receiving->receivers[member->index];
    if (receiving->plan->udp) {
        udp_run(member, receiving->plan, receiver);
    } else {
        tcp_run(member, receiver);
    }
}

const struct team_job receive_job = {.prepare = prepare, .run = run, .finish = NULL};

/* Takes what one socket holds now. True when the stream has ended: its end was read, or it is
 * broken. */
static bool read_rest(const struct net_plan *plan, struct receiver *receiver, int stream) {
    if (plan->udp) {
        udp_receive(plan, receiver, stream, UINT64_MAX, MSG_DONTWAIT);
        return false; /* a socket without connection has no end; silence ends it */
    }
    ssize_t count = recv(receiver->socket, receiver->buffer, TCP_BUFFER, MSG_DONTWAIT);
    receiver->all += count > 0 ? (uint64_t)count : 0;
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

int receive_rest(const struct net_plan *plan, struct receiver *receivers, uint64_t deadline_ns) {
    struct pollfd wait[STREAMS_MAX];
    int open = plan->streams;
    for (int i = 0; i < plan->streams; i++) {
        wait[i] = (struct pollfd){.fd = receivers[i].socket, .events = POLLIN};
    }
    while (open > 0 && clock_now() < deadline_ns) {
        int ready = poll(wait, (nfds_t)plan->streams, REST_MS);
        if (ready == 0 && plan->udp) {
            return -1;
        }
        for (int i = 0; i < plan->streams && ready > 0; i++) {
            if (wait[i].fd >= 0 && wait[i].revents != 0 && read_rest(plan, &receivers[i], i)) {
                wait[i].fd = -1; /* poll skips it */
                open--;
            }
        }
    }
    for (int i = 0; i < plan->streams && !plan->udp; i++) {
        if (wait[i].fd >= 0) {
            return i;
        }
    }
    return -1;
}

void receive_free(struct receiver *receiver) {
    if (receiver->socket >= 0) {
        close(receiver->socket);
    }
    free(receiver->batch);
    free(receiver->buffer);
}
