/*
 * How the two sides find and understand each other.
 *
 * Every TCP connection begins with a greeting that carries the key; one with a wrong greeting is closed and
 * forgotten. The first good one is the control connection: lines of text, each wait with a deadline.
 */
#ifndef PEAKMARK_NET_CONTROL_H
#define PEAKMARK_NET_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_BYTES = 128, LINE_BYTES = 1024, STREAM_CONTROL = -1 };

struct key {
    char text[KEY_BYTES]; /* padded with zeros */
};

/* The key in the environment variable NETBENCH_KEY. Ends the program when there is none or it is too long. */
struct key key_from_environment(void);

/* Takes the same time wherever the keys differ. */
bool key_equal(const struct key *left, const struct key *right);

/* Greets on a new connection. `run` is 0 and `stream` STREAM_CONTROL for the control connection. */
bool greeting_send(int socket, const struct key *key, uint64_t run, int stream);

/* Connections that have been accepted and have not greeted yet: a silent stranger keeps nobody out. */
struct door;
struct door *door_open(int listener, const struct key *key);
void door_close(struct door *door);

/* The next connection that greets with the key; -1 when the deadline has passed. Blocking, no delay
 * (TCP_NODELAY). */
int door_next(struct door *door, uint64_t deadline_ns, uint64_t *run, int *stream);

struct control {
    int socket;
    size_t have;
    char buffer[LINE_BYTES];
};

/* Sends one line (the newline is added). False when the connection is gone. */
bool control_say(struct control *control, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum heard { HEARD_LINE, HEARD_NOTHING, HEARD_END };

/* One line without its newline; HEARD_NOTHING at the deadline, HEARD_END when the other side is gone. */
enum heard control_hear(struct control *control, char line[LINE_BYTES], uint64_t deadline_ns);

/* clock_now() plus seconds. */
uint64_t deadline_in(double seconds);

#endif
