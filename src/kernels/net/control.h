/* The control connection: lines of text in both directions, each waited for until a deadline. */
#ifndef PEAKMARK_NET_CONTROL_H
#define PEAKMARK_NET_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINE_BYTES = 1024 };

struct control {
    int socket;
    size_t have;
    char buffer[LINE_BYTES];
};

/* Sends one line (the newline is added). False: errno, the connection has ended. */
bool control_send(struct control *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum receipt { RECEIPT_LINE, RECEIPT_TIMEOUT, RECEIPT_CLOSED };

/* One line without its newline, printable whatever was sent; RECEIPT_TIMEOUT at the deadline,
 * RECEIPT_CLOSED when the connection has ended or carries no lines. */
enum receipt control_receive(struct control *control, char line[LINE_BYTES], uint64_t deadline_ns);

/* The reason in a line by which the server reports that it has failed; NULL for any other line. */
const char *control_failure(const char *line);

/* clock_now() plus seconds. */
uint64_t deadline_in(double seconds);

#endif
