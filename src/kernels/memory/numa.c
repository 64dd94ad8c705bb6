#include "memory/numa.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/isa.h"
#include "common/random.h"
#include "common/sort.h"
#include "common/status.h"
#include "memory/cache.h"
#include "memory/rambench.h"

/* A pair of nodes is measured for its part of the time of the program, and at least so long (s). */
#define LEAST_SECONDS 0.02
/* Share of the time of a pair before it is measured, for clocks to rise and queues to fill. */
#define SETTLING 0.2
/* Loads between two looks at the clock: 50 us and more. */
#define PORTION_HOPS 512
/* All areas together are larger than the last-level caches by this factor. */
#define BEYOND_CACHE 4
#define LEAST_POOL (UINT64_C(256) << 20)
#define PAGES_AT_ONCE 1024
#define BITS (8 * sizeof(unsigned long))
#define NAME_BYTES 24
/* Of linux/mempolicy.h, which not every C library brings. */
#define MPOL_BIND 2
#define MPOL_F_MEMS_ALLOWED 4

const char *const numa_places[NUMA_PLACES] = {"local", "same-socket", "other-socket"};

/* One thread's part in the matrix. */
struct numa_worker {
    int core; /* index of its node */
    int rank; /* among the threads of the node */
};

/* What the threads share. Those of a node sleep until it is their node's turn. */
struct numa_run {
    struct arena *areas;  /* of each memory */
    struct chase *chases; /* of each memory */
    struct numa_worker *workers;
    int *count;        /* of the threads that work for each node */
    atomic_int *ready; /* of the threads of each turn */
    pthread_mutex_t mutex;
    pthread_cond_t *woken; /* of each node */
    int turn, ended;       /* the pair that is measured; threads that have ended it */
};

/* The list of numbers in a file of the folder of the nodes; empty without one. */
static void read_list(const char *system, const char *name, char separator, struct cpu_list *list) {
    char path[512], text[8192] = "";
    snprintf(path, sizeof path, "%s/../node/%s", system, name);
    FILE *file = fopen(path, "re");
    list->count = 0;
    if (file != NULL && fgets(text, sizeof text, file) != NULL) {
        text[strcspn(text, "\n")] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
    for (char *at = text, *end; separator == ' ' && list->count < CPU_LIST_MAX; at = end) {
        long number = strtol(at, &end, 10);
        if (end == at) {
            return;
        }
        list->cpu[list->count++] = (int)number;
    }
    if (separator == ',' && !parse_cpu_list(text, list)) {
        list->count = 0;
    }
}

/* The socket of the CPUs of a node, else that of the nearest node with cores. */
static int socket_of(const char *system, int node, const struct numa_map *map) {
    static struct cpu_list cpus, online, distances;
    char name[NAME_BYTES];
    int socket = map->core_socket[0], least = INT32_MAX;
    snprintf(name, sizeof name, "node%d/cpulist", node);
    read_list(system, name, ',', &cpus);
    if (cpus.count > 0) {
        struct cpu_location location;
        cpus.count = 1;
        topology_locate(system, &cpus, &location);
        return location.socket;
    }
    snprintf(name, sizeof name, "node%d/distance", node);
    read_list(system, name, ' ', &distances);
    read_list(system, "online", ',', &online);
    for (int core = 0; core < map->cores; core++) {
        for (int i = 0; i < online.count && i < distances.count; i++) {
            if (online.cpu[i] == map->core[core] && distances.cpu[i] < least) {
                least = distances.cpu[i];
                socket = map->core_socket[core];
            }
        }
    }
    return socket;
}

void numa_read(const char *system, const struct cpu_location *locations, int count,
               const struct cpu_list *memories, struct numa_map *map) {
    map->cores = map->memories = 0;
    for (int i = 0; i < count; i++) {
        if (i == 0 || locations[i].node != locations[i - 1].node) {
            map->core[map->cores] = locations[i].node;
            map->core_socket[map->cores++] = locations[i].socket;
        }
    }
    for (int i = 0; i < memories->count && i < NUMA_NODES; i++) {
        map->memory[map->memories] = memories->cpu[i];
        map->memory_socket[map->memories++] = socket_of(system, memories->cpu[i], map);
    }
}

enum numa_place numa_place_of(const struct numa_map *map, int core, int memory) {
    return map->core[core] == map->memory[memory]                 ? NUMA_LOCAL
           : map->core_socket[core] == map->memory_socket[memory] ? NUMA_SAME_SOCKET
                                                                  : NUMA_OTHER_SOCKET;
}

/* The nodes whose memory this process may use; one where the kernel knows of none. */
static void read_memories(struct cpu_list *memories) {
    unsigned long mask[NUMA_NODES / BITS] = {0};
    memories->count = 0;
    mask[0] = 1;
    if (syscall(SYS_get_mempolicy, NULL, mask, NUMA_NODES, NULL, MPOL_F_MEMS_ALLOWED) != 0 &&
        errno != ENOSYS) {
        fail_impossible("the kernel does not tell which NUMA nodes have memory (get_mempolicy: "
                        "%s): a container needs CAP_SYS_NICE for it",
                        strerror(errno));
    }
    for (int node = 0; node < NUMA_NODES; node++) {
        if ((mask[(size_t)node / BITS] >> ((size_t)node % BITS) & 1) != 0) {
            memories->cpu[memories->count++] = node;
        }
    }
}

static bool bind(const struct arena *arena, int node) {
    unsigned long mask[NUMA_NODES / BITS] = {0};
    mask[(size_t)node / BITS] = 1UL << ((size_t)node % BITS);
    return syscall(SYS_mbind, arena->base, arena->bytes, MPOL_BIND, mask, NUMA_NODES + 1, 0) == 0;
}

long numa_elsewhere(const struct arena *arena, int node, int *where) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *pages[PAGES_AT_ONCE];
    int status[PAGES_AT_ONCE];
    long elsewhere = 0;
    for (size_t at = 0; at < arena->bytes;) {
        int count = 0;
        for (; count < PAGES_AT_ONCE && at < arena->bytes; at += page) {
            pages[count++] = arena->base + at;
        }
        if (syscall(SYS_move_pages, 0, count, pages, NULL, status, 0) != 0) {
            return -errno;
        }
        for (int i = 0; i < count; i++) {
            if (status[i] != node) {
                *where = status[i] < 0 ? -1 : status[i];
                elsewhere++;
            }
        }
    }
    return elsewhere;
}

