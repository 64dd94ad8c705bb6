#include "disk/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/options.h"
#include "common/random.h"
#include "disk/record.h"
#include "disk/transfer.h"
#include "disk/volume.h"

enum {
    SMALL_PAGE = 4096,
    LAYOUT_CHUNK = 1 << 20,
    VERIFIED_RECORDS = 64,
    VERIFIED_BYTES = 64 << 20
};

/* Buffers begin at pages. */
static uint64_t stride_of(const struct disk_test *test) {
    return (test->record + SMALL_PAGE - 1) / SMALL_PAGE * SMALL_PAGE;
}

uint64_t lane_buffer_bytes(const struct disk_test *test) {
    return stride_of(test) * (uint64_t)test->depth;
}

unsigned char *lane_buffer(const struct lane *lane, int slot) {
    return lane->arena.base + (size_t)slot * lane->stride;
}

bool lane_pass_is_over(const struct lane *lane) {
    return lane->test->fresh && lane->issued > 0 && lane->issued % lane->test->records == 0;
}

uint64_t lane_next(struct lane *lane, int slot) {
    const struct disk_test *test = lane->test;
    if (lane_pass_is_over(lane) && ftruncate(lane->file, 0) != 0) {
        lane->truncate_error = errno;
    }
    uint64_t operation = lane->issued++;
    uint64_t index = order_at(&lane->order, operation);
    lane->in_slot[slot] = operation;
    if (test->write) {
        record_stamp(lane_buffer(lane, slot), test->record, lane->name, index, operation + 1);
    }
    return lane->begin + index * test->record;
}

/*
 * Writes the whole file, so that no read meets a hole and no measured write has to allocate: a run
 * that wraps around measures the same thing from its first record to its last. Generation 0.
 */
static bool lay_out(struct team_member *member, struct lane *lane) {
    const struct disk_test *test = lane->test;
    uint64_t per_write = test->record < LAYOUT_CHUNK ? LAYOUT_CHUNK / test->record : 1;
    struct arena chunk;
    if (!arena_create(&chunk, per_write * test->record, false)) {
        team_fail(member, "no memory for a buffer of %" PRIu64 " bytes", per_write * test->record);
        return false;
    }
    struct random_state random;
    random_seed(&random, test->seed, (uint64_t)member->index);
    random_fill(&random, chunk.base, per_write * test->record);
    bool ok = true;
    for (uint64_t first = 0; ok && first < test->records && !team_failed(member);
         first += per_write) {
        uint64_t count = test->records - first < per_write ? test->records - first : per_write;
        for (uint64_t i = 0; i < count; i++) {
            record_stamp(chunk.base + i * test->record, test->record, lane->name, first + i, 0);
        }
        ok = transfer_whole(lane->file, TRANSFER_WRITE, chunk.base, count * test->record,
                            lane->begin + first * test->record);
    }
    ok = ok && fsync(lane->file) == 0;
    if (!ok) {
        team_fail(
            member, "the file of thread %d cannot be written: %s%s", member->index, strerror(errno),
            errno == ENOSPC || errno == EDQUOT ? "; use a smaller --size or another --directory"
                                               : "");
    }
    arena_destroy(&chunk);
    return ok;
}

/* Without O_DIRECT the page cache is emptied of the file as far as the kernel lets an ordinary user
 * do it. */
