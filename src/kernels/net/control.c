#include "net/control.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/status.h"

#define MAGIC "pkmknet1" /* the last character counts the versions of the protocol */

enum { DOOR_PLACES = 64, GREETING_SECONDS = 5 };

struct greeting {
    char magic[8];
    uint64_t run;
    int64_t stream;
    struct key key;
};

struct door {
    int listener;
    struct key key;
    int count;
    struct visitor {
        int socket;
        size_t have;
        uint64_t until;
        struct greeting greeting;
    } visitor[DOOR_PLACES];
};

uint64_t deadline_in(double seconds) {
    return clock_now() + (uint64_t)(seconds * 1e9);
}

struct key key_from_environment(void) {
    struct key key = {{0}};
    const char *text = getenv("NETBENCH_KEY");
    if (text == NULL || text[0] == '\0') {
        fail_usage("NETBENCH_KEY is not set: put the same secret into the environment of both sides");
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

static bool send_whole(int socket, const void *data, size_t size) {
    const char *bytes = data;
    while (size > 0) {
        ssize_t count = send(socket, bytes, size, MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR) {
            return false;
        }
        size_t done = count > 0 ? (size_t)count : 0;
        bytes += done;
        size -= done;
    }
    return true;
}

bool greeting_send(int socket, const struct key *key, uint64_t run, int stream) {
    struct greeting greeting = {.run = run, .stream = stream, .key = *key};
    int on = 1;
    memcpy(greeting.magic, MAGIC, sizeof greeting.magic);
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return send_whole(socket, &greeting, sizeof greeting);
}

struct door *door_open(int listener, const struct key *key) {
    struct door *door = calloc(1, sizeof *door);
    if (door == NULL) {
        fail_measurement("no memory for connections");
    }
    door->listener = listener;
    door->key = *key;
    fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK); /* a visitor may be gone before accept */
    return door;
}

/* Gives up visitor `index`; its socket is closed unless it was handed on. */
static void leave(struct door *door, int index, bool handed_on) {
    if (!handed_on) {
        close(door->visitor[index].socket);
    }
    door->count--;
    memmove(&door->visitor[index], &door->visitor[index + 1],
            (size_t)(door->count - index) * sizeof door->visitor[0]);
}

void door_close(struct door *door) {
    while (door->count > 0) {
        leave(door, 0, false);
    }
    free(door);
}

static void let_in(struct door *door) {
    int visitor = accept4(door->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (visitor < 0) {
        return;
    }
    if (door->count == DOOR_PLACES) {
        leave(door, 0, false); /* the one that has been silent longest */
    }
    door->visitor[door->count++] =
        (struct visitor){.socket = visitor, .until = deadline_in(GREETING_SECONDS)};
}

enum visit { VISIT_WAIT, VISIT_GOOD, VISIT_BAD };

static enum visit listen_to(const struct door *door, struct visitor *visitor) {
    struct greeting *greeting = &visitor->greeting;
    ssize_t count =
        recv(visitor->socket, (char *)greeting + visitor->have, sizeof *greeting - visitor->have, 0);
    if (count <= 0) {
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? VISIT_WAIT : VISIT_BAD;
    }
    visitor->have += (size_t)count;
    if (visitor->have < sizeof *greeting) {
        return VISIT_WAIT;
    }
    bool ours = memcmp(greeting->magic, MAGIC, sizeof greeting->magic) == 0;
    return ours && key_equal(&greeting->key, &door->key) ? VISIT_GOOD : VISIT_BAD;
}

static int hand_on(struct door *door, int index, uint64_t *run, int *stream) {
    int socket = door->visitor[index].socket, on = 1;
    *run = door->visitor[index].greeting.run;
    *stream = (int)door->visitor[index].greeting.stream;
    leave(door, index, true);
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
}

int door_next(struct door *door, uint64_t deadline_ns, uint64_t *run, int *stream) {
    for (;;) {
        struct pollfd wait[DOOR_PLACES + 1];
        uint64_t now = clock_now(), until = deadline_ns;
        int known = door->count;
        for (int i = 0; i < known; i++) {
            wait[i] = (struct pollfd){.fd = door->visitor[i].socket, .events = POLLIN};
            until = door->visitor[i].until < until ? door->visitor[i].until : until;
        }
        wait[known] = (struct pollfd){.fd = door->listener, .events = POLLIN};
        if (now >= deadline_ns) {
            return -1;
        }
        poll(wait, (nfds_t)known + 1, until > now ? (int)((until - now) / 1000000 + 1) : 0);
        now = clock_now();
        for (int i = known - 1; i >= 0; i--) { /* from the end: leave() moves those behind */
            enum visit visit = wait[i].revents != 0 ? listen_to(door, &door->visitor[i]) : VISIT_WAIT;
            if (visit == VISIT_GOOD) {
                return hand_on(door, i, run, stream);
            }
            if (visit == VISIT_BAD || now >= door->visitor[i].until) {
                leave(door, i, false);
            }
        }
        if (wait[known].revents != 0) {
            let_in(door);
        }
    }
}

bool control_say(struct control *control, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    length = length < (int)sizeof line - 1 ? length : (int)sizeof line - 2;
    line[length] = '\n';
    return send_whole(control->socket, line, (size_t)length + 1);
}

/* Takes the first line out of the buffer, if a whole one is there. */
static bool take_line(struct control *control, char line[LINE_BYTES]) {
    char *end = memchr(control->buffer, '\n', control->have);
    if (end == NULL) {
        return false;
    }
    size_t length = (size_t)(end - control->buffer);
    memcpy(line, control->buffer, length);
    line[length] = '\0';
    control->have -= length + 1;
    memmove(control->buffer, end + 1, control->have);
    return true;
}

enum heard control_hear(struct control *control, char line[LINE_BYTES], uint64_t deadline_ns) {
    while (!take_line(control, line)) {
        uint64_t now = clock_now();
        struct pollfd wait = {.fd = control->socket, .events = POLLIN};
        if (control->have == sizeof control->buffer) {
            return HEARD_END; /* no line is that long: not our protocol */
        }
        if (now >= deadline_ns) {
            return HEARD_NOTHING;
        }
        uint64_t left_ms = (deadline_ns - now) / 1000000 + 1;
        if (poll(&wait, 1, left_ms > 60000 ? 60000 : (int)left_ms) <= 0) {
            continue;
        }
        ssize_t count = recv(control->socket, control->buffer + control->have,
                             sizeof control->buffer - control->have, MSG_DONTWAIT);
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
            return HEARD_END;
        }
        control->have += count > 0 ? (size_t)count : 0;
    }
    return HEARD_LINE;
}