/* Fails the team where pages do not lie on the node that they are bound to. */
static void check_places(struct team_member *member) {
    const struct numa *numa = member->context;
    for (int i = 0; i < numa->map.memories; i++) {
        int where = -1;
        long elsewhere = numa_elsewhere(&numa->run->areas[i], numa->map.memory[i], &where);
        if (elsewhere < 0) {
            team_fail(member, "the kernel does not tell where pages lie (move_pages: %s)",
                      strerror((int)-elsewhere));
        } else if (elsewhere > 0) {
            team_fail(member,
                      "%ld pages that were bound to NUMA node %d lie elsewhere (node %d): free "
                      "memory on that node, or make --pool smaller",
                      elsewhere, numa->map.memory[i], where);
        }
    }
}

/* Each area is touched by all threads, or linked to a chain by one of them. */
static void prepare(struct team_member *member) {
    struct numa *numa = member->context;
    const int threads = member->team->threads;
    struct random_state random;
    random_seed(&random, numa->seed, (uint64_t)member->index);
    for (int i = 0; i < numa->map.memories; i++) {
        struct arena *area = &numa->run->areas[i];
        if (numa->sweep == NULL) {
            if (i % threads == member->index) {
                chase_link(&numa->run->chases[i], area->base, numa->bytes, LINE_BYTES, &random);
            }
            continue;
        }
        size_t from = area->bytes / NUMA_CHUNK * (size_t)member->index / (size_t)threads;
        size_t to = area->bytes / NUMA_CHUNK * (size_t)(member->index + 1) / (size_t)threads;
        random_fill(&random, area->base + from * NUMA_CHUNK, (to - from) * NUMA_CHUNK);
    }
}