static void drop_page_cache(const struct lane *lane) {
    if (!lane->test->direct) {
        posix_fadvise(lane->file, 0, 0, POSIX_FADV_DONTNEED);
        posix_fadvise(lane->file, 0, 0,
                      lane->test->random ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
    }
}

static void prepare(struct team_member *member) {
    struct disk_test *test = member->context;
    struct lane *lane = &test->lanes[member->index];
    lane->order.records = test->records;
    lane->order.random = test->random;
    lane->order.seed = test->seed * UINT64_C(0x9e3779b97f4a7c15) +
                       (uint64_t)member->index * UINT64_C(0xd1342543de82ef95);
    lane->name = test->run + (uint64_t)member->index;
    lane->stride = (size_t)stride_of(test);
    size_t bytes = (size_t)lane_buffer_bytes(test);
    /* The device moves a record in as many pieces as its buffer has in physical memory: of small
     * pages 256 in 1 MiB. */
    bool huge = test->huge_pages && lane->stride > SMALL_PAGE;
    lane->in_slot = calloc((size_t)test->depth, sizeof *lane->in_slot);
    if (lane->in_slot == NULL || !arena_create(&lane->arena, bytes, huge)) {
        team_fail(member,
                  "no memory for %d buffers of %" PRIu64
                  " bytes; use a smaller --record, --depth or --threads",
                  test->depth, test->record);
        return;
    }
    struct random_state random;
    random_seed(&random, test->seed, (uint64_t)member->index + 1);
    random_fill(&random, lane->arena.base, bytes);
    if ((test->fresh || lay_out(member, lane)) && test->engine->open(member, lane)) {
        drop_page_cache(lane);
    }
}

static void look_at_pages(struct team *team) {
    static const struct arena *arenas[THREADS_MAX];
    struct disk_test *test = team->members[0].context;
    for (int i = 0; i < team->threads; i++) {
        arenas[i] = &test->lanes[i].arena;
    }
    test->huge_bytes = arena_huge_bytes(arenas, team->threads);
}

static void run(struct team_member *member) {
    struct disk_test *test = member->context;
    struct lane *lane = &test->lanes[member->index];
    /* The last member: of a small total the first ones may get no share. */
    if (!member->warming && member->index == member->team->threads - 1) {
        test->counted = volume_counters(test->volume, &test->device_read, &test->device_written);
    }
    test->engine->run(member, lane);
    if (test->write && !team_failed(member)) {
        uint64_t begin = clock_now();
        if (fdatasync(lane->file) != 0) {
            team_fail(member, "the file of thread %d cannot be flushed: %s", member->index,
                      strerror(errno));
        }
        lane->flush_ns = clock_now() - begin;
    }
    if (lane->truncate_error != 0) {
        team_fail(member, "the file of thread %d cannot be emptied: %s", member->index,
                  strerror(lane->truncate_error));
    }
}

const struct team_job lane_job = {
    .prepare = prepare, .prepared = look_at_pages, .run = run, .finish = NULL};

/* Whether the record may hold this generation: the newest, or with a queue one that was in flight
 * at the same time, as some requests take so long that others complete a whole pass meanwhile. */
static bool is_acceptable(const struct lane *lane, uint64_t operation, uint64_t generation) {
    if (generation == operation + 1) {
        return true;
    }
    return generation > 0 && generation - 1 < operation &&
           operation - (generation - 1) < lane->farthest &&
           order_at(&lane->order, generation - 1) == order_at(&lane->order, operation);
}

/* Reads the newest records once more, up to a number, newest first; of a record written twice only
 * the newest. */
static int64_t verify_file(struct lane *lane, uint64_t limit, char *error, size_t capacity) {
    const struct disk_test *test = lane->test;
    uint64_t checked[VERIFIED_RECORDS];
    uint64_t count = 0, in_file = lane->issued;
    if (test->fresh && in_file > 0) {
        in_file =
            (in_file - 1) % test->records + 1; /* what the file had before this pass is gone */
    }
    for (uint64_t back = 1; back <= in_file && count < limit && back <= 2 * VERIFIED_RECORDS;
         back++) {
        uint64_t operation = lane->issued - back, index = order_at(&lane->order, operation),
                 generation = 0;
        bool newer = false;
        for (uint64_t i = 0; i < count; i++) {
            newer = newer || checked[i] == index;
        }
        if (newer) {
            continue;
        }
        unsigned char *buffer = lane_buffer(lane, 0);
        memset(buffer, 0, test->record);
        ssize_t got =
            pread(lane->file, buffer, test->record, (off_t)(lane->begin + index * test->record));
        if (got != (ssize_t)test->record) {
            snprintf(error, capacity, "record %" PRIu64 " cannot be read back: %s", index,
                     got < 0 ? strerror(errno) : "the file is too short");
            return -1;
        }
        bool whole = record_check(buffer, test->record, lane->name, index, &generation);
        if (!whole ||
            (test->write ? !is_acceptable(lane, operation, generation) : generation != 0)) {
            snprintf(error, capacity, "record %" PRIu64 " does not hold what was written to it",
                     index);
            return -1;
        }
        checked[count++] = index;
    }
    return (int64_t)count;
}

int64_t lane_verify(struct lane *lane, char *error, size_t capacity) {
    const struct disk_test *test = lane->test;
    uint64_t slots = lane->issued < (uint64_t)test->depth ? lane->issued : (uint64_t)test->depth;
    int64_t count = 0;
    for (uint64_t slot = 0; !test->write && slot < slots; slot++, count++) {
        uint64_t index = order_at(&lane->order, lane->in_slot[slot]), generation;
        if (!record_check(lane_buffer(lane, (int)slot), test->record, lane->name, index,
                          &generation)) {
            snprintf(error, capacity,
                     "a read of record %" PRIu64 " did not bring what the file holds", index);
            return -1;
        }
    }
    uint64_t limit = VERIFIED_BYTES / test->record;
    limit = limit < 1 ? 1 : limit > VERIFIED_RECORDS ? VERIFIED_RECORDS : limit;
    int64_t reread = verify_file(lane, limit, error, capacity);
    return reread < 0 ? -1 : count + reread;
}

void lane_free(struct lane *lane) {
    if (lane->engine_state != NULL) {
        lane->test->engine->close(lane);
    }
    if (lane->arena.base != NULL) {
        arena_destroy(&lane->arena);
    }
    free(lane->in_slot);
    if (lane->file >= 0) {
        close(lane->file);
    }
}
