/*
 * Sockets: names to addresses, listening and connecting with a deadline, and what the kernel knows
 * of them.
 */
#ifndef PEAKMARK_NET_ENDPOINT_H
#define PEAKMARK_NET_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct endpoint {
    struct sockaddr_storage address;
    socklen_t length;
};

/* Listens on a TCP port of `address` (name, IPv4 or IPv6; port 0: any). Ends the program when that
 * is not possible. */
int endpoint_listen(const char *address, int port);

/* Connects to the first address of `host` that answers. Ends the program when none does. */
int endpoint_connect(const char *host, int port);

/* Connects to an address within the deadline, blocking afterwards. -1: errno. `type` is SOCK_STREAM
 * or SOCK_DGRAM. */
int endpoint_open(const struct endpoint *peer, int type, uint64_t deadline_ns);

/* A UDP socket on the local address that `control` is connected from, any free port. -1: errno. */
int endpoint_bind_udp(int control);

/*
 * Address and port of this side, and of the other side of a connected socket. Zero length when
 * there is none.
 */
struct endpoint endpoint_local(int socket);
struct endpoint endpoint_peer(int socket);
int endpoint_port(const struct endpoint *endpoint);
void endpoint_set_port(struct endpoint *endpoint, int port);
bool endpoint_same_address(const struct endpoint *left, const struct endpoint *right);

/* "127.0.0.1" or "fe80::1%eth0", without the port. Returns text. */
const char *endpoint_text(const struct endpoint *endpoint, char *text, size_t capacity);

/* Sends all of it. False: errno; EIO where the kernel took nothing. */
bool endpoint_send(int socket, const void *data, size_t size);

/* recv on this socket returns EAGAIN after this time. */
void endpoint_receive_timeout(int socket, double seconds);

/* The connection ends with an error some 10 s after the other machine has vanished. */
void endpoint_keepalive(int socket);

/* Lets the kernel join messages of this size to segments (Nagle's algorithm) where that pays.
 * Returns whether it does. */
bool endpoint_join(int socket, uint64_t message);

/* The sentence of an errno value; of the limit of open files also how to raise it. */
const char *endpoint_reason(int error);

/* Name of the congestion control of a TCP socket, "" where unknown. Returns text. */
const char *endpoint_congestion_control(int socket, char *text, size_t capacity);

/* Segments that a TCP socket has sent again since the connection began; 0 where unknown. */
uint64_t endpoint_retransmits(int socket);

/* Size of a socket buffer in bytes as the kernel counts it, with its overhead; SO_SNDBUF or
 * SO_RCVBUF. */
int endpoint_buffer(int socket, int which);

/* Number of datagrams that the kernel dropped at this socket, as its buffer was full; 0 where the
 * kernel does not tell. */
uint64_t endpoint_drops(int socket);

#endif
