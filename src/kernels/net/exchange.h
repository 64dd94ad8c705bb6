/* Receiving a message of a ping-pong, sleeping or spinning. */
#ifndef PEAKMARK_NET_EXCHANGE_H
#define PEAKMARK_NET_EXCHANGE_H

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Spins before the CPU is offered to others: a spinning thread must not keep its partner from
 * running. */
enum { EXCHANGE_SPINS = 64 };

/*
 * One recv. With `spin` it returns -1 with EAGAIN after EXCHANGE_SPINS attempts, else as the
 * socket's timeout says.
 */
static inline ssize_t exchange_receive(int socket, void *data, size_t size, bool spin) {
    if (!spin) {
        return recv(socket, data, size, 0);
    }
    for (int i = 0; i < EXCHANGE_SPINS; i++) {
        ssize_t count = recv(socket, data, size, MSG_DONTWAIT);
        if (count >= 0 || (errno != EAGAIN && errno != EINTR)) {
            return count;
        }
    }
    sched_yield();
    errno = EAGAIN;
    return -1;
}

#endif
