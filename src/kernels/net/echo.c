#include "net/echo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/datagram.h"
#include "net/endpoint.h"
#include "net/exchange.h"

static bool is_stopped(const struct echo *echo) {
    return atomic_load_explicit(echo->stop, memory_order_relaxed);
}

/* A repeated hello that was still on its way when the test began. */
static bool is_hello(const struct net_plan *plan, int stream, const unsigned char *data,
                     size_t size) {
    struct datagram header;
    if (size != sizeof header) {
        return false;
    }
    memcpy(&header, data, sizeof header);
    return datagram_is(&header, plan->run, stream, DATAGRAM_HELLO);
}

/* Answers until *stop is set. Returns 0 or an errno value. */
static int answer(struct echo *echo, unsigned char *data, size_t room) {
    const struct net_plan *plan = echo->plan;
    size_t have = 0, message = (size_t)plan->message;
    while (!is_stopped(echo)) {
        size_t wanted = plan->udp ? room : message - have;
        ssize_t count = exchange_receive(echo->socket, data + have, wanted, plan->busy_poll);
        if (count <= 0) {
            if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
                continue;
            }
            return is_stopped(echo) ? 0 : count < 0 ? errno : ECONNRESET;
        }
        have = plan->udp ? (size_t)count : have + (size_t)count;
        if (have < message) {
            have = plan->udp ? 0 : have; /* a datagram of another size is no ping */
            continue;
        }
        if (!plan->udp || (have == message && !is_hello(plan, echo->stream, data, have))) {
            if (!endpoint_send(echo->socket, data, message)) {
                return is_stopped(echo) ? 0 : errno;
            }
            uint64_t answered = atomic_load_explicit(&echo->answered, memory_order_relaxed);
            atomic_store_explicit(&echo->answered, answered + 1, memory_order_relaxed);
        }
        have = 0;
    }
    return 0;
}

static void *echo_main(void *argument) {
    struct echo *echo = argument;
    size_t room = (size_t)echo->plan->message + sizeof(struct datagram);
    int error = place_pin(echo->cpu);
    unsigned char *data = malloc(room);
    if (error == 0) {
        error = data == NULL ? ENOMEM : answer(echo, data, room);
    }
    free(data);
    atomic_store(&echo->error, error);
    return NULL;
}

bool echo_start(const struct net_plan *plan, struct echo *echoes, const struct cpu_list *cpus,
                const atomic_bool *stop) {
    for (int i = 0; i < plan->streams; i++) {
        echoes[i].plan = plan;
        echoes[i].stop = stop;
        echoes[i].stream = i;
        echoes[i].cpu = cpus->cpu[i];
        int error = pthread_create(&echoes[i].thread, NULL, echo_main, &echoes[i]);
        if (error != 0) {
            errno = error;
            return false;
        }
        echoes[i].started = true;
    }
    return true;
}

void echo_join(const struct net_plan *plan, struct echo *echoes) {
    for (int i = 0; i < plan->streams; i++) {
        shutdown(echoes[i].socket,
                 SHUT_RDWR); /* wakes a blocked recv, of UDP too when the socket is connected */
    }
    for (int i = 0; i < plan->streams; i++) {
        if (echoes[i].started) {
            pthread_join(echoes[i].thread, NULL);
        }
    }
}
