#include "net/gather.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "net/datagram.h"
#include "net/endpoint.h"
#include "net/fields.h"

/* Asked for; the kernel gives at most net.core.rmem_max. A sender that gets the CPU first fills the
 * default at once. */
enum { UDP_RECEIVE_BUFFER = 4 << 20 };

static bool gather_tcp(const struct net_plan *plan, struct listener *listener, int *sockets,
                       char *error, size_t capacity) {
    uint64_t deadline = deadline_in(ANSWER_SECONDS);
    for (int missing = plan->streams; missing > 0;) {
        uint64_t run;
        int stream, socket = listener_accept(listener, deadline, &run, &stream);
        if (socket < 0 && errno != ETIMEDOUT) {
            snprintf(error, capacity, "the server cannot accept %d of %d streams: %s", missing,
                     plan->streams, endpoint_reason(errno));
            return false;
        }
        if (socket < 0) {
            snprintf(error, capacity, "%d of %d streams did not connect", missing, plan->streams);
            return false;
        }
        if (run != plan->run || stream < 0 || stream >= plan->streams || sockets[stream] >= 0) {
            close(socket); /* of another client, which has to try again after this test */
            continue;
        }
        sockets[stream] = socket;
        missing--;
    }
    return true;
}

/* Takes the datagrams of one socket until a hello of this run is among them, and connects to its
 * sender. */
static bool accept_hello(const struct net_plan *plan, int socket, int stream,
                         const struct endpoint *client) {
    struct datagram hello;
    struct endpoint from = {.length = sizeof from.address};
    for (;;) {
        from.length = sizeof from.address;
        ssize_t size = recvfrom(socket, &hello, sizeof hello, MSG_DONTWAIT | MSG_TRUNC,
                                (struct sockaddr *)&from.address, &from.length);
        if (size < 0) {
            return false;
        }
        if (size == (ssize_t)sizeof hello &&
            datagram_is(&hello, plan->run, stream, DATAGRAM_HELLO) &&
            endpoint_same_address(&from, client)) {
            return connect(socket, (const struct sockaddr *)&from.address, from.length) == 0;
        }
    }
}

static bool gather_udp(const struct net_plan *plan, const struct control *control, int *sockets,
                       char *error, size_t capacity) {
    struct endpoint client = endpoint_peer(control->socket);
    uint64_t deadline = deadline_in(ANSWER_SECONDS);
    struct pollfd wait[STREAMS_MAX];
    int missing = plan->streams;
    for (int i = 0; i < plan->streams; i++) {
        wait[i] = (struct pollfd){.fd = sockets[i], .events = POLLIN};
    }
    while (missing > 0) {
        if (clock_now() >= deadline) {
            snprintf(error, capacity,
                     "no datagram of %d of %d streams arrived: does a firewall keep UDP from "
                     "reaching this port?",
                     missing, plan->streams);
            return false;
        }
        poll(wait, (nfds_t)plan->streams, 100);
        for (int i = 0; i < plan->streams; i++) {
            if (wait[i].fd >= 0 && wait[i].revents != 0 &&
                accept_hello(plan, sockets[i], i, &client)) {
                wait[i].fd = -1; /* poll skips it */
                missing--;
            }
        }
    }
    return true;
}

/* Drops what strangers sent before the socket was connected, and repeated hellos. */
static void drain(int socket) {
    char nothing;
    while (recv(socket, &nothing, 1, MSG_DONTWAIT | MSG_TRUNC) >= 0) {
    }
}

