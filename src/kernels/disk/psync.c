/* pread and pwrite: one request in flight per thread, what most programs do. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "disk/lane.h"
#include "disk/transfer.h"

static bool psync_open(struct team_member *member, struct lane *lane) {
    (void)member;
    (void)lane;
    return true;
}

static void psync_run(struct team_member *member, struct lane *lane) {
    const struct disk_test *test = lane->test;
    const enum transfer kind = !test->write ? TRANSFER_READ
                               : test->sync ? TRANSFER_WRITE_SYNC
                                            : TRANSFER_WRITE;
    do {
        uint64_t offset = lane_next(lane, 0);
        uint64_t begin = clock_now();
        if (!transfer_whole(lane->file, kind, lane_buffer(lane, 0), test->record, offset)) {
            team_fail(member,
                      "%s of %" PRIu64 " bytes at %" PRIu64 " in the file of thread %d failed: %s",
                      test->write ? "a write" : "a read", test->record, offset, member->index,
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
