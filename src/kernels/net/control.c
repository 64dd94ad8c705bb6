#include "net/control.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "net/endpoint.h"

/* Longer than any test; as nanoseconds it fits into 64 bits. */
#define LONGEST_SECONDS 1e9

uint64_t deadline_in(double seconds) {
    seconds = seconds < LONGEST_SECONDS ? seconds : LONGEST_SECONDS;
    return clock_now() + (uint64_t)(seconds * 1e9);
}

bool control_send(struct control *control, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    length = length < (int)sizeof line - 1 ? length : (int)sizeof line - 2;
    line[length] = '\n';
    return endpoint_send(control->socket, line, (size_t)length + 1);
}

/*
 * Copies what the other side has sent so that it can be printed: bytes other than printable ASCII,
 * of which no line of the protocol has any, become \x1b. A line that gets too long is cut.
 */
static void copy_printable(const char *text, size_t length, char line[LINE_BYTES]) {
    size_t at = 0;
    for (size_t i = 0; i < length && at + 4 < LINE_BYTES; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool printable = byte >= ' ' && byte <= '~';
        at += (size_t)snprintf(line + at, 5, printable ? "%c" : "\\x%02x", byte);
    }
    line[at] = '\0';
}

/* Takes the first line out of the buffer, if a whole one is in it. */
static bool take_line(struct control *control, char line[LINE_BYTES]) {
    char *end = memchr(control->buffer, '\n', control->have);
    if (end == NULL) {
        return false;
    }
    size_t length = (size_t)(end - control->buffer);
    copy_printable(control->buffer, length, line);
    control->have -= length + 1;
    memmove(control->buffer, end + 1, control->have);
    return true;
}

enum receipt control_receive(struct control *control, char line[LINE_BYTES], uint64_t deadline_ns) {
    while (!take_line(control, line)) {
        uint64_t now = clock_now();
        struct pollfd wait = {.fd = control->socket, .events = POLLIN};
        if (control->have == sizeof control->buffer) {
            return RECEIPT_CLOSED; /* no line of the protocol is that long */
        }
        if (now >= deadline_ns) {
            return RECEIPT_TIMEOUT;
        }
        uint64_t wait_ms = (deadline_ns - now) / 1000000 + 1;
        if (poll(&wait, 1, wait_ms > 60000 ? 60000 : (int)wait_ms) <= 0) {
            continue;
        }
        ssize_t count = recv(control->socket, control->buffer + control->have,
                             sizeof control->buffer - control->have, MSG_DONTWAIT);
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
            return RECEIPT_CLOSED;
        }
        control->have += count > 0 ? (size_t)count : 0;
    }
    return RECEIPT_LINE;
}

const char *control_failure(const char *line) {
    return strncmp(line, "FAILED ", 7) == 0 ? line + 7 : NULL;
}
