#include "memory/loaded.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/clock.h"
#include "common/isa.h"
#include "common/random.h"
#include "common/status.h"
#include "common/team.h"
#include "common/topology.h"
#include "memory/cache.h"
#include "memory/chase.h"
#include "memory/rambench.h"
#include "memory/sweep.h"

/* Bytes between two pauses: about as many lines as a core can wait for at a time. */
#define BURST ((size_t)4 * SWEEP_GROUP)
/* Bursts in a row where no pause follows: a fence after each would slow the stores down. */
#define BURSTS_UNPACED 32
/* Pauses in s: a core then reads 0.1 GB/s, and about half of what it could. */
#define LONGEST 16e-6
#define SHORTEST 40e-9
/* Of the seconds of the program, those of a point; and at least so many. */
#define POINT_SHARE 0.05
#define POINT_SECONDS 0.03
/* Share of the time of a point before it is measured, for queues and caches to fill. */
#define SETTLING 0.2
/* Loads between two looks at the clock: 25 us and more. */
#define PORTION_HOPS 256
/* Area and pool are larger than the last-level caches by this factor. */
#define BEYOND_CACHE 4
#define LEAST_POOL (UINT64_C(256) << 20)
/* The target does not begin where the source does in a page, see target_offset in bench.c. */
#define APART (33 * LINE_BYTES)

static const int known_mixes[LOADED_MIXES] = {100, 75, 50};

/* The context of the team: the same for all threads. */
struct loaded {
    size_t area;    /* bytes through which the first thread follows pointers */
    size_t pool;    /* bytes that each loader reads; as many to which it copies */
    double seconds; /* of a point */
    int mixes[LOADED_MIXES], mix_count;
    int rates; /* of a mix, beside the idle point that comes first */
    bool huge_pages;
    uint64_t seed;
    const struct sweeper *sweeper;
    size_t huge_bytes;             /* of all threads */
    _Alignas(64) atomic_int phase; /* 2 p + 1: point p begins, 2 p + 2: it is measured */
};

struct loaded_worker {
    struct arena arena;
    struct chase chase; /* of the first thread; the rest of the others */
    unsigned char *source, *target;
    uint64_t *reads;           /* of each burst of the source */
    uint64_t *copies;          /* of each burst of the source to the target */
    uint64_t bursts;           /* in the source */
    uint64_t next;             /* burst */
    uint64_t turn;             /* of the mix */
    uint64_t sum;              /* of all words read, but not of those copied */
    double spin;               /* s of one turn of pause_for */
    struct loaded_span *spans; /* of each point */
};

static int point_count(const struct loaded *loaded) {
    return loaded->mix_count * (loaded->rates + 1);
}

double loaded_pause(int rate, int rates) {
    if (rate == rates) {
        return 0;
    }
    return rates > 2 ? LONGEST * pow(SHORTEST / LONGEST, (double)(rate - 1) / (rates - 2))
                     : LONGEST;
}

int loaded_parse_mixes(const char *text, int *mixes) {
    int count = 0;
    for (int i = 0; i < LOADED_MIXES; i++) {
        char known[8];
        size_t length = (size_t)snprintf(known, sizeof known, "%d", known_mixes[i]);
        if (strncmp(text, known, length) == 0 && (text[length] == ',' || text[length] == '\0')) {
            mixes[count++] = known_mixes[i];
            text += length + (text[length] == ',' && text[length + 1] != '\0');
        }
    }
    return *text == '\0' ? count : 0;
}

static uint64_t thread_bytes(const struct loaded *loaded, int index) {
    return index == 0 ? loaded->area : 2 * (uint64_t)loaded->pool + APART;
}

static void pause_for(uint64_t turns) {
    for (; turns > 0; turns--) {
        __asm__ volatile("" : "+r"(turns));
    }
}

/* The fastest of some rounds: another program may have interrupted the others. */
static double spin_seconds(void) {
    enum { ROUNDS = 20, TURNS = 100000 };
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = clock_now();
        pause_for(TURNS);
        uint64_t taken = clock_now() - start;
        least = taken < least ? taken : least;
    }
    return (double)(least > 0 ? least : 1) * 1e-9 / TURNS;
}

static void prepare_loader(struct loaded_worker *worker, const struct loaded *loaded,
                           struct random_state *random) {
    worker->bursts = loaded->pool / BURST;
    worker->source = worker->arena.base;
    worker->target = worker->source + loaded->pool + APART;
    random_fill(random, worker->source, loaded->pool);
    memset(worker->target, 0, loaded->pool);
    worker->reads = calloc(worker->bursts, sizeof *worker->reads);
    worker->copies = calloc(worker->bursts, sizeof *worker->copies);
    worker->spin = spin_seconds();
}

