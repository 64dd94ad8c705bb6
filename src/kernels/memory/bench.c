#include "memory/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/options.h"
#include "common/random.h"

/* Bytes between two checks of the stop flag: 40 us in the first-level cache, under a millisecond in
 * DRAM. */
#define PORTION_BYTES (UINT64_C(4) << 20)
/* Loads between two checks of flag and clock: 80 us in the first-level cache. */
#define PORTION_HOPS 65536
/* How long a probe reads: first until the caches hold nothing of the run, then for its rate. */
#define PROBE_LEAD_NS UINT64_C(10000000)
#define PROBE_NS UINT64_C(25000000)
#define PROBE_BLOCK ((size_t)1 << 20)
/* What no write and no copy leaves behind. */
#define POISON UINT64_C(0xdeadc0dedeadc0de)
/* STREAM's factor. Times whole numbers below 2^32 it is exact, with and without rounding between.
 */
#define TRIAD_FACTOR 3.0
/* Share of a run that its threads may stop apart: what they differ by lowers the rate. */
#define APART_MOST 0.01

unsigned bench_buffers(enum operation operation) {
    switch (operation) {
    case OPERATION_COPY:
        return 2;
    case OPERATION_TRIAD:
        return 3;
    default:
        return 1;
    }
}

bool bench_writes(enum operation operation) {
    return operation == OPERATION_WRITE || operation == OPERATION_COPY ||
           operation == OPERATION_TRIAD;
}

uint64_t bench_work_per_visit(const struct bench *bench) {
    if (bench->operation == OPERATION_CHASE) {
        return 1;
    }
    return bench_buffers(bench->operation) * (uint64_t)bench->block;
}

static uint64_t buffer_bytes(const struct bench *bench) {
    return bench->block * bench->blocks;
}

/*
 * The buffers begin at different offsets in a page: at equal ones Intel cores hold a load back for
 * an older store that merely has the same low 12 bits. An odd number of lines also spreads small
 * blocks over the cache's sets.
 */
static uint64_t scaled_offset(const struct bench *bench) {
    return (buffer_bytes(bench) + 4095) / 4096 * 4096 + 21 * LINE_BYTES;
}

static uint64_t target_offset(const struct bench *bench) {
    const uint64_t pages = (buffer_bytes(bench) + 4095) / 4096 * 4096;
    switch (bench->operation) {
    case OPERATION_COPY:
        return pages + 33 * LINE_BYTES;
    case OPERATION_TRIAD:
        return 2 * pages + 43 * LINE_BYTES;
    default:
        return 0;
    }
}

uint64_t bench_bytes_per_thread(const struct bench *bench) {
    return target_offset(bench) + buffer_bytes(bench);
}

const struct bench_worker *bench_worker(const struct team_member *member) {
    return member->state;
}

void bench_free(struct team *team) {
    for (int i = 0; i < team->threads; i++) {
        free(team->members[i].state);
        team->members[i].state = NULL;
    }
}

/* Memory of a thread, mapped but not touched, and its random numbers. NULL: the team has failed. */
static struct bench_worker *new_worker(struct team_member *member, struct random_state *random) {
    const struct bench *bench = member->context;
    struct bench_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL ||
        !arena_create(&worker->arena, (size_t)bench_bytes_per_thread(bench), bench->huge_pages)) {
        team_fail(member, "thread %d cannot have %" PRIu64 " bytes of memory: %s", member->index,
                  bench_bytes_per_thread(bench), strerror(errno));
        free(worker);
        return NULL;
    }
    member->state = worker;
    random_seed(random, bench->seed, (uint64_t)member->index);
    return worker;
}

static void fill_words(unsigned char *buffer, size_t bytes, uint64_t word) {
    for (size_t at = 0; at < bytes; at += sizeof word) {
        memcpy(buffer + at, &word, sizeof word);
    }
}

