/*
 * One thread's part of a disk test: its file and buffers, the operations done so far, their
 * latencies.
 *
 * An engine moves records between buffers and file. psync keeps one request in flight; io_uring
 * keeps `depth`.
 */
#ifndef PEAKMARK_DISK_LANE_H
#define PEAKMARK_DISK_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/histogram.h"
#include "common/team.h"
#include "disk/order.h"

struct engine;
struct volume;

/* What all lanes share. */
struct disk_test {
    const struct engine *engine;
    const struct volume *volume;
    bool write, random, direct;
    bool sync;       /* each write waits until the device has its data (RWF_SYNC, as with O_SYNC) */
    bool fresh;      /* writes go into a file that is empty at the start of each pass */
    bool huge_pages; /* requested for the buffers of records above a page */
    uint64_t record; /* bytes */
    uint64_t records; /* of one file */
    int depth;        /* requests in flight per thread */
    uint64_t seed;
    uint64_t run; /* random: stamps of another run are not taken for ours */
    struct lane *lanes;
    size_t huge_bytes; /* of all lanes' buffers, as the kernel gave them */
    bool counted;      /* device counters at the start of the clock are known */
    uint64_t device_read, device_written;
};

struct lane {
    const struct disk_test *test;
    int file;
    uint64_t begin; /* of the lane's records in the file: 0 unless several lanes share it */
    uint64_t name;  /* of file and run, for the stamps */
    struct order order;
    uint64_t issued;   /* operations since the file was laid out, warm-up included; the next one's
                          number */
    uint64_t *in_slot; /* depth numbers: the operation that used each buffer last */
    uint64_t farthest; /* most operations issued during a single one, which is included; 0 without a
                          queue */
    struct arena arena; /* `depth` buffers of `stride` bytes */
    size_t stride;
    struct histogram latency; /* ns, warm-up excluded */
    uint64_t flush_ns;        /* of the fdatasync inside the clock */
    int truncate_error; /* errno of a file that could not be emptied for the next pass, else 0 */
    void *engine_state;
};

struct engine {
    const char *name;
    bool queue; /* takes a depth above 1 */
    /* Ends the program with exit 77 when this machine cannot do it. May be NULL. */
    void (*probe)(const struct disk_test *test);
    bool (*open)(struct team_member *member, struct lane *lane);
    void (*run)(struct team_member *member, struct lane *lane);
    void (*close)(struct lane *lane);
};

extern const struct engine engine_psync;
extern const struct engine engine_io_uring;

/*
 * The job of a team: lays the file out, warms up, measures, flushes. Context is a struct disk_test.
 */
extern const struct team_job lane_job;

/* Bytes of a lane's buffers. */
uint64_t lane_buffer_bytes(const struct disk_test *test);

/* Whether the next operation empties a fresh file. Nothing may be in flight then: a late write
 * would overwrite data of the next pass. */
bool lane_pass_is_over(const struct lane *lane);

/* Takes the next operation into buffer `slot`: returns its place in the file, and stamps the data
 * of a write. A fresh file is emptied before each pass but the first. */
uint64_t lane_next(struct lane *lane, int slot);
unsigned char *lane_buffer(const struct lane *lane, int slot);

/* Counts an operation that began at `begin_ns` and ended at `end_ns`. */
static inline void lane_done(struct team_member *member, struct lane *lane, uint64_t begin_ns,
                             uint64_t end_ns) {
    if (!member->warming) {
        histogram_add(&lane->latency, end_ns - begin_ns);
    }
    member->work += lane->test->record;
}

/*
 * After the clocks: are the last records read what the file holds, are the last records written in
 * the file? Returns the number of records checked, or -1 with a sentence in `error`.
 */
int64_t lane_verify(struct lane *lane, char *error, size_t capacity);

void lane_free(struct lane *lane);

#endif