static void prepare(struct team_member *member) {
    const struct loaded *loaded = member->context;
    const size_t bytes = (size_t)thread_bytes(loaded, member->index);
    struct random_state random;
    struct loaded_worker *worker = calloc(1, sizeof *worker);
    member->state = worker;
    random_seed(&random, loaded->seed, (uint64_t)member->index);
    if (worker == NULL || !arena_create(&worker->arena, bytes, loaded->huge_pages)) {
        team_fail(member, "thread %d cannot have %zu bytes of memory: %s", member->index, bytes,
                  strerror(errno));
        return;
    }
    worker->spans = calloc((size_t)point_count(loaded), sizeof *worker->spans);
    if (member->index == 0) {
        chase_link(&worker->chase, worker->arena.base, bytes, LINE_BYTES, &random);
    } else {
        prepare_loader(worker, loaded, &random);
    }
    if (worker->spans == NULL || (member->index > 0 && (!worker->reads || !worker->copies))) {
        team_fail(member, "thread %d has no memory for its counters", member->index);
    }
}

static void look_at_pages(struct team *team) {
    static const struct arena *arenas[THREADS_MAX];
    struct loaded *loaded = team->members[0].context;
    for (int i = 0; i < team->threads; i++) {
        arenas[i] = &((const struct loaded_worker *)team->members[i].state)->arena;
    }
    loaded->huge_bytes = arena_huge_bytes(arenas, team->threads);
}

/* Reads or copies the next `count` bursts, and returns how many bytes that moved. */
static uint64_t move_bursts(struct loaded_worker *worker, const struct loaded *loaded, int reads,
                            uint64_t count) {
    const uint64_t rest = worker->bursts - worker->next;
    const struct sweep sweep = {.source = worker->source,
                                .target = worker->target,
                                .block = BURST,
                                .stride = BURST,
                                .first = worker->next,
                                .count = count < rest ? count : rest};
    /* A copy reads as much as it writes: each turn copies, or one of three, or none. */
    const bool copies = reads == 50 || (reads == 75 && worker->turn++ % 3 == 2);
    uint64_t *counters = (copies ? worker->copies : worker->reads) + worker->next;
    if (copies) {
        loaded->sweeper->copy_streaming(&sweep);
    } else {
        worker->sum += loaded->sweeper->read(&sweep);
    }
    for (uint64_t i = 0; i < sweep.count; i++) {
        counters[i]++;
    }
    worker->next = (worker->next + sweep.count) % worker->bursts;
    return (copies ? 2 : 1) * sweep.count * BURST;
}

static void begin_span(struct loaded_span *span) {
    span->cpu_ns = clock_thread_now();
    span->start_ns = clock_now();
}

static void end_span(struct loaded_span *span, uint64_t bytes) {
    span->stop_ns = clock_now();
    span->cpu_ns = clock_thread_now() - span->cpu_ns;
    span->bytes = bytes;
}

static int phase_of(const struct loaded *loaded) {
    return atomic_load_explicit(&loaded->phase, memory_order_acquire);
}

/* Loads as one point asks until the phase changes. */
static uint64_t load_phase(struct loaded_worker *worker, const struct loaded *loaded, int phase) {
    const int point = (phase - 1) / 2, place = point % (loaded->rates + 1);
    const int reads = loaded->mixes[point / (loaded->rates + 1)];
    const double seconds = place > 0 ? loaded_pause(place, loaded->rates) : 0;
    const uint64_t turns = (uint64_t)(seconds / worker->spin);
    const uint64_t count = seconds > 0 ? 1 : BURSTS_UNPACED;
    uint64_t bytes = 0;
    while (phase_of(loaded) == phase) {
        if (place > 0) {
            bytes += move_bursts(worker, loaded, reads, count);
        }
        pause_for(turns);
    }
    return bytes;
}

static void run_loader(struct team_member *member) {
    struct loaded *loaded = member->context;
    struct loaded_worker *worker = member->state;
    while (member->warming && !team_stopped(member)) {
        move_bursts(worker, loaded, loaded->mixes[0], 1);
    }
    const int last = 2 * point_count(loaded);
    int phase = phase_of(loaded);
    while (!member->warming && phase <= last) {
        struct loaded_span unused, *span = &unused;
        if (phase > 0 && phase % 2 == 0) {
            span = &worker->spans[phase / 2 - 1];
        }
        begin_span(span);
        end_span(span, phase > 0 ? load_phase(worker, loaded, phase) : 0);
        member->work += span->bytes;
        phase = phase_of(loaded);
    }
}

