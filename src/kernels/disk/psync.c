/* pread and pwrite: one request in flight per thread, what most programs do. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/clock.h"
#include "disk/lane.h"

static bool psync_open(struct team_member *member, struct lane *lane) {
    (void)member;
    (void)lane;
    return true;
}

/* The kernel may move less than asked (a signal, a limit per call): the rest follows within the same
 * operation. */
static bool transfer(const struct lane *lane, unsigned char *data, uint64_t place) {
    size_t left = lane->test->record;
    while (left > 0) {
        struct iovec part = {.iov_base = data, .iov_len = left};
        ssize_t count = lane->test->sync    ? pwritev2(lane->file, &part, 1, (off_t)place, RWF_SYNC)
                        : lane->test->write ? pwrite(lane->file, data, left, (off_t)place)
                                            : pread(lane->file, data, left, (off_t)place);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            errno = count == 0 ? EIO : errno;
            return false;
        }
        if (count > 0) {
            left -= (size_t)count;
            data += count;
            place += (uint64_t)count;
        }
    }
    return true;
}

static void psync_run(struct team_member *member, struct lane *lane) {
    do {
        uint64_t place = lane_next(lane, 0);
        uint64_t begin = clock_now();
        if (!transfer(lane, lane_buffer(lane, 0), place)) {
            team_fail(member, "%s of %" PRIu64 " bytes at %" PRIu64 " in the file of thread %d failed: %s",
                      lane->test->write ? "a write" : "a read", lane->test->record, place, member->index,
                      strerror(errno));
            return;
        }
        lane_done(member, lane, begin, clock_now());
    } while (member->work < member->limit && !team_stopped(member));
}

static void psync_close(struct lane *lane) {
    (void)lane;
}

const struct engine engine_psync = {.name = "psync",
                                    .queue = false,
                                    .probe = NULL,
                                    .open = psync_open,
                                    .run = psync_run,
                                    .close = psync_close};