static void ready(struct team_member *member) {
    struct numa *numa = member->context;
    if (member->index == 0) {
        static const struct arena *areas[NUMA_NODES];
        check_places(member);
        for (int i = 0; i < numa->map.memories; i++) {
            areas[i] = &numa->run->areas[i];
        }
        numa->huge_bytes = arena_huge_bytes(areas, numa->map.memories);
    }
}

static void finish(struct team_member *member) {
    if (member->index == 0 && !team_failed(member)) {
        check_places(member);
    }
}

static bool holds_only(const unsigned char *chunk, uint64_t value) {
    return memcmp(chunk, &value, sizeof value) == 0 &&
           memcmp(chunk, chunk + sizeof value, NUMA_CHUNK - sizeof value) == 0;
}

/* Whether `visits` visits to `chunks` chunks left what they wrote, visit i the value + i, or read
 * what the memory holds. */
static bool is_right(const struct sweep *sweep, uint64_t chunks, uint64_t visits, uint64_t value,
                     bool writes, uint64_t sum) {
    uint64_t expected = 0;
    for (uint64_t i = 0; i < chunks && i < visits; i++) {
        const unsigned char *chunk = sweep->source + i * NUMA_CHUNK;
        const uint64_t laps = (visits - 1 - i) / chunks;
        if (writes && !holds_only(chunk, value + i + laps * chunks)) {
            return false;
        }
        expected += (laps + 1) * sweep_sum(chunk, NUMA_CHUNK);
    }
    return writes || sum == expected;
}

/* B/s at which a thread reads or writes its part of an area. */
static double measure_sweep(struct team_member *member, const struct numa *numa, int turn) {
    const struct numa_run *run = numa->run;
    const struct numa_worker *worker = &run->workers[member->index];
    const uint64_t chunks = numa->bytes / NUMA_CHUNK / (uint64_t)run->count[worker->core];
    const uint64_t value = numa->seed + ((uint64_t)(turn + 1) << 32);
    unsigned char *part = run->areas[turn % numa->map.memories].base +
                          (size_t)worker->rank * (size_t)chunks * NUMA_CHUNK;
    struct sweep sweep = {
        .source = part, .target = part, .block = NUMA_CHUNK, .stride = NUMA_CHUNK, .count = 1};
    const uint64_t start = clock_now(),
                   settled = start + (uint64_t)(SETTLING * numa->seconds * 1e9);
    const uint64_t end = start + (uint64_t)(numa->seconds * 1e9);
    uint64_t visits = 0, sum = 0, before = 0, began = 0, now;
    do {
        sweep.first = visits % chunks;
        sweep.value = value + visits;
        sum += numa->sweep(&sweep);
        visits++;
        now = clock_now();
        if (began == 0 && now >= settled) {
            began = now;
            before = visits;
        }
    } while (now < end || before == 0 || visits == before);
    member->work += visits * NUMA_CHUNK;
    if (!is_right(&sweep, chunks, visits, value, numa->writes, sum)) {
        team_wrong(member,
                   "thread %d on CPU %d %s the memory of NUMA node %d wrongly: nothing is reported",
                   member->index, member->cpu, numa->writes ? "wrote" : "read",
                   numa->map.memory[turn % numa->map.memories]);
    }
    return (double)((visits - before) * NUMA_CHUNK) * 1e9 / (double)(now - began);
}

/* Seconds of a load. Each pair goes on in the chain where the one before has stopped: no cache
 * holds what comes. */
static double measure_chase(struct team_member *member, const struct numa *numa, int turn) {
    struct chase *chase = &numa->run->chases[turn % numa->map.memories];
    const uint64_t start = clock_now(),
                   settled = start + (uint64_t)(SETTLING * numa->seconds * 1e9);
    const uint64_t end = start + (uint64_t)(numa->seconds * 1e9), at = chase->hops;
    uint64_t before = 0, began = 0, now;
    do {
        chase_run(chase, PORTION_HOPS);
        now = clock_now();
        if (began == 0 && now >= settled) {
            began = now;
            before = chase->hops;
        }
    } while (now < end || began == 0 || chase->hops == before);
    member->work += chase->hops - at;
    const char *wrong = chase_verify(chase);
    if (wrong != NULL) {
        team_wrong(member, "thread %d on CPU %d, memory of NUMA node %d: %s: nothing is reported",
                   member->index, member->cpu, numa->map.memory[turn % numa->map.memories], wrong);
    }
    return (double)(now - began) * 1e-9 / (double)(chase->hops - before);
}