/* Follows pointers for a time and returns the number of bytes loaded, a line each. */
static uint64_t chase_for(struct loaded_worker *worker, double seconds) {
    const uint64_t before = worker->chase.hops, end = clock_now() + (uint64_t)(seconds * 1e9);
    do {
        chase_run(&worker->chase, PORTION_HOPS);
    } while (clock_now() < end);
    return (worker->chase.hops - before) * LINE_BYTES;
}

static void run_chase(struct team_member *member) {
    struct loaded *loaded = member->context;
    struct loaded_worker *worker = member->state;
    while (member->warming && !team_stopped(member)) {
        chase_run(&worker->chase, PORTION_HOPS);
    }
    for (int point = 0; !member->warming && point < point_count(loaded); point++) {
        struct loaded_span *span = &worker->spans[point];
        atomic_store_explicit(&loaded->phase, 2 * point + 1, memory_order_release);
        member->work += chase_for(worker, SETTLING * loaded->seconds);
        atomic_store_explicit(&loaded->phase, 2 * point + 2, memory_order_release);
        begin_span(span);
        end_span(span, chase_for(worker, (1 - SETTLING) * loaded->seconds));
        member->work += span->bytes;
    }
    if (!member->warming) {
        atomic_store_explicit(&loaded->phase, 2 * point_count(loaded) + 1, memory_order_release);
    }
}

static void run(struct team_member *member) {
    (member->index == 0 ? run_chase : run_loader)(member);
}

/* Whether every burst read gave what the source holds, and every burst copied lies in the target.
 */
static bool is_right(const struct loaded_worker *worker) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < worker->bursts; i++) {
        const unsigned char *source = worker->source + i * BURST;
        const unsigned char *target = worker->target + i * BURST;
        uint64_t written = 0, word;
        for (size_t at = 0; at < BURST; at += sizeof word) {
            memcpy(&word, target + at, sizeof word);
            written |= word;
        }
        sum += worker->reads[i] * sweep_sum(source, BURST);
        if (worker->copies[i] > 0 ? memcmp(source, target, BURST) != 0 : written != 0) {
            return false;
        }
    }
    return sum == worker->sum;
}

static void finish(struct team_member *member) {
    struct loaded_worker *worker = member->state;
    if (worker == NULL) {
        return;
    }
    if (!team_failed(member) && member->index == 0 && chase_verify(&worker->chase) != NULL) {
        team_wrong(member, "thread 0 on CPU %d: %s: the latency is not reported", member->cpu,
                   chase_verify(&worker->chase));
    } else if (!team_failed(member) && member->index > 0 && !is_right(worker)) {
        team_wrong(member,
                   "thread %d on CPU %d did not read or copy what the memory holds: nothing is "
                   "reported",
                   member->index, member->cpu);
    }
    free(worker->reads);
    free(worker->copies);
    arena_destroy(&worker->arena);
}

double loaded_overlap(const struct loaded_span *spans, int count) {
    const double chased = (double)(spans[0].stop_ns - spans[0].start_ns);
    uint64_t start = 0, stop = UINT64_MAX;
    double lost = 0;
    for (int i = 0; i < count; i++) {
        const struct loaded_span *span = &spans[i];
        const uint64_t taken = span->stop_ns - span->start_ns;
        start = span->start_ns > start ? span->start_ns : start;
        stop = span->stop_ns < stop ? span->stop_ns : stop;
        lost += taken > span->cpu_ns ? (double)(taken - span->cpu_ns) : 0;
    }
    const double common = stop > start ? (double)(stop - start) : 0;
    return common > lost ? (common - lost) / chased : 0;
}

static double rate_of(const struct loaded_span *span) {
    const uint64_t taken = span->stop_ns - span->start_ns;
    return taken > 0 ? (double)span->bytes * 1e9 / (double)taken : 0;
}

/* Fills [B/s, s, overlap, s of pause] of a point. */
static void collect(const struct team *team, int index, double *point) {
    const struct loaded *loaded = team->members[0].context;
    const int rate = index % (loaded->rates + 1);
    static struct loaded_span spans[THREADS_MAX];
    point[0] = 0;
    for (int i = 0; i < team->threads; i++) {
        const struct loaded_worker *worker = team->members[i].state;
        spans[i] = worker->spans[index];
        point[0] += rate_of(&spans[i]);
    }
    point[1] = LINE_BYTES / rate_of(&spans[0]);
    point[2] = loaded_overlap(spans, team->threads);
    point[3] = rate > 0 ? loaded_pause(rate, loaded->rates) : loaded->seconds;
}