/* Doubles that are whole numbers below 2^32, so that every instruction set has the same sums. */
static void fill_doubles(struct random_state *random, unsigned char *buffer, size_t bytes) {
    for (size_t at = 0; at < bytes; at += sizeof(double)) {
        const double number = (double)(random_next(random) >> 32);
        memcpy(buffer + at, &number, sizeof number);
    }
}

static void prepare_sweep(struct team_member *member) {
    const struct bench *bench = member->context;
    struct random_state random;
    struct bench_worker *worker = new_worker(member, &random);
    if (worker == NULL) {
        return;
    }
    if (bench->operation == OPERATION_TRIAD) {
        worker->source = worker->arena.base;
        worker->scaled = worker->arena.base + scaled_offset(bench);
        fill_doubles(&random, worker->source, buffer_bytes(bench));
        fill_doubles(&random, worker->scaled, buffer_bytes(bench));
    } else if (bench->operation != OPERATION_WRITE) {
        worker->source = worker->arena.base;
        random_fill(&random, worker->source, buffer_bytes(bench));
    }
    if (bench->operation != OPERATION_READ) {
        worker->target = worker->arena.base + target_offset(bench);
        fill_words(worker->target, buffer_bytes(bench), POISON);
    }
    if (bench->random && bench->blocks > 1) {
        worker->order = malloc((size_t)bench->blocks * sizeof *worker->order);
        if (worker->order == NULL) {
            team_fail(member, "no memory for the order of %llu blocks",
                      (unsigned long long)bench->blocks);
            return;
        }
        random_permutation(&random, worker->order, (uint32_t)bench->blocks);
    }
    worker->value = random_next(&random);
}

static void look_at_pages(struct team *team) {
    static const struct arena *arenas[THREADS_MAX];
    struct bench *bench = team->members[0].context;
    for (int i = 0; i < team->threads; i++) {
        arenas[i] = &bench_worker(&team->members[i])->arena;
    }
    bench->huge_bytes = arena_huge_bytes(arenas, team->threads);
}

static sweep_function *choose_sweep(const struct bench *bench) {
    const struct sweeper *sweeper = bench->sweeper;
    if (bench->libc) {
        return bench->operation == OPERATION_COPY ? sweep_copy_libc : sweep_write_libc;
    }
    switch (bench->operation) {
    case OPERATION_READ:
        return sweeper->read;
    case OPERATION_WRITE:
        return bench->streaming ? sweeper->write_streaming : sweeper->write;
    case OPERATION_TRIAD:
        return bench->streaming ? sweeper->triad_streaming : sweeper->triad;
    default:
        return bench->streaming ? sweeper->copy_streaming : sweeper->copy;
    }
}

