#include "memory/ladder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/clock.h"
#include "common/random.h"
#include "common/sort.h"
#include "common/status.h"
#include "common/topology.h"
#include "memory/chase.h"
#include "memory/rambench.h"

#define NAME_BYTES 24
/* The value of a point is the median of that many parts of its time, of fewer where each is a whole
 * pass over a large working set: an interrupt or another program spoils some. */
#define SLICES 64
#define SLICES_LEAST 3
/* Loads between two looks at the clock: 5 us in the first-level cache. */
#define PORTION_LOADS 4096
/* Bytes between two looks at the clock, or one pass: 10 us in the first-level cache. */
#define PORTION_BYTES (UINT64_C(1) << 20)
/* A lap warms the caches up; beyond them so many loads do, as nothing stays that the laying out has
 * not left. */
#define WARMING_LOADS (UINT64_C(4) << 20)
/* Working sets have so many binary digits, so that they are short as text, and whole KiB. */
#define ROUND_BITS 6
#define LEAST_UNIT ((size_t)1 << 10)
/* Working sets that lie clearly inside a level, by the size of a cache. */
#define AFTER_CACHE 2.0
#define INSIDE_CACHE 0.5
#define INSIDE_FIRST 0.75
#define BEYOND_LAST 2.5

int ladder_choose(struct ladder *ladder, const struct cache_levels *caches, int steps,
                  uint64_t most) {
    const double first = (double)caches->bytes[0] / 2;
    uint64_t last = LADDER_LAST_FACTOR * caches->bytes[caches->count - 1];
    last = last < most ? last : most;
    ladder->points = 0;
    for (int step = 0; ladder->points < LADDER_POINTS_MAX; step++) {
        double bytes = first * exp2((double)step / steps);
        size_t unit = (size_t)exp2(floor(log2(bytes)) - ROUND_BITS);
        unit = unit < LEAST_UNIT ? LEAST_UNIT : unit;
        size_t whole = (size_t)(bytes / (double)unit + 0.5) * unit;
        if (whole > last) {
            break;
        }
        ladder->point[ladder->points++].bytes = whole;
    }
    return ladder->points;
}

/* Whether a working set lies clearly inside level `level`, where `count` is the memory. */
static bool inside(const struct cache_levels *caches, int level, size_t bytes) {
    const double size = (double)bytes;
    if (level == caches->count) {
        return size >= BEYOND_LAST * (double)caches->bytes[level - 1];
    }
    if (level == 0) {
        return size <= INSIDE_FIRST * (double)caches->bytes[0];
    }
    return size >= AFTER_CACHE * (double)caches->bytes[level - 1] &&
           size <= INSIDE_CACHE * (double)caches->bytes[level];
}

int ladder_rows(const struct ladder *ladder, const struct cache_levels *caches,
                struct ladder_row rows[CACHE_LEVELS_MAX + 1]) {
    int count = 0, at = 0;
    for (int level = 0; level <= caches->count; level++) {
        int first = at, inner = -1;
        for (; at < ladder->points &&
               (level == caches->count || ladder->point[at].bytes <= caches->bytes[level]);
             at++) {
            /* Of a cache the smallest: a guest may have a part of it. Of memory the largest. */
            if (inside(caches, level, ladder->point[at].bytes) &&
                (inner < 0 || level == caches->count)) {
                inner = at;
            }
        }
        if (inner < 0) {
            if (count > 0) {
                rows[count - 1].end = at;
            }
            continue;
        }
        struct ladder_row *row = &rows[count++];
        *row = (struct ladder_row){.cache = level < caches->count ? caches->bytes[level] : 0,
                                   .first = count > 1 ? first : 0,
                                   .end = at,
                                   .block = ladder->point[inner].bytes,
                                   .value = ladder->point[inner].value};
        const char *pages = ladder->huge_pages ? "huge" : "small";
        if (level < caches->count) {
            snprintf(row->variant, sizeof row->variant, "l%d-%s", caches->level[level], pages);
        } else {
            snprintf(row->variant, sizeof row->variant, "dram-%s", pages);
        }
    }
    return count;
}

/* One point while it is measured: pointers to follow or words to read. */
struct walk {
    const struct ladder *ladder;
    struct chase chase;
    struct sweep sweep;
    uint64_t passes, sum; /* of the sweep */
};

/* Loads, or bytes read. */
static uint64_t walk_portion(struct walk *walk) {
    if (walk->ladder->chase) {
        chase_run(&walk->chase, PORTION_LOADS);
        return PORTION_LOADS;
    }
    walk->sum += walk->ladder->sweeper->read(&walk->sweep);
    walk->passes += walk->sweep.count;
    return walk->sweep.count * walk->sweep.block;
}

