#include "memory/c2c.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/handover.h"
#include "common/random.h"
#include "common/sort.h"
#include "common/status.h"
#include "common/team.h"
#include "memory/rambench.h"

#define SAMPLES 300 /* medians of fewer spread by more than a nanosecond */
#define WARM_UP 30  /* samples that do not count */
#define SAMPLES_LEAST 30
#define PATIENCE_NS                                                                                \
    UINT64_C(500000000) /* for all samples of a pair; then those that there are do */

/* The context of the team. Members wait asleep until the pair is measured that they belong to. */
struct c2c {
    struct handover line;
    struct c2c_pair *pairs;
    int count, turn; /* the pair that is measured */
    pthread_mutex_t mutex;
    pthread_cond_t *woken; /* of each member */
};

static int pairs_at(const struct cpu_location *locations, int count, enum distance distance) {
    int pairs = 0;
    for (int i = 0; i < count; i++) {
        for (int j = i + 1; j < count; j++) {
            pairs += topology_distance(&locations[i], &locations[j]) == distance;
        }
    }
    return pairs;
}

int c2c_choose(const struct cpu_location *locations, int count, bool all, struct c2c_pair **pairs) {
    uint64_t left[DISTANCES], wanted[DISTANCES], total = 0;
    struct random_state random;
    random_seed(&random, 1, 0);
    for (int distance = 0; distance < DISTANCES; distance++) {
        left[distance] = (uint64_t)pairs_at(locations, count, distance);
        bool sampled = !all && count > C2C_ALL_CPUS && left[distance] > C2C_SAMPLE;
        wanted[distance] = sampled ? C2C_SAMPLE : left[distance];
        total += wanted[distance];
    }
    *pairs = calloc(total + 1, sizeof **pairs);
    int chosen = 0;
    for (int i = 0; i < count && *pairs != NULL; i++) {
        for (int j = i + 1; j < count; j++) {
            enum distance distance = topology_distance(&locations[i], &locations[j]);
            /* Each of the pairs that are left is as likely as any other (Knuth's algorithm S). */
            if (random_below(&random, left[distance]--) < wanted[distance]) {
                wanted[distance]--;
                (*pairs)[chosen++] =
                    (struct c2c_pair){.first = i, .second = j, .distance = distance};
            }
        }
    }
    return chosen;
}

/* Whether a pair has enough samples: all, or after a while, on CPUs that others use too, some. */
static bool is_enough(int samples, uint64_t began) {
    return samples == SAMPLES || (samples >= SAMPLES_LEAST && clock_now() - began > PATIENCE_NS);
}

static void measure_pair(struct c2c *c2c, struct c2c_pair *pair) {
    double samples[SAMPLES];
    uint64_t began = clock_now();
    unsigned mine = 0;
    for (int i = -WARM_UP; i < 0 || !is_enough(i, began); i++) {
        double seconds = handover_sample(&c2c->line, &mine);
        pair->samples = i < 0 ? 0 : i + 1;
        samples[i < 0 ? 0 : i] = seconds;
    }
    handover_end(&c2c->line, mine);
    pair->seconds = sort_median(samples, (size_t)pair->samples);
}

static void wait_for_turn(struct c2c *c2c, const struct team_member *member, int turn) {
    pthread_mutex_lock(&c2c->mutex);
    while (c2c->turn < turn) {
        pthread_cond_wait(&c2c->woken[member->index], &c2c->mutex);
    }
    pthread_mutex_unlock(&c2c->mutex);
}

/* The line is free, and the next two wake. */
static void end_turn(struct c2c *c2c) {
    pthread_mutex_lock(&c2c->mutex);
    c2c->turn++;
    if (c2c->turn < c2c->count) {
        pthread_cond_signal(&c2c->woken[c2c->pairs[c2c->turn].first]);
        pthread_cond_signal(&c2c->woken[c2c->pairs[c2c->turn].second]);
    }
    pthread_mutex_unlock(&c2c->mutex);
}

static void run_pairs(struct team_member *member) {
    struct c2c *c2c = member->context;
    member->work = 0;
    while (member->warming && !team_stopped(member)) {
    }
    for (int turn = 0; turn < c2c->count && !member->warming; turn++) {
        struct c2c_pair *pair = &c2c->pairs[turn];
        if (pair->first == member->index) {
            wait_for_turn(c2c, member, turn);
            measure_pair(c2c, pair);
            member->work += (uint64_t)pair->samples * HANDOVER_ROUND_TRIPS;
            end_turn(c2c);
        } else if (pair->second == member->index) {
            wait_for_turn(c2c, member, turn);
            handover_answer(&c2c->line);
        }
    }
}

