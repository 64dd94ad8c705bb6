/* mpibench: latencies and rates of messages and collective operations between the ranks of MPI. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/report.h"
#include "common/status.h"
#include "mpi/exchange.h"
#include "mpi/ranks.h"
#include "mpi/repeat.h"

/* Seconds until the program gives up, besides those of warm-up and measuring. */
#define TIMEOUT_S 60

struct arguments {
    const char *workload;
    uint64_t block;
    bool block_set;
    double seconds, warmup, timeout;
    struct cpu_list cpus;
    uint64_t seed;
};

static void parse_arguments(struct arguments *a, int argc, char **argv) {
    static const char *names[WORKLOADS + 1];
    static const struct program program = {
        .name = "mpibench",
        .synopsis = "--workload NAME [option]...",
        .summary =
            "Measures MPI between the ranks that mpirun or srun starts. Between two ranks: "
            "PINGPONG is\n"
            "half a round trip, RATE the bytes of one direction, BIRATE those of both, with 64 "
            "messages\n"
            "under way. MSGRATE is the number of messages from each rank of the first half to one "
            "of the\n"
            "second. Of all ranks: ALLREDUCE (sum of doubles), ALLTOALL, BCAST (the root changes "
            "with each\n"
            "call) and BARRIER are seconds of a call. All but BARRIER check the data that arrived.",
        .example = "mpirun -np 2 mpibench --workload RATE --block 4MiB --seconds 1"};
    const struct option_spec specs[] = {
        {"workload", OPTION_CHOICE, &a->workload, "NAME", .help = "what to measure",
         .choices = names},
        {"block", OPTION_SIZE, &a->block, "SIZE",
         .help = "bytes of a message; of ALLTOALL, from each rank to each (default 8, RATE and "
                 "BIRATE 1MiB)",
         .is_set = &a->block_set},
        {"cpus", OPTION_CPUS, &a->cpus, "LIST",
         .help = "CPUs of the ranks of each node, e.g. 0,2-3 (default: as the launcher binds)"},
        {"seconds", OPTION_SECONDS, &a->seconds, "S",
         .help = "measure for at least S seconds (default 1)"},
        {"warmup", OPTION_SECONDS, &a->warmup, "S",
         .help = "run S seconds before the clock starts (default 0.1)"},
        {"timeout", OPTION_SECONDS, &a->timeout, "S",
         .help = "give up after S seconds (default 60 more than seconds and warm-up)"},
        {"seed", OPTION_SEED, &a->seed, "N", .help = "seed of the data (default 1)"},
        END_OF_OPTIONS,
    };
    for (int i = 0; i < WORKLOADS; i++) {
        names[i] = workloads[i].name;
    }
    options_no_more(argc, argv, options_parse(&program, specs, argc, argv));
    if (a->workload == NULL) {
        fail_usage("--workload is missing: choose one of PINGPONG, RATE, BIRATE, MSGRATE, "
                   "ALLREDUCE, ALLTOALL, BARRIER, BCAST");
    }
    if (a->seconds <= 0) {
        fail_usage("--seconds 0 measures nothing: name a time above 0");
    }
}

static const struct workload *find_workload(const char *name) {
    const struct workload *workload = workloads;
    while (strcmp(workload->name, name) != 0) {
        workload++;
    }
    return workload;
}

static void check_block(struct arguments *a, const struct workload *workload) {
    if (!a->block_set) {
        a->block = workload->block;
    }
    if (a->block_set && workload->block == 0) {
        fail_usage("--block does not belong to %s, which moves no data", workload->name);
    }
    if (a->block > BLOCK_MAX) {
        fail_usage("--block: a message has at most 1GiB");
    }
    if (strcmp(workload->name, "ALLREDUCE") == 0 && a->block % sizeof(double) != 0) {
        fail_usage("--block: ALLREDUCE adds doubles: write a multiple of 8 bytes");
    }
}

/* The number of ranks is known only now, to all of them. */
static void check_ranks(const struct workload *workload, const struct ranks *ranks) {
    const bool fits = ranks->size >= 2 && !(workload->two_ranks && ranks->size != 2) &&
                      !(workload->in_pairs && ranks->size % 2 != 0);
    if (fits) {
        return;
    }
    if (ranks->rank != 0) {
        exit(STATUS_USAGE);
    }
    fail_usage("%s needs %s, and was started with %d: mpirun -np and srun -n set the number",
               workload->name,
               workload->two_ranks  ? "2 ranks"
               : workload->in_pairs ? "an even number of ranks"
                                    : "2 ranks or more",
               ranks->size);
}

/* Fills the team, whose members are the ranks, on the first rank. Their clocks are those of their
 * nodes, so each begins at 0. */
static void gather(const struct exchange *x, const struct measurement *m,
                   const struct rank_place *places, struct team *team) {
    struct team_member mine = {.stop_ns = (uint64_t)(m->own_seconds * 1e9),
                               .work = m->calls * x->workload->work(x),
                               .wrong = m->wrong};
    MPI_Gather(&mine, sizeof mine, MPI_BYTE, team->members, sizeof mine, MPI_BYTE, 0,
               MPI_COMM_WORLD);
    for (int i = 0; i < x->ranks; i++) {
        team->members[i].cpu = places[i].cpu;
        team->work += team->members[i].work;
    }
    if (!x->workload->in_pairs) {
        team->work = m->calls; /* all ranks make a call together */
    }
    team->seconds = m->seconds;
}

