#include "net/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/status.h"

enum { CONNECT_SECONDS = 10, BACKLOG = 4096, JOINED = 8 };

/* Counts of SO_MEMINFO: the last is that of dropped datagrams. As in linux/sock_diag.h, which other
 * C libraries than glibc do not find. */
enum { MEMINFO_DROPS = 8, MEMINFO_COUNTS };

/* No Ethernet has segments of so many bytes; over loopback they begin with 32 KiB less headers and
 * grow to 64. */
enum { LARGE_SEGMENT = 16 << 10 };

static struct addrinfo *resolve(const char *host, int port, int flags) {
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *addresses;
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int error = getaddrinfo(host, service, &hints, &addresses);
    if (error != 0) {
        fail_measurement("'%s' is not an address or a known name: %s", host,
                         error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
    }
    return addresses;
}

int endpoint_listen(const char *address, int port) {
    struct addrinfo *addresses = resolve(address, port, AI_PASSIVE);
    int on = 1, listener = socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) {
        fail_measurement("no socket for '%s': %s", address, strerror(errno));
    }
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, addresses->ai_addr, addresses->ai_addrlen) != 0 ||
        listen(listener, BACKLOG) != 0) {
        fail_measurement("port %d of '%s' cannot be listened on: %s%s", port, address,
                         strerror(errno), errno == EADDRINUSE ? "; name another --port" : "");
    }
    freeaddrinfo(addresses);
    return listener;
}

/* Waits for the outcome of a connect that was started without blocking. 0 or an errno value. */
static int connected(int socket, uint64_t deadline_ns) {
    for (;;) {
        uint64_t now = clock_now();
        struct pollfd wait = {.fd = socket, .events = POLLOUT};
        int ready =
            now >= deadline_ns ? 0 : poll(&wait, 1, (int)((deadline_ns - now) / 1000000 + 1));
        if (ready > 0) {
            int error = 0;
            socklen_t length = sizeof error;
            getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
            return error;
        }
        if (ready == 0) {
            return ETIMEDOUT;
        }
        if (errno != EINTR) {
            return errno;
        }
    }
}

int endpoint_open(const struct endpoint *peer, int type, uint64_t deadline_ns) {
    int opened = socket(peer->address.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (opened < 0) {
        return -1;
    }
    int error = 0;
    if (connect(opened, (const struct sockaddr *)&peer->address, peer->length) != 0) {
        error = errno == EINPROGRESS ? connected(opened, deadline_ns) : errno;
    }
    if (error == 0 && fcntl(opened, F_SETFL, fcntl(opened, F_GETFL) & ~O_NONBLOCK) != 0) {
        error = errno;
    }
    if (error != 0) {
        close(opened);
        errno = error;
        return -1;
    }
    return opened;
}

int endpoint_connect(const char *host, int port) {
    struct addrinfo *addresses = resolve(host, port, 0);
    int opened = -1;
    for (struct addrinfo *address = addresses; address != NULL && opened < 0;
         address = address->ai_next) {
        struct endpoint peer = {.length = address->ai_addrlen};
        memcpy(&peer.address, address->ai_addr, address->ai_addrlen);
        opened =
            endpoint_open(&peer, SOCK_STREAM, clock_now() + CONNECT_SECONDS * UINT64_C(1000000000));
    }
    if (opened < 0) {
        fail_measurement("no connection to port %d of '%s': %s; start 'netbench serve' there first",
                         port, host, strerror(errno));
    }
    freeaddrinfo(addresses);
    return opened;
}

int endpoint_bind_udp(int control) {
    struct endpoint local = endpoint_local(control);
    endpoint_set_port(&local, 0);
    int bound = socket(local.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bound >= 0 && bind(bound, (const struct sockaddr *)&local.address, local.length) != 0) {
        int error = errno;
        close(bound);
        errno = error;
        return -1;
    }
    return bound;
}

struct endpoint endpoint_local(int socket) {
    struct endpoint endpoint = {.length = sizeof endpoint.address};
    if (getsockname(socket, (struct sockaddr *)&endpoint.address, &endpoint.length) != 0) {
        endpoint.length = 0;
    }
    return endpoint;
}

struct endpoint endpoint_peer(int socket) {
    struct endpoint endpoint = {.length = sizeof endpoint.address};
    if (getpeername(socket, (struct sockaddr *)&endpoint.address, &endpoint.length) != 0) {
        endpoint.length = 0;
    }
    return endpoint;
}

int endpoint_port(const struct endpoint *endpoint) {
    return ntohs(endpoint->address.ss_family == AF_INET6
                     ? ((const struct sockaddr_in6 *)&endpoint->address)->sin6_port
                     : ((const struct sockaddr_in *)&endpoint->address)->sin_port);
}

void endpoint_set_port(struct endpoint *endpoint, int port) {
    if (endpoint->address.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&endpoint->address)->sin6_port = htons((uint16_t)port);
    } else {
        ((struct sockaddr_in *)&endpoint->address)->sin_port = htons((uint16_t)port);
    }
}

