/*
 * How a TCP connection of netbench begins: with a greeting that carries the version of the protocol
 * and the key. The listener closes a connection whose greeting is wrong; to one with the right key
 * and another version it first sends the reason.
 */
#ifndef PEAKMARK_NET_LISTENER_H
#define PEAKMARK_NET_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* To be counted up when a greeting, a line or a datagram changes. */
enum { PROTOCOL_VERSION = 2 };

enum { KEY_BYTES = 128, STREAM_CONTROL = -1 };

struct key {
    char text[KEY_BYTES]; /* padded with zeros */
};

/*
 * The greeting as it is sent; numbers are little-endian. Magic, version and key stay where they are
 * in all versions, so that each can refuse any other.
 */
struct greeting {
    char magic[8];
    uint32_t version;
    struct key key;
    int32_t stream; /* STREAM_CONTROL for the control connection */
    uint64_t run;   /* 0 for the control connection */
};

_Static_assert(offsetof(struct greeting, key) == 12 && offsetof(struct greeting, stream) == 140 &&
                   offsetof(struct greeting, run) == 144 && sizeof(struct greeting) == 152,
               "the greeting is the same on all machines");

/* The key in the environment variable NETBENCH_KEY. Ends the program when there is none or it is
 * too long. */
struct key key_from_environment(void);

/* Takes the same time wherever the keys differ. */
bool key_equal(const struct key *left, const struct key *right);

/* Greets on a new connection. False: errno. */
bool greeting_send(int socket, const struct key *key, uint64_t run, int stream);

/*
 * Accepts connections and holds those that have not greeted yet: a silent one keeps no other out.
 */
struct listener;
struct listener *listener_open(int socket, const struct key *key);
void listener_close(struct listener *listener);

/* The next connection with a right greeting; -1 when the deadline has passed. Blocking, no delay
 * (TCP_NODELAY). */
int listener_accept(struct listener *listener, uint64_t deadline_ns, uint64_t *run, int *stream);

#endif