static bool bind_udp(const struct net_plan *plan, struct control *control, int *sockets,
                     char *error, size_t capacity) {
    int size = UDP_RECEIVE_BUFFER, on = 1;
    for (int i = 0; i < plan->streams; i++) {
        sockets[i] = endpoint_bind_udp(control->socket);
        if (sockets[i] < 0) {
            snprintf(error, capacity, "no UDP socket for stream %d: %s", i, endpoint_reason(errno));
            return false;
        }
        if (!plan->latency) {
            setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
        }
        if (plan->offload && setsockopt(sockets[i], IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0) {
            snprintf(error, capacity, "the server's kernel has no UDP_GRO: %s", strerror(errno));
            return false;
        }
        struct endpoint local = endpoint_local(sockets[i]);
        control_send(control, "PORT %d %d", i, endpoint_port(&local));
    }
    return true;
}

bool gather_server(const struct net_plan *plan, struct control *control, struct listener *listener,
                   int *sockets, char *error, size_t capacity) {
    if (plan->udp && !bind_udp(plan, control, sockets, error, capacity)) {
        return false;
    }
    control_send(control, "CONNECT");
    if (plan->udp) {
        if (!gather_udp(plan, control, sockets, error, capacity)) {
            return false;
        }
        for (int i = 0; i < plan->streams; i++) {
            drain(sockets[i]);
        }
    } else {
        if (!gather_tcp(plan, listener, sockets, error, capacity)) {
            return false;
        }
        for (int i = 0; i < plan->streams; i++) {
            endpoint_keepalive(sockets[i]);
        }
    }
    return true;
}

static bool receive_line(struct control *control, char *line, uint64_t deadline, char *error,
                         size_t capacity) {
    enum receipt receipt = control_receive(control, line, deadline);
    if (receipt != RECEIPT_LINE) {
        snprintf(error, capacity, "the server %s while the streams were set up",
                 receipt == RECEIPT_CLOSED ? "closed the connection" : "gave no answer");
        return false;
    }
    const char *failure = control_failure(line);
    if (failure != NULL) {
        snprintf(error, capacity, "the server reports: %s", failure);
    }
    return failure == NULL;
}

/* The UDP ports of all streams, if there are any, up to the line that allows to connect. */
static bool receive_ports(const struct net_plan *plan, struct control *control, int *ports,
                          char *error, size_t capacity) {
    char line[LINE_BYTES];
    uint64_t deadline = deadline_in(ANSWER_SECONDS);
    while (receive_line(control, line, deadline, error, capacity)) {
        if (strcmp(line, "CONNECT") == 0) {
            return true;
        }
        struct fields fields = fields_begin(line, "PORT");
        int stream = (int)fields_next(&fields, 0, (uint64_t)plan->streams - 1);
        int port = (int)fields_next(&fields, 1, 65535);
        if (!fields_end(&fields) || ports[stream] != 0) {
            snprintf(error, capacity, "the server's answer is not understood: '%s'", line);
            return false;
        }
        ports[stream] = port;
    }
    return false;
}

/* Proves the key on the connection of a stream. False: errno. */
static bool greet(const struct net_plan *plan, const struct key *key, int socket, int stream,
                  uint64_t deadline) {
    struct control control = {.socket = socket};
    char line[LINE_BYTES];
    if (!greeting_send(socket)) {
        return false;
    }
    enum receipt receipt = control_receive(&control, line, deadline);
    if (receipt != RECEIPT_LINE) {
        errno = receipt == RECEIPT_CLOSED ? ECONNRESET : ETIMEDOUT;
        return false;
    }
    return greeting_answer(socket, line, key, plan->run, stream);
}

static bool open_streams(const struct net_plan *plan, struct control *control,
                         const struct key *key, const int *ports, int *sockets, char *error,
                         size_t capacity) {
    struct endpoint server = endpoint_peer(control->socket);
    uint64_t deadline = deadline_in(ANSWER_SECONDS);
    for (int i = 0; i < plan->streams; i++) {
        if (plan->udp) {
            endpoint_set_port(&server, ports[i]);
        }
        sockets[i] = endpoint_open(&server, plan->udp ? SOCK_DGRAM : SOCK_STREAM, deadline);
        if (sockets[i] < 0 || (!plan->udp && !greet(plan, key, sockets[i], i, deadline))) {
            snprintf(error, capacity, "stream %d cannot be connected: %s", i,
                     endpoint_reason(errno));
            char line[LINE_BYTES]; /* a server that gave up says why */
            bool told = control_receive(control, line, deadline_in(1)) == RECEIPT_LINE;
            const char *failure = told ? control_failure(line) : NULL;
            if (failure != NULL) {
                snprintf(error, capacity, "the server reports: %s", failure);
            }
            return false;
        }
        if (!plan->udp) {
            endpoint_keepalive(sockets[i]);
        }
    }
    return true;
}

bool gather_client(struct net_plan *plan, struct control *control, const struct key *key,
                   int *sockets, char *error, size_t capacity) {
    char line[LINE_BYTES];
    int ports[STREAMS_MAX] = {0};
    if (!receive_ports(plan, control, ports, error, capacity) ||
        !open_streams(plan, control, key, ports, sockets, error, capacity)) {
        return false;
    }
    uint64_t deadline =
        deadline_in(2 * ANSWER_SECONDS); /* the server fails first, and reports why */
    enum receipt receipt;
    do {
        for (int i = 0; plan->udp && i < plan->streams; i++) {
            struct datagram hello = datagram_make(plan->run, 0, i, DATAGRAM_HELLO);
            send(sockets[i], &hello, sizeof hello, MSG_NOSIGNAL);
        }
        receipt = control_receive(control, line, plan->udp ? deadline_in(0.05) : deadline);
    } while (receipt == RECEIPT_TIMEOUT && clock_now() < deadline);
    if (receipt == RECEIPT_LINE && strcmp(line, "GO") == 0) {
        return true;
    }
    const char *failure = receipt == RECEIPT_LINE ? control_failure(line) : NULL;
    snprintf(error, capacity, "%s%s", failure != NULL ? "the server reports: " : "",
             failure != NULL
                 ? failure
                 : "the server did not start the test after the streams were connected");
    return false;
}