static void print_result(const struct loaded *loaded, const struct team *team,
                         const struct warnings *warnings) {
    const int count = point_count(loaded), each = loaded->rates + 1;
    struct json json;
    double(*points)[4] = calloc((size_t)count, sizeof *points);
    if (points == NULL) {
        fail_measurement("no memory for %d points", count);
    }
    for (int i = 0; i < count; i++) {
        collect(team, i, points[i]);
    }
    struct report report = {.instrument = "rambench",
                            .workload = "LOADED",
                            .value = points[loaded->rates][1],
                            .unit = "s",
                            .work_unit = "B",
                            .isa = isa_name(loaded->sweeper->isa),
                            .team = team,
                            .warnings = warnings};
    report_begin(&json, &report);
    report_clock(&json, team);
    json_unsigned(&json, "area", loaded->area);
    json_unsigned(&json, "working_set_bytes", (uint64_t)(team->threads - 1) * loaded->pool);
    json_unsigned(&json, "huge_pages", loaded->huge_bytes);
    json_string(&json, "huge_page_policy", arena_huge_policy());
    json_string(&json, "store", "streaming");
    json_string(&json, "instruction", loaded->sweeper->instruction);
    json_begin_array(&json, "rows");
    for (int mix = 0; mix < loaded->mix_count; mix++) {
        char variant[8];
        snprintf(variant, sizeof variant, "r%d", loaded->mixes[mix]);
        report_row_begin(&json, variant, points[mix * each + loaded->rates][1]);
        report_points(&json, points[mix * each], each, 4);
        json_end_object(&json);
    }
    json_end_array(&json);
    report_end(&json, &report);
    free(points);
}

/* The pool of all loaders beyond the caches that they reach, and the area beyond that of the chase,
 * but no larger than the pool. */
static void choose_sizes(struct loaded *loaded, const struct cpu_list *cpus, const char *wanted) {
    static struct cpu_list first = {.count = 1};
    first.cpu[0] = cpus->cpu[0];
    const uint64_t loaders = (uint64_t)(cpus->count - 1);
    const uint64_t area = BEYOND_CACHE * cache_last_level(SYSTEM_CPU, &first);
    uint64_t pool = BEYOND_CACHE * cache_last_level(SYSTEM_CPU, cpus);
    pool = pool > LEAST_POOL ? pool : LEAST_POOL;
    if (wanted != NULL && (!parse_size(wanted, &pool) || pool / loaders < BURST)) {
        fail_usage("--pool: '%s' is not a size of %zu bytes or more for each loader", wanted,
                   BURST);
    }
    loaded->pool = (size_t)(pool / loaders / BURST * BURST);
    loaded->area = (size_t)((area > 0 && area < pool ? area : pool) / BURST * BURST);
    memory_need(thread_bytes(loaded, 0) + loaders * thread_bytes(loaded, 1), "--pool or --threads");
}

void loaded_measure(const struct arguments *arguments, const struct cpu_list *cpus,
                    struct warnings *warnings) {
    static struct loaded loaded;
    const double share = POINT_SHARE * arguments->common.seconds;
    if (cpus->count < 2) {
        fail_impossible("LOADED needs two threads: one measures the latency, the others are the "
                        "load");
    }
    loaded.mix_count = loaded_parse_mixes(arguments->reads, loaded.mixes);
    if (loaded.mix_count == 0) {
        fail_usage("--reads: '%s' is not 100,75,50 or a part of it", arguments->reads);
    }
    loaded.sweeper = sweeper_find(isa_from_name(arguments->isa));
    if (loaded.sweeper == NULL || loaded.sweeper->copy_streaming == NULL) {
        fail_impossible("this CPU has no streaming stores with --isa %s, which LOADED copies with",
                        arguments->isa);
    }
    loaded.rates = arguments->rates;
    loaded.seconds = share > POINT_SECONDS ? share : POINT_SECONDS;
    loaded.huge_pages = strcmp(arguments->huge_pages, "on") == 0;
    loaded.seed = arguments->common.seed;
    choose_sizes(&loaded, cpus, arguments->pool);
    const struct team_plan plan = {.warmup = arguments->common.warmup,
                                   .work = (uint64_t)cpus->count, /* all go through all points */
                                   .clock_rate = true};
    const struct team_job job = {
        .prepare = prepare, .prepared = look_at_pages, .run = run, .finish = finish};
    struct team team;
    if (!team_run(&team, cpus, &plan, &job, &loaded)) {
        report_failure(&team);
    }
    print_result(&loaded, &team, warnings);
    for (int i = 0; i < team.threads; i++) {
        free(((struct loaded_worker *)team.members[i].state)->spans);
        free(team.members[i].state);
    }
    team_free(&team);
}