bool endpoint_same_address(const struct endpoint *left, const struct endpoint *right) {
    if (left->length == 0 || left->address.ss_family != right->address.ss_family) {
        return false;
    }
    if (left->address.ss_family == AF_INET6) {
        return memcmp(&((const struct sockaddr_in6 *)&left->address)->sin6_addr,
                      &((const struct sockaddr_in6 *)&right->address)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
    }
    return ((const struct sockaddr_in *)&left->address)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)&right->address)->sin_addr.s_addr;
}

const char *endpoint_text(const struct endpoint *endpoint, char *text, size_t capacity) {
    if (endpoint->length == 0 ||
        getnameinfo((const struct sockaddr *)&endpoint->address, endpoint->length, text,
                    (socklen_t)capacity, NULL, 0, NI_NUMERICHOST) != 0) {
        snprintf(text, capacity, "unknown");
    }
    return text;
}

bool endpoint_send(int socket, const void *data, size_t size) {
    const char *bytes = data;
    while (size > 0) {
        ssize_t count = send(socket, bytes, size, MSG_NOSIGNAL);
        if (count == 0) {
            errno = EIO;
            return false;
        }
        if (count < 0 && errno != EINTR) {
            return false;
        }
        if (count > 0) {
            bytes += count;
            size -= (size_t)count;
        }
    }
    return true;
}

void endpoint_receive_timeout(int socket, double seconds) {
    struct timeval time = {.tv_sec = (time_t)seconds,
                           .tv_usec = (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

void endpoint_keepalive(int socket) {
    int on = 1, idle = 4, interval = 2, probes = 3;
    unsigned unanswered_ms = 10000;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

/*
 * Joined messages wait until a segment is full or all before them is acknowledged. That pays when
 * many fit into a segment, and where segments are large, as over loopback: a message that is a
 * little longer than a segment would send its last bytes in another one. Else the waiting costs
 * more. Measured with Linux 6.18, one stream, NODELAY against joined: loopback 1 KiB (63 in a
 * segment) 1.2 and 6 Gbit/s, 16 KiB (3) 10 and 15; veth 512 B (2) 0.7 and 0.4, 64 B (22) 0.09 and
 * 0.2, 32 KiB (a segment has 1448 B) 7.9 and 5.7.
 */
bool endpoint_join(int socket, uint64_t message) {
    int segment = 0;
    socklen_t length = sizeof segment;
    if (getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &segment, &length) != 0) {
        return false;
    }
    int at_once = segment < LARGE_SEGMENT && (uint64_t)segment / message < JOINED;
    return setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once) == 0 &&
           at_once == 0;
}

int endpoint_buffer(int socket, int which) {
    int bytes = 0;
    socklen_t length = sizeof bytes;
    return getsockopt(socket, SOL_SOCKET, which, &bytes, &length) == 0 ? bytes : 0;
}

uint64_t endpoint_drops(int socket) {
    uint32_t counts[MEMINFO_COUNTS] = {0};
    socklen_t length = sizeof counts;
    return getsockopt(socket, SOL_SOCKET, SO_MEMINFO, counts, &length) == 0 ? counts[MEMINFO_DROPS]
                                                                            : 0;
}

const char *endpoint_reason(int error) {
    return error == EMFILE ? "the limit of open files is reached, raise it (ulimit -n)"
                           : strerror(error);
}

const char *endpoint_congestion_control(int socket, char *text, size_t capacity) {
    socklen_t length = (socklen_t)capacity - 1;
    memset(text, 0, capacity);
    if (getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, text, &length) != 0) {
        text[0] = '\0';
    }
    return text;
}

uint64_t endpoint_retransmits(int socket) {
    struct tcp_info info = {.tcpi_total_retrans = 0};
    socklen_t length = sizeof info;
    return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 ? info.tcpi_total_retrans
                                                                          : 0;
}
