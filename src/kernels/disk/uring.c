/* io_uring: `depth` requests in flight per thread, each thread with a ring. */
#include "common/status.h"
#include "disk/lane.h"

#ifdef HAVE_LIBURING

#include <errno.h>
#include <inttypes.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "common/clock.h"

struct ring {
    struct io_uring ring;
    uint64_t *begin; /* ns, by slot */
};

/* The flags spare interrupts and locks; kernels before 6.1 don't know them all. */
static int ring_init(struct io_uring *ring, int depth) {
    unsigned flags = 0;
#if defined(IORING_SETUP_SINGLE_ISSUER) && defined(IORING_SETUP_DEFER_TASKRUN)
    flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
#endif
    int error = io_uring_queue_init((unsigned)depth, ring, flags);
    return error == -EINVAL && flags != 0 ? io_uring_queue_init((unsigned)depth, ring, 0) : error;
}

static void uring_probe(const struct disk_test *test) {
    struct io_uring ring;
    int error = ring_init(&ring, test->depth);
    if (error != 0) {
        fail_impossible("io_uring is not available: %s (see kernel.io_uring_disabled and the "
                        "container's seccomp "
                        "filter); use --engine psync",
                        strerror(-error));
    }
    io_uring_queue_exit(&ring);
}

static bool uring_open(struct team_member *member, struct lane *lane) {
    struct ring *state = calloc(1, sizeof *state);
    uint64_t *begin = calloc((size_t)lane->test->depth, sizeof *begin);
    int error =
        state == NULL || begin == NULL ? -ENOMEM : ring_init(&state->ring, lane->test->depth);
    if (error != 0) {
        team_fail(
            member,
            "the io_uring of thread %d cannot be made: %s; use a smaller --depth or --threads",
            member->index, strerror(-error));
        free(begin);
        free(state);
        return false;
    }
    state->begin = begin;
    lane->engine_state = state;
    return true;
}

static void uring_close(struct lane *lane) {
    struct ring *state = lane->engine_state;
    io_uring_queue_exit(&state->ring);
    free(state->begin);
    free(state);
}

/*
 * False when the ring is broken. A call that a signal interrupted is made up for by the next one.
 */
static bool check_submit(struct team_member *member, int result) {
    if (result < 0 && result != -EINTR) {
        team_fail(member, "io_uring of thread %d: %s", member->index, strerror(-result));
        return false;
    }
    return true;
}

/*
 * Makes a request and submits it at once: were it held back until all completions are taken, fewer
 * than `depth` requests would be in flight meanwhile (reads at depth 64 on a virtual disk: 231
 * MB/s, at once 313). False: the ring is broken.
 */
static bool submit(struct team_member *member, struct lane *lane, struct ring *state, int slot) {
    struct io_uring_sqe *sqe =
        io_uring_get_sqe(&state->ring); /* never NULL: as many entries as slots */
    uint64_t place = lane_next(lane, slot);
    unsigned char *buffer = lane_buffer(lane, slot);
    if (lane->test->write) {
        io_uring_prep_write(sqe, lane->file, buffer, (unsigned)lane->test->record, place);
        sqe->rw_flags = lane->test->sync ? RWF_SYNC : 0;
    } else {
        io_uring_prep_read(sqe, lane->file, buffer, (unsigned)lane->test->record, place);
    }
    io_uring_sqe_set_data64(sqe, (uint64_t)slot);
    state->begin[slot] = clock_now();
    return check_submit(member, io_uring_submit(&state->ring));
}

/* Takes one completion: false when the request failed. */
static bool complete(struct team_member *member, struct lane *lane, struct ring *state,
                     const struct io_uring_cqe *cqe) {
    if (cqe->res != (int)lane->test->record) {
        team_fail(member, "%s of %" PRIu64 " bytes in the file of thread %d failed: %s",
                  lane->test->write ? "a write" : "a read", lane->test->record, member->index,
                  cqe->res < 0 ? strerror(-cqe->res) : "fewer bytes were moved");
        return false;
    }
    uint64_t ahead = lane->issued - lane->in_slot[cqe->user_data];
    lane->farthest = ahead > lane->farthest ? ahead : lane->farthest;
    lane_done(member, lane, state->begin[cqe->user_data], clock_now());
    return true;
}

/* Replaces each completed request by a new one, until nothing is in flight: the work is done, or a
 * file is to be emptied. */
static bool run_requests(struct team_member *member, struct lane *lane, struct ring *state,
                         uint64_t *remaining) {
    int in_flight = 0;
    for (; in_flight < lane->test->depth && *remaining != 0 &&
           (in_flight == 0 || !lane_pass_is_over(lane));
         in_flight++) {
        if (!submit(member, lane, state, in_flight)) {
            return false;
        }
        --*remaining;
    }
    while (in_flight > 0) {
        if (!check_submit(member, io_uring_submit_and_wait(&state->ring, 1))) {
            return false;
        }
        struct io_uring_cqe *cqe;
        while (io_uring_peek_cqe(&state->ring, &cqe) == 0) {
            int slot = (int)cqe->user_data;
            bool more = complete(member, lane, state, cqe) && *remaining > 0 &&
                        !team_stopped(member) && !lane_pass_is_over(lane);
            io_uring_cqe_seen(&state->ring, cqe);
            in_flight--;
            if (more) {
                if (!submit(member, lane, state, slot)) {
                    return false;
                }
                --*remaining;
                in_flight++;
            }
        }
    }
    return true;
}

static void uring_run(struct team_member *member, struct lane *lane) {
    struct ring *state = lane->engine_state;
    uint64_t remaining =
        member->limit == UINT64_MAX ? UINT64_MAX : member->limit / lane->test->record;
    while (remaining > 0 && run_requests(member, lane, state, &remaining) &&
           !team_stopped(member) && !team_failed(member)) {
    }
}

const struct engine engine_io_uring = {.name = "io_uring",
                                       .queue = true,
                                       .probe = uring_probe,
                                       .open = uring_open,
                                       .run = uring_run,
                                       .close = uring_close};

#else

static void uring_probe(const struct disk_test *test) {
    (void)test;
    fail_impossible("this diskbench was built without liburing: install it (Debian: liburing-dev), "
                    "build again, or "
                    "use --engine psync");
}

const struct engine engine_io_uring = {.name = "io_uring", .queue = true, .probe = uring_probe};

#endif
