#include "net/ping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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
    endpoint_receive_timeout(ping->socket, pinging->plan->udp ? LOST_SECONDS : STALL_SECONDS);
}

enum answer { ANSWERED, ANSWER_LOST, ANSWER_FAILED };

/* Waits for the whole answer to the ping of `begin`; the late answer to an earlier one that counts
 * as lost is skipped. */
static enum answer wait_for_answer(const struct net_plan *plan, struct ping *ping, uint64_t begin) {
    const double patience = plan->udp ? LOST_SECONDS : STALL_SECONDS;
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
            errno = ECONNRESET;
            return ANSWER_FAILED;
        }
        if (count < 0 && errno != EAGAIN && errno != EINTR) {
            return ANSWER_FAILED;
        }
        if ((double)(clock_now() - begin) >= patience * 1e9) {
            errno = ETIMEDOUT;
            return plan->udp ? ANSWER_LOST : ANSWER_FAILED;
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
        ping->number++;
        ping->data[0] = (unsigned char)ping->number;
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