static void wait_for_turn(struct numa_run *run, int core, int turn) {
    pthread_mutex_lock(&run->mutex);
    while (run->turn < turn) {
        pthread_cond_wait(&run->woken[core], &run->mutex);
    }
    pthread_mutex_unlock(&run->mutex);
    atomic_fetch_add(&run->ready[turn], 1);
    while (atomic_load(&run->ready[turn]) < run->count[core]) {
    }
}

/* The last thread of a node that ends wakes those of the next pair. */
static void end_turn(struct numa *numa, int core, double value) {
    struct numa_run *run = numa->run;
    pthread_mutex_lock(&run->mutex);
    numa->values[run->turn] += value;
    if (++run->ended == run->count[core]) {
        run->ended = 0;
        run->turn++;
        if (run->turn < numa->map.cores * numa->map.memories) {
            pthread_cond_broadcast(&run->woken[run->turn / numa->map.memories]);
        }
    }
    pthread_mutex_unlock(&run->mutex);
}

static void run_pairs(struct team_member *member) {
    struct numa *numa = member->context;
    const struct numa_worker *worker = &numa->run->workers[member->index];
    while (member->warming && !team_stopped(member)) {
    }
    if (member->warming || worker->rank >= numa->run->count[worker->core]) {
        return;
    }
    for (int i = 0; i < numa->map.memories; i++) {
        const int turn = worker->core * numa->map.memories + i;
        double value = 0;
        wait_for_turn(numa->run, worker->core, turn);
        if (!team_failed(member)) {
            value = (numa->sweep != NULL ? measure_sweep : measure_chase)(member, numa, turn);
        }
        end_turn(numa, worker->core, value);
    }
}

/* Which node each thread is of, and how many of a node work. */
static void assign(struct numa *numa, const struct cpu_location *locations, int count) {
    struct numa_run *run = numa->run;
    for (int i = 0; i < count; i++) {
        int core = 0, rank = 0;
        while (numa->map.core[core] != locations[i].node) {
            core++;
        }
        for (int j = 0; j < i; j++) {
            rank += run->workers[j].core == core;
        }
        run->workers[i] = (struct numa_worker){.core = core, .rank = rank};
        run->count[core] += numa->sweep != NULL || rank == 0;
    }
}

/* Maps the areas and binds them: nothing is touched. */
static void bind_areas(struct numa *numa) {
    for (int i = 0; i < numa->map.memories; i++) {
        struct arena *area = &numa->run->areas[i];
        int where;
        if (!arena_create(area, numa->bytes, numa->huge_pages)) {
            fail_measurement("no memory of %zu bytes: %s", numa->bytes, strerror(errno));
        }
        if (!bind(area, numa->map.memory[i])) {
            fail_impossible("memory cannot be bound to NUMA node %d (mbind: %s): a container needs "
                            "CAP_SYS_NICE for it",
                            numa->map.memory[i], strerror(errno));
        }
        long elsewhere = i == 0 ? numa_elsewhere(area, numa->map.memory[i], &where) : 0;
        if (elsewhere < 0) {
            fail_impossible("the kernel does not tell where pages lie (move_pages: %s): a "
                            "container needs CAP_SYS_NICE for it",
                            strerror((int)-elsewhere));
        }
    }
}