static uint64_t minimum(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static void run_sweep(struct team_member *member) {
    const struct bench *bench = member->context;
    struct bench_worker *worker = member->state;
    sweep_function *const sweep = choose_sweep(bench);
    const uint64_t per_visit = bench_work_per_visit(bench);
    const uint64_t portion = PORTION_BYTES / per_visit > 0 ? PORTION_BYTES / per_visit : 1;
    const uint64_t wanted = member->limit / per_visit + (member->limit % per_visit > 0 ? 1 : 0);
    const bool same_block = bench->blocks == 1;
    struct sweep next = {.source = worker->source,
                         .scaled = worker->scaled,
                         .factor = TRIAD_FACTOR,
                         .target = worker->target,
                         .block = bench->block,
                         .stride = same_block ? 0 : bench->block,
                         .order = worker->order};
    uint64_t visits = 0, sum = 0;
    while (visits < wanted && (visits == 0 || !team_stopped(member))) {
        next.first = same_block ? 0 : visits % bench->blocks;
        next.count = minimum(portion, wanted - visits);
        if (!same_block) {
            next.count = minimum(next.count, bench->blocks - next.first);
        }
        next.value = worker->value + visits;
        sum += sweep(&next);
        visits += next.count;
    }
    worker->visits = visits;
    worker->sum = sum;
    member->work = visits * per_visit;
}

/* Whatever the warm-up read and wrote must not pass for the measured run's work. */
static void ready_sweep(struct team_member *member) {
    const struct bench *bench = member->context;
    struct bench_worker *worker = member->state;
    worker->visits = worker->sum = 0;
    if (worker->target != NULL) {
        fill_words(worker->target, buffer_bytes(bench), POISON);
        worker->value += UINT64_C(0x9e3779b97f4a7c15);
    }
}

/* B/s of reading a buffer of so many blocks round and round, with the best loads of the CPU. */
static double read_for(struct sweep *next, uint64_t blocks, uint64_t nanoseconds) {
    sweep_function *const read = sweeper_find(ISA_COUNT)->read;
    const uint64_t started = clock_now();
    uint64_t now = started, bytes = 0;
    for (; now - started < nanoseconds; now = clock_now()) {
        read(next);
        next->first = (next->first + 1) % blocks;
        bytes += next->block;
    }
    return (double)bytes * 1e9 / (double)(now - started);
}

/* The rate at which the thread reads its part of the memory; 0 where that is no sign of others. */
static double probe_memory(struct team_member *member) {
    const struct bench *bench = member->context;
    const struct bench_worker *worker = member->state;
    const size_t bytes = buffer_bytes(bench), block = bytes < PROBE_BLOCK ? bytes : PROBE_BLOCK;
    struct sweep next = {.source = worker->arena.base, .block = block, .stride = block, .count = 1};
    if (!bench->probe) {
        return 0;
    }
    read_for(&next, bytes / block, PROBE_LEAD_NS);
    return read_for(&next, bytes / block, PROBE_NS);
}

static bool all_words(const unsigned char *block, size_t bytes, uint64_t wanted) {
    uint64_t different = 0, word;
    for (size_t at = 0; at < bytes; at += sizeof word) {
        memcpy(&word, block + at, sizeof word);
        different |= word ^ wanted;
    }
    return different == 0;
}

/* Sum that `visits` visits must have read: whole laps and the begun one. */
static uint64_t expected_sum(const struct bench *bench, const struct bench_worker *worker) {
    uint64_t lap = 0, begun = 0, rest = worker->visits % bench->blocks;
    for (uint64_t i = 0; i < bench->blocks; i++) {
        uint64_t number = worker->order != NULL ? worker->order[i] : i;
        uint64_t sum = sweep_sum(worker->source + number * bench->block, bench->block);
        lap += sum;
        begun += i < rest ? sum : 0;
    }
    return worker->visits / bench->blocks * lap + begun;
}

static bool all_sums(const unsigned char *sums, const unsigned char *source,
                     const unsigned char *scaled, size_t bytes) {
    double sum, first, second;
    bool right = true;
    for (size_t at = 0; at < bytes; at += sizeof sum) {
        memcpy(&sum, sums + at, sizeof sum);
        memcpy(&first, source + at, sizeof first);
        memcpy(&second, scaled + at, sizeof second);
        right = right && sum == first + TRIAD_FACTOR * second;
    }
    return right;
}

/* Whether the block of place i in the order holds what its last visit left, or poison if there was
 * none. */
static bool block_is_right(const struct bench *bench, const struct bench_worker *worker,
                           uint64_t i) {
    uint64_t number = worker->order != NULL ? worker->order[i] : i;
    const unsigned char *block = worker->target + number * bench->block;
    if (i >= worker->visits) {
        return all_words(block, bench->block, POISON);
    }
    if (bench->operation == OPERATION_COPY) {
        return memcmp(block, worker->source + number * bench->block, bench->block) == 0;
    }
    if (bench->operation == OPERATION_TRIAD) {
        return all_sums(block, worker->source + number * bench->block,
                        worker->scaled + number * bench->block, bench->block);
    }
    uint64_t last = i + (worker->visits - 1 - i) / bench->blocks * bench->blocks;
    uint64_t value = worker->value + last;
    return all_words(block, bench->block,
                     bench->libc ? (value & 0xff) * UINT64_C(0x0101010101010101) : value);
}

static void verify_sweep(struct team_member *member) {
    const struct bench *bench = member->context;
    const struct bench_worker *worker = member->state;
    if (bench->operation == OPERATION_READ) {
        if (worker->sum != expected_sum(bench, worker)) {
            team_wrong(
                member,
                "thread %d on CPU %d did not read what the memory holds: the rate is not reported",
                member->index, member->cpu);
        }
        return;
    }
    for (uint64_t i = 0; i < bench->blocks; i++) {
        if (!block_is_right(bench, worker, i)) {
            team_wrong(
                member,
                "thread %d on CPU %d left block %llu with wrong contents: the rate is not reported",
                member->index, member->cpu, (unsigned long long)i);
            return;
        }
    }
}

static void finish_sweep(struct team_member *member) {
    struct bench_worker *worker = member->state;
    if (worker == NULL) {
        return;
    }
    if (!team_failed(member)) {
        verify_sweep(member);
    }
    free(worker->order);
    worker->order = NULL;
    arena_destroy(&worker->arena);
}

static void prepare_chase(struct team_member *member) {
    const struct bench *bench = member->context;
    struct random_state random;
    struct bench_worker *worker = new_worker(member, &random);
    if (worker == NULL) {
        return;
    }
    chase_link(&worker->chase, worker->arena.base, bench->block, bench->stride, &random);
}

static void run_chase(struct team_member *member) {
    struct bench_worker *worker = member->state;
    uint64_t done = 0, before = clock_now();
    worker->fastest = 0;
    while (done < member->limit && (done == 0 || !team_stopped(member))) {
        uint64_t hops = minimum(PORTION_HOPS, member->limit - done);
        chase_run(&worker->chase, hops);
        uint64_t after = clock_now();
        double each = (double)(after - before) * 1e-9 / (double)hops;
        if (hops == PORTION_HOPS && (worker->fastest == 0 || each < worker->fastest)) {
            worker->fastest = each;
        }
        before = after;
        done += hops;
    }
    member->work = done;
}

static void finish_chase(struct team_member *member) {
    struct bench_worker *worker = member->state;
    if (worker == NULL) {
        return;
    }
    const char *wrong = team_failed(member) ? NULL : chase_verify(&worker->chase);
    if (wrong != NULL) {
        team_wrong(member, "thread %d on CPU %d: %s: the latency is not reported", member->index,
                   member->cpu, wrong);
    }
    arena_destroy(&worker->arena);
}

double bench_long_visit(const struct team *team, uint64_t per_visit) {
    uint64_t first = UINT64_MAX, last = 0;
    double longest = 0;
    for (int i = 0; i < team->threads; i++) {
        const struct team_member *member = &team->members[i];
        const uint64_t visits = member->work / per_visit;
        const double seconds = (double)(member->stop_ns - member->start_ns) * 1e-9;
        const double visit = visits > 0 ? seconds / (double)visits : 0;
        first = member->stop_ns < first ? member->stop_ns : first;
        last = member->stop_ns > last ? member->stop_ns : last;
        longest = visit > longest ? visit : longest;
    }
    const double most = APART_MOST * team->seconds, apart = (double)(last - first) * 1e-9;
    return team->plan.work == 0 && apart > most && longest > most ? longest : 0;
}

const struct team_job bench_sweep_job = {.prepare = prepare_sweep,
                                         .prepared = look_at_pages,
                                         .run = run_sweep,
                                         .ready = ready_sweep,
                                         .probe = probe_memory,
                                         .finish = finish_sweep};
const struct team_job bench_chase_job = {.prepare = prepare_chase,
                                         .prepared = look_at_pages,
                                         .run = run_chase,
                                         .probe = probe_memory,
                                         .finish = finish_chase};
