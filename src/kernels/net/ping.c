#include "net/ping.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "common/clock.h"
#include "net/endpoint.h"
#include "net/exchange.h"

/*
 * A datagram without an answer is lost after this time; so many in a row, and the server is gone.
 */
#define LOST_SECONDS 0.5
#define LOST_IN_A_ROW 10

static void prepare(struct team_member *member) {
    const struct pinging *pinging = member->context;
    struct ping *ping = &pinging->pings[member->index];
    ping->data = calloc(1, (size_t)pinging->plan->message + 1);
    if (ping->data == NULL) {
        team_fail(member, "no memory for a message");
        return;
    }
    if (pinging->plan->udp) {
        endpoint_receive_timeout(ping->socket, LOST_SECONDS);
    }
}

enum answer { ANSWERED, ANSWER_LOST, ANSWER_FAILED };

/* Waits for the whole answer to the ping of `begin`; the late answer to an earlier one that counts
 * as lost is skipped. */
static enum answer wait_for_answer(const struct net_plan *plan, struct ping *ping, uint64_t begin) {
    size_t have = 0, message = (size_t)plan->message;
    for (;;) {
        size_t room = plan->udp ? message + 1 : message - have;
        ssize_t count = exchange_receive(ping->socket, ping->data + have, room, plan->busy_poll);
        if (count > 0) {
            have += (size_t)count;
            if (have == message && ping->data[0] == (unsigned char)ping->number) {
                return ANSWERED;
            }
            have = plan->udp ? 0 : have;
            if (have >= message) {
                errno = EPROTO;
                return ANSWER_FAILED;
            }
            continue;
        }
        if (count == 0 && !plan->udp) {
            bool stalled = (double)(clock_now() - begin) >= STALL_SECONDS * 1e9;
            errno = stalled ? ETIMEDOUT : ECONNRESET;
            return ANSWER_FAILED;
        }
        if (count < 0 && errno != EAGAIN && errno != EINTR) {
            return ANSWER_FAILED;
        }
        if (plan->udp && (double)(clock_now() - begin) >= LOST_SECONDS * 1e9) {
            return ANSWER_LOST;
        }
    }
}

/*
 * A round trip that was lost takes its time but is no measurement; too many in a row end the run.
 */
static void count_lost(struct team_member *member, struct ping *ping) {
    ping->lost += !member->warming;
    if (++ping->unanswered >= LOST_IN_A_ROW) {
        team_fail(member, "the server gave no answer to %d pings of stream %d in a row",
                  LOST_IN_A_ROW, member->index);
    }
}

static void run(struct team_member *member) {
    const struct pinging *pinging = member->context;
    const struct net_plan *plan = pinging->plan;
    struct ping *ping = &pinging->pings[member->index];
    do {
        uint64_t number = atomic_load_explicit(&ping->number, memory_order_relaxed) + 1;
        atomic_store_explicit(&ping->number, number, memory_order_relaxed);
        ping->data[0] = (unsigned char)number;
        uint64_t begin = clock_now();
        enum answer answer = endpoint_send(ping->socket, ping->data, (size_t)plan->message)
                                 ? wait_for_answer(plan, ping, begin)
                                 : ANSWER_FAILED;
        uint64_t end = clock_now();
        if (answer == ANSWER_FAILED) {
            team_fail(member, "the server is gone from stream %d: %s", member->index,
                      strerror(errno));
            return;
        }
        if (answer == ANSWER_LOST) {
            count_lost(member, ping);
            continue;
        }
        ping->unanswered = 0;
        if (!member->warming) {
            histogram_add(&ping->latency, end - begin);
        }
        member->work++;
    } while (member->work < member->limit && !team_stopped(member));
}

static void finish(struct team_member *member) {
    const struct pinging *pinging = member->context;
    free(pinging->pings[member->index].data);
}

const struct team_job ping_job = {.prepare = prepare, .run = run, .finish = finish};

struct watch {
    const struct pinging *pinging;
    sem_t over;
};

/* A receive timeout would end a stalled stream too, but each call then starts and stops a timer:
 * 0.2 us of a round trip. */
static void *watch_main(void *argument) {
    struct watch *watch = argument;
    const struct pinging *pinging = watch->pinging;
    uint64_t before = 0, moved = clock_now();
    struct timespec next;
    do {
        uint64_t sent = 0, now = clock_now();
        for (int i = 0; i < pinging->plan->streams; i++) {
            sent += atomic_load_explicit(&pinging->pings[i].number, memory_order_relaxed);
        }
        moved = sent == before ? moved : now;
        before = sent;
        for (int i = 0; i < pinging->plan->streams && now - moved > STALL_SECONDS * 1e9; i++) {
            shutdown(pinging->pings[i].socket, SHUT_RDWR);
        }
        clock_gettime(CLOCK_REALTIME, &next);
        next.tv_sec++;
    } while (sem_timedwait(&watch->over, &next) != 0);
    return NULL;
}

bool ping_run(struct team *team, const struct cpu_list *cpus, const struct team_plan *plan,
              struct pinging *pinging) {
    struct watch watch = {.pinging = pinging};
    pthread_t thread;
    sem_init(&watch.over, 0, 0);
    bool watched = !pinging->plan->udp && pthread_create(&thread, NULL, watch_main, &watch) == 0;
    bool ok = team_run(team, cpus, plan, &ping_job, pinging);
    if (watched) {
        sem_post(&watch.over);
        pthread_join(thread, NULL);
    }
    sem_destroy(&watch.over);
    return ok;
}