/* Lays out the working set and goes through it once. */
static void walk_begin(struct walk *walk, const struct ladder *ladder, unsigned char *area,
                       size_t bytes, struct random_state *random) {
    *walk = (struct walk){.ladder = ladder};
    if (ladder->chase) {
        chase_link(&walk->chase, area, bytes, LINE_BYTES, random);
        chase_run(&walk->chase,
                  walk->chase.nodes < WARMING_LOADS ? walk->chase.nodes : WARMING_LOADS);
        return;
    }
    uint64_t count = PORTION_BYTES / bytes;
    walk->sweep = (struct sweep){.source = area, .block = bytes, .count = count > 0 ? count : 1};
    (void)walk_portion(walk);
}

/* NULL, or what was wrong. */
static const char *walk_verify(const struct walk *walk) {
    if (walk->ladder->chase) {
        return chase_verify(&walk->chase);
    }
    return walk->sum == walk->passes * sweep_sum(walk->sweep.source, walk->sweep.block)
               ? NULL
               : "it did not read what the memory holds";
}

/* Measures for so many seconds; returns s a load, or B/s. */
static double walk_measure(struct walk *walk, double seconds, uint64_t *work) {
    const uint64_t length = (uint64_t)(seconds / SLICES * 1e9), end = clock_now() + SLICES * length;
    double slices[SLICES];
    int count = 0;
    uint64_t now = clock_now();
    while (count < SLICES && (now < end || count < SLICES_LEAST)) {
        const uint64_t begin = now;
        uint64_t done = 0;
        do {
            done += walk_portion(walk);
            now = clock_now();
        } while (now - begin < length);
        double took = (double)(now - begin) * 1e-9;
        slices[count++] = walk->ladder->chase ? took / (double)done : (double)done / took;
        *work += done;
    }
    return sort_median(slices, (size_t)count);
}

/* Memory for the largest working set; all others are its beginning, on the same pages. */
static void prepare(struct team_member *member) {
    struct ladder *ladder = member->context;
    static struct arena arena;
    struct random_state random;
    size_t bytes = ladder->point[ladder->points - 1].bytes;
    if (!arena_create(&arena, bytes, ladder->huge_pages)) {
        team_fail(member, "CPU %d cannot have %zu bytes of memory: %s", member->cpu, bytes,
                  strerror(errno));
        return;
    }
    member->state = &arena;
    random_seed(&random, ladder->seed, 0);
    random_fill(&random, arena.base, arena.bytes);
    ladder->huge_bytes = arena_huge_bytes(&(const struct arena *){&arena}, 1);
}

/* The smallest working set, until the core has its clock. */
static void warm_up(struct team_member *member, unsigned char *area, struct random_state *random) {
    struct ladder *ladder = member->context;
    struct walk walk;
    walk_begin(&walk, ladder, area, ladder->point[0].bytes, random);
    while (!team_stopped(member)) {
        (void)walk_portion(&walk);
    }
}

static void run(struct team_member *member) {
    struct ladder *ladder = member->context;
    unsigned char *area = ((struct arena *)member->state)->base;
    struct random_state random;
    uint32_t order[LADDER_POINTS_MAX];
    uint64_t work = 0;
    random_seed(&random, ladder->seed, 1);
    if (member->warming) {
        warm_up(member, area, &random);
        return;
    }
    random_permutation(&random, order, (uint32_t)ladder->points);
    for (int i = 0; i < ladder->points; i++) {
        struct ladder_point *point = &ladder->point[order[i]];
        struct walk walk;
        walk_begin(&walk, ladder, area, point->bytes, &random);
        point->value = walk_measure(&walk, ladder->seconds / ladder->points, &work);
        const char *wrong = walk_verify(&walk);
        if (wrong != NULL) {
            team_wrong(member, "CPU %d, %zu bytes: %s: the ladder is not reported", member->cpu,
                       point->bytes, wrong);
            return;
        }
    }
    member->work = work;
}

static void finish(struct team_member *member) {
    if (member->state != NULL) {
        arena_destroy(member->state);
    }
}

const struct team_job ladder_job = {.prepare = prepare, .run = run, .finish = finish};

/* The largest working set that the caches ask for and --pool and the memory allow. */
static uint64_t largest(const struct cache_levels *caches, const char *pool,
                        struct warnings *warnings) {
    char text[NAME_BYTES], wanted_text[NAME_BYTES], cache[NAME_BYTES];
    uint64_t last = caches->bytes[caches->count - 1], wanted = LADDER_LAST_FACTOR * last;
    uint64_t allowed = LADDER_MOST, available = memory_available() / 2;
    if (pool != NULL && !parse_size(pool, &allowed)) {
        fail_usage("--pool: '%s' is not a size such as 1GiB", pool);
    }
    if (available > 0 && available < allowed) {
        allowed = available / HUGE_PAGE * HUGE_PAGE;
    }
    if (wanted > allowed) {
        warnings_add(warnings,
                     "the ladder ends at %s instead of %s, %d times the last-level cache of %s: "
                     "the memory or --pool allows no more",
                     format_size(allowed, text, sizeof text),
                     format_size(wanted, wanted_text, sizeof wanted_text), LADDER_LAST_FACTOR,
                     format_size(last, cache, sizeof cache));
    }
    return wanted < allowed ? wanted : allowed;
}

