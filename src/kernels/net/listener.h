/*
 * How a TCP connection of netbench begins. The client sends a greeting with the version of the
 * protocol; the listener sends the line "CHALLENGE " with random bytes; the client answers with
 * their HMAC, which proves that it knows the key. The key itself crosses no network. The listener
 * closes a connection whose greeting or answer is wrong; to one of another version it first sends
 * the reason.
 */
#ifndef PEAKMARK_NET_LISTENER_H
#define PEAKMARK_NET_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/hmac.h"

/* To be counted up when a greeting, a line or a datagram changes. */
enum { PROTOCOL_VERSION = 3 };

enum { KEY_BYTES = 128, STREAM_CONTROL = -1 };

struct key {
    char text[KEY_BYTES]; /* padded with zeros */
};

/*
 * Greeting and answer as they are sent; numbers are little-endian. The greeting is the same in all
 * versions, so that each can refuse any other.
 */
struct greeting {
    char magic[8];
    uint32_t version;
};

struct answer {
    unsigned char proof[HMAC_BYTES]; /* of this struct with the challenge in this place */
    uint64_t run;                    /* 0 for the control connection */
    int32_t stream;                  /* STREAM_CONTROL for the control connection */
    uint32_t unused;                 /* 0 */
};

_Static_assert(sizeof(struct greeting) == 12 && offsetof(struct answer, run) == 32 &&
                   offsetof(struct answer, stream) == 40 && sizeof(struct answer) == 48,
               "greeting and answer are the same on all machines");

/* The key in the environment variable NETBENCH_KEY. Ends the program when there is none or it is
 * too long. */
struct key key_from_environment(void);

/* Greets on a new connection. False: errno. */
bool greeting_send(int socket);

/* Answers the challenge in a line of the listener. False: errno, EPROTO where the line holds none.
 */
bool greeting_answer(int socket, const char *line, const struct key *key, uint64_t run, int stream);

/*
 * Accepts connections and holds those that have not greeted yet: a silent one keeps no other out.
 */
struct listener;
struct listener *listener_open(int socket, const struct key *key);
void listener_close(struct listener *listener);

/* The next connection that has proved the key, blocking, with TCP_NODELAY; -1: errno, ETIMEDOUT
 * when the deadline has passed. */
int listener_accept(struct listener *listener, uint64_t deadline_ns, uint64_t *run, int *stream);

#endif