/* The median of the pairs that lie so far apart, and their points; returns how many there are. */
static int collect(const struct c2c *c2c, const struct cpu_location *locations,
                   enum distance distance, double (*points)[3], double *median) {
    int count = 0;
    double *times = malloc(((size_t)c2c->count + 1) * sizeof *times);
    for (int i = 0; times != NULL && i < c2c->count; i++) {
        const struct c2c_pair *pair = &c2c->pairs[i];
        if (pair->distance == distance) {
            points[count][0] = locations[pair->first].cpu;
            points[count][1] = locations[pair->second].cpu;
            points[count][2] = times[count] = pair->seconds;
            count++;
        }
    }
    if (count > 0) {
        *median = sort_median(times, (size_t)count);
    }
    free(times);
    return count;
}

static int fewest_samples(const struct c2c *c2c) {
    int fewest = SAMPLES;
    for (int i = 0; i < c2c->count; i++) {
        fewest = c2c->pairs[i].samples < fewest ? c2c->pairs[i].samples : fewest;
    }
    return fewest;
}

static void print_result(const struct c2c *c2c, const struct team *team,
                         const struct cpu_location *locations, const struct warnings *warnings) {
    struct json json;
    double(*points[DISTANCES])[3], median[DISTANCES], headline = 0;
    int count[DISTANCES];
    for (int distance = DISTANCES - 1; distance >= 0; distance--) {
        points[distance] = calloc((size_t)c2c->count, sizeof **points);
        if (points[distance] == NULL) {
            fail_measurement("no memory for %d pairs", c2c->count);
        }
        count[distance] = collect(c2c, locations, distance, points[distance], &median[distance]);
        /* Two threads of one core share its first cache: the nearest other core says more. */
        if (count[distance] > 0 && (distance != DISTANCE_CORE || headline == 0)) {
            headline = median[distance];
        }
    }
    struct report report = {.instrument = "rambench",
                            .workload = "C2C",
                            .value = headline,
                            .unit = "s",
                            .work_unit = "hand-over",
                            .team = team,
                            .warnings = warnings};
    report_begin(&json, &report);
    json_integer(&json, "samples", fewest_samples(c2c));
    json_string(&json, "instruction", "compare and swap");
    json_begin_array(&json, "order");
    for (int i = 0; i < team->threads; i++) {
        json_integer(&json, NULL, locations[i].cpu);
    }
    json_end_array(&json);
    json_begin_array(&json, "rows");
    for (int distance = 0; distance < DISTANCES; distance++) {
        if (count[distance] > 0) {
            report_row_begin(&json, distance_names[distance], median[distance]);
            report_points(&json, &points[distance][0][0], count[distance], 3);
            json_end_object(&json);
        }
        free(points[distance]);
    }
    json_end_array(&json);
    report_end(&json, &report);
}

void c2c_measure(const struct arguments *arguments, const struct cpu_list *cpus,
                 struct warnings *warnings) {
    struct c2c c2c = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct cpu_list ordered = {.count = cpus->count};
    struct cpu_location *locations = calloc((size_t)cpus->count, sizeof *locations);
    c2c.woken = calloc((size_t)cpus->count, sizeof *c2c.woken);
    if (locations == NULL || c2c.woken == NULL) {
        fail_measurement("no memory for %d threads", cpus->count);
    }
    topology_locate(SYSTEM_CPU, cpus, locations);
    for (int i = 0; i < cpus->count; i++) {
        if (i > 0 && locations[i].cpu == locations[i - 1].cpu) {
            fail_usage("--threads: %d threads on fewer CPUs: C2C takes one CPU for each thread",
                       cpus->count);
        }
        ordered.cpu[i] = locations[i].cpu;
        pthread_cond_init(&c2c.woken[i], NULL);
    }
    bool all = strcmp(arguments->pairs, "all") == 0;
    c2c.count = c2c_choose(locations, cpus->count, all, &c2c.pairs);
    if (c2c.count == 0) {
        fail_impossible("C2C hands a cache line from core to core: it needs two CPUs");
    }
    const struct team_plan plan = {.warmup = arguments->common.warmup,
                                   .work = (uint64_t)cpus->count}; /* all members have a part */
    const struct team_job job = {.run = run_pairs};
    struct team team;
    if (!team_run(&team, &ordered, &plan, &job, &c2c)) {
        report_failure(&team);
    }
    if (fewest_samples(&c2c) < SAMPLES) {
        warnings_add(warnings, "two CPUs seldom ran at the same time: a pair has %d samples of %d",
                     fewest_samples(&c2c), SAMPLES);
    }
    print_result(&c2c, &team, locations, warnings);
    team_free(&team);
    for (int i = 0; i < cpus->count; i++) {
        pthread_cond_destroy(&c2c.woken[i]);
    }
    free(c2c.woken);
    free(c2c.pairs);
    free(locations);
}