static void check_pages(const struct ladder *ladder, struct warnings *warnings) {
    char huge[NAME_BYTES], all[NAME_BYTES];
    size_t bytes = ladder->point[ladder->points - 1].bytes;
    if (ladder->huge_pages && ladder->huge_bytes == 0) {
        fail_impossible("the kernel gives no huge pages (its policy is %s): allow them in "
                        "/sys/kernel/mm/transparent_hugepage/enabled, or measure small pages only",
                        arena_huge_policy());
    }
    if (ladder->huge_pages && ladder->huge_bytes < bytes) {
        warnings_add(warnings, "only %s of %s lie on huge pages",
                     format_size(ladder->huge_bytes, huge, sizeof huge),
                     format_size(bytes, all, sizeof all));
    }
}

static void print_row(struct json *json, const struct ladder *ladder,
                      const struct ladder_row *row) {
    double points[2 * LADDER_POINTS_MAX];
    int count = 0;
    for (int i = row->first; i < row->end; i++) {
        points[2 * count] = (double)ladder->point[i].bytes;
        points[2 * count++ + 1] = ladder->point[i].value;
    }
    report_row_begin(json, row->variant, row->value);
    json_unsigned(json, "block", row->block);
    json_unsigned(json, "cache", row->cache);
    report_points(json, points, count, 2);
    json_end_object(json);
}

static void print_result(const char *workload, const struct ladder *ladder,
                         const struct cache_levels *caches, const struct team *team,
                         const struct warnings *warnings) {
    struct ladder_row rows[CACHE_LEVELS_MAX + 1];
    struct json json;
    int count = ladder_rows(ladder, caches, rows);
    struct report report = {.instrument = "rambench",
                            .workload = workload,
                            .value = rows[count - 1].value,
                            .unit = ladder->chase ? "s" : "B/s",
                            .work_unit = ladder->chase ? "access" : "B",
                            .isa = ladder->chase ? NULL : isa_name(ladder->sweeper->isa),
                            .team = team,
                            .warnings = warnings};
    report_begin(&json, &report);
    report_clock(&json, team);
    json_unsigned(&json, "working_set_bytes", ladder->point[ladder->points - 1].bytes);
    json_unsigned(&json, "huge_pages", ladder->huge_bytes);
    json_string(&json, "huge_page_policy", arena_huge_policy());
    json_string(&json, "instruction",
                ladder->chase ? "dependent load" : ladder->sweeper->instruction);
    json_begin_array(&json, "rows");
    for (int i = 0; i < count; i++) {
        print_row(&json, ladder, &rows[i]);
    }
    json_end_array(&json);
    report_end(&json, &report);
}

void ladder_measure(const struct arguments *arguments, const struct cpu_list *cpus,
                    struct warnings *warnings) {
    static struct ladder ladder;
    struct cache_levels caches;
    struct team team;
    const struct common_options *common = &arguments->common;
    if (cpus->count != 1) {
        fail_usage("%s is for one thread: leave --threads out", arguments->workload);
    }
    ladder = (struct ladder){.chase = strcmp(arguments->workload, "LADDER-LAT") == 0,
                             .huge_pages = strcmp(arguments->huge_pages, "on") == 0,
                             .seconds = common->seconds,
                             .seed = common->seed,
                             .sweeper = sweeper_find(isa_from_name(arguments->isa))};
    if (ladder.sweeper == NULL) {
        fail_impossible("this CPU or its operating system does not run %s", arguments->isa);
    }
    cache_read(SYSTEM_CPU, cpus->cpu[0], &caches);
    if (caches.count == 0) {
        fail_impossible("the system does not tell the sizes of the caches of CPU %d, from which "
                        "the working sets follow",
                        cpus->cpu[0]);
    }
    uint64_t most = largest(&caches, arguments->pool, warnings);
    if (ladder_choose(&ladder, &caches, arguments->steps, most) == 0) {
        fail_impossible("not even half the first-level cache may be used: raise --pool");
    }
    const struct team_plan plan = {.warmup = common->warmup, .work = 1, .clock_rate = true};
    if (!team_run(&team, cpus, &plan, &ladder_job, &ladder)) {
        report_failure(&team);
    }
    check_pages(&ladder, warnings);
    print_result(arguments->workload, &ladder, &caches, &team, warnings);
    team_free(&team);
}
