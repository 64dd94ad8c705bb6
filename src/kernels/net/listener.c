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
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/status.h"
#include "net/control.h"
#include "net/endpoint.h"

enum { PENDING_MAX = 64, GREETING_SECONDS = 5 };

enum { OPENING = sizeof(struct greeting) + sizeof(struct answer) };

#define CHALLENGE "CHALLENGE "

static const char magic[8] = {'p', 'e', 'a', 'k', 'm', 'a', 'r', 'k'};

/* A connection that has not proved the key yet. */
struct pending {
    int socket;
    size_t have; /* bytes of greeting and answer */
    uint64_t deadline_ns;
    struct greeting greeting;
    unsigned char challenge[HMAC_BYTES];
    struct answer answer;
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

static void set_no_delay(int socket) {
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool greeting_send(int socket) {
    struct greeting greeting = {.version = htole32(PROTOCOL_VERSION)};
    memcpy(greeting.magic, magic, sizeof magic);
    set_no_delay(socket);
    return endpoint_send(socket, &greeting, sizeof greeting);
}

static void prove(const struct key *key, const struct answer *answer,
                  const unsigned char challenge[HMAC_BYTES], unsigned char proof[HMAC_BYTES]) {
    struct answer signed_part = *answer;
    memcpy(signed_part.proof, challenge, HMAC_BYTES);
    hmac_sha256(key->text, strlen(key->text), &signed_part, sizeof signed_part, proof);
}

/* The bytes of a line such as "CHALLENGE 00ff...". */
static bool read_challenge(const char *line, unsigned char challenge[HMAC_BYTES]) {
    size_t start = strlen(CHALLENGE);
    if (strlen(line) != start + 2 * (size_t)HMAC_BYTES || strncmp(line, CHALLENGE, start) != 0 ||
        strspn(line + start, "0123456789abcdef") != 2 * (size_t)HMAC_BYTES) {
        return false;
    }
    for (size_t i = 0; i < HMAC_BYTES; i++) {
        char digits[3] = {line[start + 2 * i], line[start + 2 * i + 1], '\0'};
        challenge[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return true;
}

bool greeting_answer(int socket, const char *line, const struct key *key, uint64_t run,
                     int stream) {
    unsigned char challenge[HMAC_BYTES];
    struct answer answer = {.run = htole64(run), .stream = (int32_t)htole32((uint32_t)stream)};
    if (!read_challenge(line, challenge)) {
        errno = EPROTO;
        return false;
    }
    prove(key, &answer, challenge, answer.proof);
    return endpoint_send(socket, &answer, sizeof answer);
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

/* Accepts a connection. False: errno, this machine has no room for another one, and a further try
 * would fail at once. A connection that has ended meanwhile is no error. */
static bool add_pending(struct listener *listener) {
    int socket = accept4(listener->socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
        return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
    }
    if (listener->count == PENDING_MAX) {
        drop(listener, 0); /* the one that has been silent longest */
    }
    listener->pending[listener->count++] =
        (struct pending){.socket = socket, .deadline_ns = deadline_in(GREETING_SECONDS)};
    return true;
}

/* Sends the reason to a client that speaks another version of the protocol. */
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

/* Sends the challenge to a client that has greeted. */
static enum greeting_state challenge(struct pending *pending) {
    struct control control = {.socket = pending->socket};
    char text[2 * HMAC_BYTES + 1];
    uint32_t version = le32toh(pending->greeting.version);
    if (memcmp(pending->greeting.magic, magic, sizeof magic) != 0) {
        return GREETING_WRONG;
    }
    if (version != PROTOCOL_VERSION) {
        refuse_version(pending->socket, version);
        return GREETING_WRONG;
    }
    if (getrandom(pending->challenge, HMAC_BYTES, 0) != HMAC_BYTES) {
        fail_measurement("the server has no random numbers: %s", strerror(errno));
    }
    for (int i = 0; i < HMAC_BYTES; i++) {
        snprintf(text + 2 * i, 3, "%02x", pending->challenge[i]);
    }
    return control_send(&control, CHALLENGE "%s", text) ? GREETING_INCOMPLETE : GREETING_WRONG;
}

/* Reads what has come of greeting and answer. */
static enum greeting_state read_opening(const struct listener *listener, struct pending *pending) {
    struct answer *answer = &pending->answer;
    bool greeted = pending->have >= sizeof pending->greeting;
    char *part = greeted ? (char *)answer : (char *)&pending->greeting;
    size_t begin = greeted ? sizeof pending->greeting : 0;
    size_t end = greeted ? (size_t)OPENING : sizeof pending->greeting;
    ssize_t count = recv(pending->socket, part + (pending->have - begin), end - pending->have, 0);
    if (count <= 0) {
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? GREETING_INCOMPLETE
                                                                : GREETING_WRONG;
    }
    pending->have += (size_t)count;
    if (pending->have < end) {
        return GREETING_INCOMPLETE;
    }
    if (!greeted) {
        return challenge(pending);
    }
    unsigned char proof[HMAC_BYTES];
    prove(&listener->key, answer, pending->challenge, proof);
    return hmac_equal(proof, answer->proof) ? GREETING_GOOD : GREETING_WRONG;
}

/* The connection is the caller's from now on. */
static int hand_over(struct listener *listener, int index, uint64_t *run, int *stream) {
    const struct answer *answer = &listener->pending[index].answer;
    int socket = listener->pending[index].socket;
    *run = le64toh(answer->run);
    *stream = (int)(int32_t)le32toh((uint32_t)answer->stream);
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
            errno = ETIMEDOUT;
            return -1;
        }
        poll(wait, (nfds_t)known + 1, until > now ? (int)((until - now) / 1000000 + 1) : 0);
        now = clock_now();
        for (int i = known - 1; i >= 0; i--) { /* from the end: forget() moves those after it */
            struct pending *pending = &listener->pending[i];
            enum greeting_state state =
                wait[i].revents != 0 ? read_opening(listener, pending) : GREETING_INCOMPLETE;
            if (state == GREETING_GOOD) {
                return hand_over(listener, i, run, stream);
            }
            if (state == GREETING_WRONG || now >= pending->deadline_ns) {
                drop(listener, i);
            }
        }
        if (wait[known].revents != 0 && !add_pending(listener)) {
            return -1;
        }
    }
}
