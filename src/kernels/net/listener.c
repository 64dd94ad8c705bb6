#include "net/listener.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/status.h"
#include "net/control.h"
#include "net/endpoint.h"

enum { PENDING_MAX = 64, GREETING_SECONDS = 5 };

/* In every version of the protocol: enough to know whose connection it is and whether it is
 * understood. */
enum { GREETING_PREFIX = offsetof(struct greeting, stream) };

static const char magic[8] = {'p', 'e', 'a', 'k', 'm', 'a', 'r', 'k'};

/* A connection that has not greeted yet. */
struct pending {
    int socket;
    size_t have;
    uint64_t deadline_ns;
    struct greeting greeting;
};

struct listener {
    int socket;
    struct key key;
    int count;
    struct pending pending[PENDING_MAX];
};

struct key key_from_environment(void) {
    struct key key = {{0}};
    const char *text = getenv("NETBENCH_KEY");
    if (text == NULL || text[0] == '\0') {
        fail_usage(
            "NETBENCH_KEY is not set: put the same secret into the environment of both sides");
    }
    if (strlen(text) >= sizeof key.text) {
        fail_usage("NETBENCH_KEY is longer than %zu bytes", sizeof key.text - 1);
    }
    memcpy(key.text, text, strlen(text));
    return key;
}

bool key_equal(const struct key *left, const struct key *right) {
    volatile unsigned char different = 0;
    for (size_t i = 0; i < sizeof left->text; i++) {
        different = (unsigned char)(different | (left->text[i] ^ right->text[i]));
    }
    return different == 0;
}

static void set_no_delay(int socket) {
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool greeting_send(int socket, const struct key *key, uint64_t run, int stream) {
    struct greeting greeting = {.version = htole32(PROTOCOL_VERSION),
                                .key = *key,
                                .stream = (int32_t)htole32((uint32_t)stream),
                                .run = htole64(run)};
    memcpy(greeting.magic, magic, sizeof magic);
    set_no_delay(socket);
    return endpoint_send(socket, &greeting, sizeof greeting);
}

struct listener *listener_open(int socket, const struct key *key) {
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        fail_measurement("no memory for connections");
    }
    listener->socket = socket;
    listener->key = *key;
    /* A connection may have ended before accept is called, which must not wait for another one
     * then. */
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    return listener;
}

static void forget(struct listener *listener, int index) {
    listener->count--;
    memmove(&listener->pending[index], &listener->pending[index + 1],
            (size_t)(listener->count - index) * sizeof listener->pending[0]);
}

static void drop(struct listener *listener, int index) {
    close(listener->pending[index].socket);
    forget(listener, index);
}

void listener_close(struct listener *listener) {
    while (listener->count > 0) {
        drop(listener, 0);
    }
    free(listener);
}

static void add_pending(struct listener *listener) {
    int socket = accept4(listener->socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
        return;
    }
    if (listener->count == PENDING_MAX) {
        drop(listener, 0); /* the one that has been silent longest */
    }
    listener->pending[listener->count++] =
        (struct pending){.socket = socket, .deadline_ns = deadline_in(GREETING_SECONDS)};
}

/* Sends the reason to a client that has the key but speaks another version of the protocol. */
static void refuse_version(int socket, uint32_t version) {
    struct control control = {.socket = socket};
    fprintf(stderr, "netbench: refused a client that speaks version %u of the protocol, not %d\n",
            version, PROTOCOL_VERSION);
    control_send(
        &control,
        "FAILED the server speaks version %d of the protocol, the client version %u: use the same "
        "version of peakmark on both sides",
        PROTOCOL_VERSION, version);
}

enum greeting_state { GREETING_INCOMPLETE, GREETING_GOOD, GREETING_WRONG };

/* Reads what has come of a greeting. */
static enum greeting_state read_greeting(const struct listener *listener, struct pending *pending) {
    struct greeting *greeting = &pending->greeting;
    ssize_t count = recv(pending->socket, (char *)greeting + pending->have,
                         sizeof *greeting - pending->have, 0);
    if (count <= 0) {
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? GREETING_INCOMPLETE
                                                                : GREETING_WRONG;
    }
    pending->have += (size_t)count;
    if (pending->have < GREETING_PREFIX) {
        return GREETING_INCOMPLETE;
    }
    if (memcmp(greeting->magic, magic, sizeof magic) != 0 ||
        !key_equal(&greeting->key, &listener->key)) {
        return GREETING_WRONG;
    }
    if (le32toh(greeting->version) != PROTOCOL_VERSION) {
        refuse_version(pending->socket, le32toh(greeting->version));
        return GREETING_WRONG;
    }
    return pending->have == sizeof *greeting ? GREETING_GOOD : GREETING_INCOMPLETE;
}

/* The connection is the caller's from now on. */
static int hand_over(struct listener *listener, int index, uint64_t *run, int *stream) {
    const struct greeting *greeting = &listener->pending[index].greeting;
    int socket = listener->pending[index].socket;
    *run = le64toh(greeting->run);
    *stream = (int)(int32_t)le32toh((uint32_t)greeting->stream);
    forget(listener, index);
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
    set_no_delay(socket);
    return socket;
}

int listener_accept(struct listener *listener, uint64_t deadline_ns, uint64_t *run, int *stream) {
    for (;;) {
        struct pollfd wait[PENDING_MAX + 1];
        uint64_t now = clock_now(), until = deadline_ns;
        int known = listener->count;
        for (int i = 0; i < known; i++) {
            wait[i] = (struct pollfd){.fd = listener->pending[i].socket, .events = POLLIN};
            until =
                listener->pending[i].deadline_ns < until ? listener->pending[i].deadline_ns : until;
        }
        wait[known] = (struct pollfd){.fd = listener->socket, .events = POLLIN};
        if (now >= deadline_ns) {
            return -1;
        }
        poll(wait, (nfds_t)known + 1, until > now ? (int)((until - now) / 1000000 + 1) : 0);
        now = clock_now();
        for (int i = known - 1; i >= 0; i--) { /* from the end: forget() moves those after it */
            struct pending *pending = &listener->pending[i];
            enum greeting_state state =
                wait[i].revents != 0 ? read_greeting(listener, pending) : GREETING_INCOMPLETE;
            if (state == GREETING_GOOD) {
                return hand_over(listener, i, run, stream);
            }
            if (state == GREETING_WRONG || now >= pending->deadline_ns) {
                drop(listener, i);
            }
        }
        if (wait[known].revents != 0) {
            add_pending(listener);
        }
    }
}