bool numa_run(struct numa *numa, const struct cpu_location *locations, int count, double warmup,
              struct team *team) {
    static struct cpu_list ordered;
    static const struct team_job job = {
        .prepare = prepare, .run = run_pairs, .ready = ready, .finish = finish};
    const size_t cores = (size_t)numa->map.cores, memories = (size_t)numa->map.memories;
    struct numa_run run = {.areas = calloc(memories, sizeof *run.areas),
                           .chases = calloc(memories, sizeof *run.chases),
                           .workers = calloc((size_t)count, sizeof *run.workers),
                           .count = calloc(cores, sizeof *run.count),
                           .ready = calloc(cores * memories, sizeof *run.ready),
                           .mutex = PTHREAD_MUTEX_INITIALIZER,
                           .woken = calloc(cores, sizeof *run.woken)};
    numa->values = calloc(cores * memories, sizeof *numa->values);
    if (!run.areas || !run.chases || !run.workers || !run.count || !run.ready || !run.woken ||
        !numa->values) {
        fail_measurement("no memory for %zu NUMA nodes", cores);
    }
    numa->run = &run;
    assign(numa, locations, count);
    bind_areas(numa);
    ordered.count = count;
    for (int i = 0; i < count; i++) {
        ordered.cpu[i] = locations[i].cpu;
    }
    for (size_t i = 0; i < cores; i++) {
        pthread_cond_init(&run.woken[i], NULL);
    }
    const struct team_plan plan = {.warmup = warmup,
                                   .work = (uint64_t)count}; /* all members have a part */
    bool good = team_run(team, &ordered, &plan, &job, numa);
    for (size_t i = 0; i < cores; i++) {
        pthread_cond_destroy(&run.woken[i]);
    }
    for (size_t i = 0; i < memories; i++) {
        arena_destroy(&run.areas[i]);
    }
    free(run.areas);
    free(run.chases);
    free(run.workers);
    free(run.count);
    free(run.ready);
    free(run.woken);
    numa->run = NULL;
    return good;
}

/* The points of one place, and their median; returns how many there are. */
static int collect(const struct numa *numa, enum numa_place place, double (*points)[3],
                   double *median) {
    const struct numa_map *map = &numa->map;
    int count = 0;
    double *values = malloc((size_t)map->cores * (size_t)map->memories * sizeof *values);
    for (int turn = 0; values != NULL && turn < map->cores * map->memories; turn++) {
        const int core = turn / map->memories, memory = turn % map->memories;
        if (numa_place_of(map, core, memory) == place) {
            points[count][0] = map->core[core];
            points[count][1] = map->memory[memory];
            points[count][2] = values[count] = numa->values[turn];
            count++;
        }
    }
    if (count > 0) {
        *median = sort_median(values, (size_t)count);
    }
    free(values);
    return count;
}

static void print_result(const struct arguments *arguments, const struct numa *numa,
                         const struct sweeper *sweeper, const struct team *team,
                         const struct warnings *warnings) {
    struct json json;
    double(*points[NUMA_PLACES])[3], median[NUMA_PLACES], headline = 0;
    int count[NUMA_PLACES];
    for (int place = NUMA_PLACES - 1; place >= 0; place--) {
        points[place] =
            calloc((size_t)numa->map.cores * (size_t)numa->map.memories, sizeof **points);
        if (points[place] == NULL) {
            fail_measurement("no memory for %d NUMA nodes", numa->map.cores);
        }
        count[place] = collect(numa, place, points[place], &median[place]);
        headline = count[place] > 0 ? median[place] : headline;
    }
    const bool chase = numa->sweep == NULL, streaming = numa->sweep == sweeper->write_streaming;
    struct report report = {.instrument = "rambench",
                            .workload = arguments->workload,
                            .value = headline,
                            .unit = chase ? "s" : "B/s",
                            .work_unit = chase ? "access" : "B",
                            .isa = chase ? NULL : isa_name(sweeper->isa),
                            .team = team,
                            .warnings = warnings};
    report_begin(&json, &report);
    json_unsigned(&json, "working_set_bytes", numa->bytes * (uint64_t)numa->map.memories);
    json_unsigned(&json, "huge_pages", numa->huge_bytes);
    json_string(&json, "huge_page_policy", arena_huge_policy());
    json_string(&json, "store", !numa->writes ? NULL : streaming ? "streaming" : "temporal");
    json_string(&json, "instruction", chase ? "dependent load" : sweeper->instruction);
    json_begin_array(&json, "rows");
    for (int place = 0; place < NUMA_PLACES; place++) {
        if (count[place] > 0) {
            report_row_begin(&json, numa_places[place], median[place]);
            report_points(&json, &points[place][0][0], count[place], 3);
            json_end_object(&json);
        }
        free(points[place]);
    }
    json_end_array(&json);
    report_end(&json, &report);
}