static _Noreturn void fail_wrong(struct team *team, const struct workload *workload,
                                 const struct rank_place *places) {
    int rank = 0;
    while (!team->members[rank].wrong) {
        rank++;
    }
    snprintf(team->error, sizeof team->error,
             "rank %d on CPU %d of %s got %s from %s: the value is not reported", rank,
             places[rank].cpu, places[rank].host,
             strcmp(workload->name, "ALLREDUCE") == 0 ? "a wrong sum" : "wrong data",
             workload->name);
    report_failure(team);
}

static void warn_of_overload(const struct ranks *ranks, const struct rank_place *places,
                             struct warnings *warnings) {
    for (int i = 0; i < ranks->size; i++) {
        if (places[i].oversubscribed) {
            warnings_add(warnings,
                         "%s has more ranks than CPUs: a rank that waits for a message delays "
                         "the rank that sends it",
                         places[i].host);
        }
    }
}

/* The first line of what the library says of itself: MPICH adds pages about its compilers. */
static void print_library(struct json *json) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0';
    json_string(json, "mpi_library", text);
}

static void print_places(struct json *json, const struct ranks *ranks,
                         const struct rank_place *places) {
    bool oversubscribed = false;
    json_begin_array(json, "per_rank");
    for (int i = 0; i < ranks->size; i++) {
        json_begin_object(json, NULL);
        json_string(json, "host", places[i].host);
        json_integer(json, "cpu", places[i].cpu);
        json_integer(json, "cpus", places[i].cpus);
        json_end_object(json);
        oversubscribed = oversubscribed || places[i].oversubscribed;
    }
    json_end_array(json);
    json_integer(json, "ranks", ranks->size);
    json_bool(json, "oversubscribed", oversubscribed);
}

static double value_of(const struct workload *workload, double work, double seconds) {
    return strcmp(workload->unit, "s") == 0 ? seconds / work : work / seconds;
}

static void print_repetitions(struct json *json, const struct workload *workload,
                              const struct measurement *m, const struct team *team) {
    const double work_of_call = (double)team->work / (double)m->calls;
    json_begin_array(json, "repetitions");
    for (int i = 0; i < m->count; i++) {
        const struct repetition *one = &m->repetitions[i];
        json_double(json, NULL,
                    value_of(workload, work_of_call * (double)one->calls, one->seconds));
    }
    json_end_array(json);
}

static void print_result(const struct exchange *x, const struct ranks *ranks,
                         const struct rank_place *places, const struct measurement *m,
                         const struct team *team) {
    const struct workload *workload = x->workload;
    struct warnings warnings = {0};
    struct json json;
    struct report report = {.instrument = "mpibench",
                            .workload = workload->name,
                            .value = value_of(workload, (double)team->work, team->seconds),
                            .unit = workload->unit,
                            .work_unit = workload->work_unit,
                            .team = team,
                            .warnings = &warnings};
    warn_of_overload(ranks, places, &warnings);
    report_begin(&json, &report);
    if (x->block > 0) {
        json_unsigned(&json, "block", x->block);
    }
    print_library(&json);
    print_places(&json, ranks, places);
    print_repetitions(&json, workload, m, team);
    json_bool(&json, "checked", workload->is_right != NULL);
    if (m->times.count > 0) {
        json_unsigned(&json, "timed_calls", m->times.count);
        report_percentiles(&json, &m->times);
    }
    report_end(&json, &report);
    warnings_free(&warnings);
}

int main(int argc, char **argv) {
    static struct arguments a = {.seconds = 1, .warmup = 0.1, .seed = 1};
    static struct measurement measurement;
    static struct exchange exchange;
    struct team team = {0};
    struct ranks ranks;
    /* A sentence stays whole where the launcher mixes what several ranks print. */
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
    parse_arguments(&a, argc, argv);
    check_block(&a, find_workload(a.workload));
    ranks_start(&ranks, a.timeout > 0 ? a.timeout : TIMEOUT_S + a.seconds + a.warmup);
    exchange = (struct exchange){.workload = find_workload(a.workload),
                                 .rank = ranks.rank,
                                 .ranks = ranks.size,
                                 .block = (size_t)a.block,
                                 .seed = a.seed};
    check_ranks(exchange.workload, &ranks);
    if (a.cpus.count > 0) {
        ranks_pin(&ranks, &a.cpus);
    }
    struct rank_place *places = calloc((size_t)ranks.size, sizeof *places);
    team.threads = ranks.size;
    team.members = calloc((size_t)ranks.size, sizeof *team.members);
    if (places == NULL || team.members == NULL || !exchange_open(&exchange)) {
        ranks_abort("rank %d has no memory for its messages", ranks.rank);
    }
    const bool right = repeat(&exchange, a.warmup, a.seconds, &measurement);
    ranks_locate(&ranks, places);
    gather(&exchange, &measurement, places, &team);
    if (!right && ranks.rank != 0) {
        exit(STATUS_FAILED);
    }
    if (!right) {
        fail_wrong(&team, exchange.workload, places);
    }
    if (ranks.rank == 0) {
        print_result(&exchange, &ranks, places, &measurement, &team);
    }
    ranks_succeed();
    return STATUS_OK;
}