/* Bytes that a node can give: free ones, and those of files that nobody has used lately. */
static uint64_t node_available(const char *system, int node) {
    char path[512], line[256], name[32];
    uint64_t kib, bytes = 0;
    snprintf(path, sizeof path, "%s/../node/node%d/meminfo", system, node);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Node %*d %31s %" SCNu64 " kB", name, &kib) == 2 &&
            (strcmp(name, "MemFree:") == 0 || strcmp(name, "Inactive(file):") == 0)) {
            bytes += kib << 10;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

/* The areas are beyond the caches together, and none takes more than half of what its node has. */
static void choose_size(struct numa *numa, const struct cpu_list *cpus, const char *wanted,
                        int threads, struct warnings *warnings) {
    const size_t memories = (size_t)numa->map.memories;
    const uint64_t least = HUGE_PAGE + NUMA_CHUNK * (uint64_t)threads;
    uint64_t pool = BEYOND_CACHE * cache_last_level(SYSTEM_CPU, cpus);
    char text[NAME_BYTES], smaller[NAME_BYTES];
    pool = pool > LEAST_POOL ? pool : LEAST_POOL;
    if (wanted != NULL && (!parse_size(wanted, &pool) || pool / memories < least)) {
        fail_usage("--pool: '%s' is not a size of %" PRIu64 " bytes or more for each NUMA node",
                   wanted, least);
    }
    uint64_t bytes = pool / memories;
    int poorest = -1;
    for (size_t i = 0; i < memories; i++) {
        const uint64_t room = node_available(SYSTEM_CPU, numa->map.memory[i]) / 2;
        if (room < bytes) {
            bytes = room / HUGE_PAGE * HUGE_PAGE;
            poorest = numa->map.memory[i];
        }
    }
    if (bytes < least) {
        fail_measurement("NUMA node %d has too little free memory: free some of it", poorest);
    }
    if (poorest >= 0) {
        warnings_add(warnings, "each NUMA node gets %s instead of %s: node %d has no more",
                     format_size(bytes, smaller, sizeof smaller),
                     format_size(pool / memories, text, sizeof text), poorest);
    }
    numa->bytes = (size_t)(bytes / HUGE_PAGE * HUGE_PAGE);
}

void numa_measure(const struct arguments *arguments, const struct cpu_list *cpus,
                  struct warnings *warnings) {
    static struct numa numa;
    static struct cpu_list memories;
    const struct sweeper *sweeper = sweeper_find(isa_from_name(arguments->isa));
    struct cpu_location *locations = calloc((size_t)cpus->count, sizeof *locations);
    struct team team;
    if (locations == NULL) {
        fail_measurement("no memory for %d threads", cpus->count);
    }
    if (sweeper == NULL) {
        fail_impossible("this CPU or its operating system does not run %s", arguments->isa);
    }
    topology_locate(SYSTEM_CPU, cpus, locations);
    read_memories(&memories);
    numa_read(SYSTEM_CPU, locations, cpus->count, &memories, &numa.map);
    if (numa.map.cores * numa.map.memories < 2) {
        fail_impossible("%s measures from NUMA node to NUMA node: this machine, or what of it may "
                        "be used, is one",
                        arguments->workload);
    }
    const int pairs = numa.map.cores * numa.map.memories;
    const double seconds = arguments->common.seconds / pairs;
    numa.writes = strcmp(arguments->workload, "NUMA-WS") == 0;
    numa.sweep = strcmp(arguments->workload, "NUMA-LAT") == 0 ? NULL
                 : !numa.writes                               ? sweeper->read
                 : sweeper->write_streaming == NULL || !strcmp(arguments->store, "temporal")
                     ? sweeper->write
                     : sweeper->write_streaming;
    numa.huge_pages = strcmp(arguments->huge_pages, "on") == 0;
    numa.seconds = seconds > LEAST_SECONDS ? seconds : LEAST_SECONDS;
    numa.seed = arguments->common.seed;
    choose_size(&numa, cpus, arguments->pool, cpus->count, warnings);
    if (!numa_run(&numa, locations, cpus->count, arguments->common.warmup, &team)) {
        report_failure(&team);
    }
    print_result(arguments, &numa, sweeper, &team, warnings);
    free(numa.values);
    free(locations);
    team_free(&team);
}
