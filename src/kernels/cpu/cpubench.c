/* cpubench: how many multiplications and additions per second the cores do. */
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/clock.h"
#include "common/options.h"
#include "common/report.h"
#include "common/status.h"
#include "common/team.h"
#include "cpu/kernel.h"
#include "cpu/pace.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Share of the execution units below which something else on the core has held the work up;
 * repeated calls differ by less. */
#define SHARE_LEAST 0.95

struct settings {
    const struct kernel *kernel;
    uint64_t seed;
};

/* Data of a thread, each array on separate cache lines. */
struct worker {
    struct operands operands;
    _Alignas(64) unsigned char start[STATE_BYTES_MAX];
    _Alignas(64) unsigned char result[STATE_BYTES_MAX];
    _Alignas(64) unsigned char paced_result[STATE_BYTES_MAX];
    _Alignas(64) unsigned char expected[STATE_BYTES_MAX];
    uint64_t calls;    /* of PASSES_PER_CALL passes */
    uint64_t checksum; /* sum over these calls */
    uint64_t tail;     /* passes of the last, shorter call; 0: none */
    uint64_t tail_sum;
    uint64_t paced; /* calls of PACED_PASSES passes, which sample the clock rate */
    uint64_t paced_sum;
    uint64_t paced_ns;
    struct pace pace;
};

/* Subnormal numbers would be slow; none occur, and this makes sure that none can. */
static void flush_subnormals(void) {
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | (UINT64_C(1) << 24)));
#endif
}

/* Sum of the state's words: calls with equal results add up to calls * sum. */
static uint64_t sum_words(const unsigned char *state, unsigned bytes) {
    uint64_t sum = 0, word = 0;
    for (unsigned at = 0; at < bytes; at += sizeof word) {
        unsigned part = bytes - at < sizeof word ? bytes - at : (unsigned)sizeof word;
        word = 0;
        memcpy(&word, state + at, part);
        sum += word;
    }
    return sum;
}

static void prepare(struct team_member *member) {
    const struct settings *settings = member->context;
    struct arena arena;
    if (!arena_create(&arena, sizeof(struct worker), false)) {
        team_fail(member, "no memory for thread %d", member->index);
        return;
    }
    struct worker *worker = (struct worker *)(void *)arena.base;
    flush_subnormals();
    reference_inputs(settings->kernel, settings->seed, (uint64_t)member->index, &worker->operands,
                     worker->start);
    pace_begin(&worker->pace);
    member->state = worker;
}

/* A paced call right after a call of `seconds` without a chain: the time of the chain gives the
 * clock rate. Returns its passes. */
static uint64_t run_paced(const struct kernel *kernel, struct worker *worker, double seconds,
                          bool is_long) {
    const unsigned links = pace_links(&worker->pace, 2 * seconds / PASSES_PER_CALL,
                                      kernel->isa == ISA_SCALAR, is_long);
    if (links == 0) {
        return 0;
    }
    uint64_t start = clock_now();
    kernel->paced(PACED_PASSES, &worker->operands, worker->start, worker->paced_result, links,
                  &worker->pace.cell);
    uint64_t stop = clock_now();
    pace_add(&worker->pace, links, PACED_PASSES / 2, (double)(stop - start) * 1e-9, seconds,
             is_long);
    worker->paced++;
    worker->paced_ns += stop - start;
    worker->paced_sum +=
        sum_words(worker->paced_result, kernel->vector_bytes * kernel->accumulators);
    return PACED_PASSES;
}

/* Whole calls, until the time is over or less than one is left. The work of paced calls counts like
 * all other. */
static void run_calls(struct team_member *member, const struct kernel *kernel,
                      struct worker *worker) {
    const unsigned bytes = kernel->vector_bytes * kernel->accumulators;
    const uint64_t per_pass = (uint64_t)kernel->operations * kernel->accumulators;
    const uint64_t per_call = per_pass * PASSES_PER_CALL,
                   with_paced = per_call + per_pass * PACED_PASSES;
    uint64_t calls = 0, checksum = 0, next_paced = PACE_FIRST;
    bool is_long = false;
    while (member->limit - member->work >= per_call && (calls == 0 || !team_stopped(member))) {
        const bool paced = calls == next_paced && member->limit - member->work >= with_paced;
        const uint64_t begin = paced ? clock_now() : 0;
        kernel->run(PASSES_PER_CALL, &worker->operands, worker->start, worker->result);
        if (paced) {
            double seconds = (double)(clock_now() - begin) * 1e-9;
            checksum += sum_words(worker->result, bytes);
            member->work += per_pass * run_paced(kernel, worker, seconds, is_long);
            is_long = !is_long && pace_wants_long(&worker->pace);
            next_paced += is_long ? 1 : worker->pace.every;
        } else {
            checksum += sum_words(worker->result, bytes);
        }
        member->work += per_call;
        calls++;
    }
    worker->calls = calls;
    worker->checksum = checksum;
}

static void run(struct team_member *member) {
    const struct kernel *kernel = ((const struct settings *)member->context)->kernel;
    struct worker *worker = member->state;
    const uint64_t per_pass = (uint64_t)kernel->operations * kernel->accumulators;
    worker->paced = worker->paced_sum = worker->paced_ns = worker->tail = 0;
    pace_restart(&worker->pace);
    run_calls(member, kernel, worker);
    if (member->limit != UINT64_MAX && member->limit - member->work < per_pass * PASSES_PER_CALL &&
        member->work < member->limit) {
        uint64_t pairs = (member->limit - member->work + 2 * per_pass - 1) / (2 * per_pass);
        worker->tail = 2 * pairs;
        kernel->run(worker->tail, &worker->operands, worker->start, worker->result);
        worker->tail_sum = sum_words(worker->result, kernel->vector_bytes * kernel->accumulators);
        member->work += worker->tail * per_pass;
    }
}

/* Whether `calls` calls of so many passes added up to what plain C gets from the same numbers, and
 * the last one (all or none of its bytes) ended there. */
static bool is_right(const struct kernel *kernel, struct worker *worker, uint64_t passes,
                     uint64_t calls, uint64_t sum, const unsigned char *last) {
    const unsigned bytes = kernel->vector_bytes * kernel->accumulators;
    if (calls == 0) {
        return true;
    }
    reference_run(kernel, passes, &worker->operands, worker->start, worker->expected);
    return sum == calls * sum_words(worker->expected, bytes) &&
           (last == NULL || memcmp(last, worker->expected, bytes) == 0);
}

static void finish(struct team_member *member) {
    const struct kernel *kernel = ((const struct settings *)member->context)->kernel;
    struct worker *w = member->state;
    if (w == NULL || team_failed(member)) {
        return;
    }
    pace_end(&w->pace);
    member->clock_hz_loaded = pace_hz(&w->pace);
    const double passes = (double)w->calls * PASSES_PER_CALL + (double)w->tail;
    const double call =
        ((double)member->cpu_ns - (double)w->paced_ns) * 1e-9 * PASSES_PER_CALL / passes;
    const double share = pace_share(&w->pace, call);
    member->held_up = pace_held_up(&w->pace) || share < SHARE_LEAST;
    if (!is_right(kernel, w, PASSES_PER_CALL, w->calls, w->checksum,
                  w->tail > 0 ? NULL : w->result) ||
        !is_right(kernel, w, PACED_PASSES, w->paced, w->paced_sum, w->paced_result) ||
        !is_right(kernel, w, w->tail, w->tail > 0, w->tail_sum, w->result)) {
        team_wrong(
            member,
            "thread %d on CPU %d computed a wrong result with %s (%s): the rate is not reported",
            member->index, member->cpu, kernel->instruction, kernel->workload);
    }
}

static void print_result(const struct kernel *kernel, const struct team *team,
                         const struct warnings *warnings) {
    struct json json;
    struct report report = {.instrument = "cpubench",
                            .workload = kernel->workload,
                            .value = team_rate(team),
                            .unit = "op/s",
                            .work_unit = "op",
                            .isa = isa_name(kernel->isa),
                            .team = team,
                            .warnings = warnings};
    double clock_hz = team->clock_hz_loaded > 0
                          ? team->clock_hz_loaded
                          : (team->clock_hz_before + team->clock_hz_after) / 2;
    double per_instruction = kernel->operations / kernel->instructions;
    report_begin(&json, &report);
    json_string(&json, "instruction", kernel->instruction);
    report_clock(&json, team);
    report_clock_loaded(&json, team);
    json_double(&json, "operations_per_instruction", per_instruction);
    if (clock_hz > 0) {
        json_double(&json, "instructions_per_cycle",
                    report.value / team->threads / per_instruction / clock_hz);
    } else {
        json_null(&json, "instructions_per_cycle");
    }
    report_end(&json, &report);
}

struct arguments {
    struct common_options common;
    const char *workload, *isa;
    uint64_t operations;
};

static void parse_arguments(struct arguments *a, int argc, char **argv) {
    static const char *const workloads[] = {"QP",    "HP",      "SP",    "DP",   "FP32",
                                            "DPMIX", "FP32MIX", "QPDOT", "FP16", "BF16DOT",
                                            "QPMM",  "BF16MM",  NULL};
    static const struct program program = {
        .name = "cpubench",
        .synopsis = "--workload NAME [option]...",
        .summary = "Measures multiplications and additions per second, all operands in registers.\n"
                   "QP int8, HP int16, SP int32, DP double, FP32 single, QPDOT int8 dot product "
                   "into int32.\n"
                   "DPMIX and FP32MIX mix multiply-adds with additions, in the shares that are "
                   "fastest here, so that all pipes work.\n"
                   "FP16 half precision, BF16DOT bfloat16 dot product into single; matrix products "
                   "QPMM of int8 into int32, BF16MM of bfloat16 into single.\n"
                   "One operation is one multiplication or one addition on one lane; a fused one "
                   "counts as two.",
        .example = "cpubench --workload DP --threads 2 --seconds 1"};
    const struct option_spec specs[] = {
        {"workload", OPTION_CHOICE, &a->workload, "NAME", .help = "what to compute",
         .choices = workloads},
        COMMON_OPTIONS(&a->common),
        {"operations", OPTION_COUNT, &a->operations, "N",
         .help = "do N operations in all, e.g. 1e12, instead of --seconds"},
        {"isa", OPTION_CHOICE, &a->isa, "NAME", .help = "instruction set (default auto)",
         .choices = isa_choices},
        END_OF_OPTIONS,
    };
    options_no_more(argc, argv, options_parse(&program, specs, argc, argv));
    if (a->workload == NULL) {
        fail_usage("--workload is missing: choose one of QP, HP, SP, DP, FP32, DPMIX, FP32MIX, "
                   "QPDOT, FP16, BF16DOT, QPMM, BF16MM");
    }
    if (a->operations > 0 && a->common.seconds_set) {
        fail_usage(
            "--seconds and --operations exclude each other: the run ends by time or by work");
    }
}

/* Work is shared in pairs of passes, and every thread gets one at least. */
static struct team_plan make_plan(const struct arguments *a, const struct kernel *kernel) {
    const uint64_t grain = 2ULL * kernel->operations * kernel->accumulators;
    const uint64_t least = grain * (uint64_t)a->common.threads;
    return (struct team_plan){.warmup = a->common.warmup,
                              .seconds = a->common.seconds,
                              .work = a->operations > 0 && a->operations < least ? least
                                                                                 : a->operations,
                              .grain = grain,
                              .clock_rate = true};
}

int main(int argc, char **argv) {
    static struct arguments a = {.common = COMMON_DEFAULTS};
    static struct cpu_list cpus;
    struct warnings warnings = {0};
    struct team team;
    const char *reason;
    a.isa = isa_choices[0];
    parse_arguments(&a, argc, argv);
    struct settings settings = {.kernel = kernel_find(a.workload, isa_from_name(a.isa), &reason),
                                .seed = a.common.seed};
    if (settings.kernel == NULL) {
        fail_impossible("%s", reason);
    }
    settings.kernel = kernel_fastest(settings.kernel);
    place_choose(&a.common.cpus, a.common.threads, &cpus, &warnings);
    const char *better = isa_better_left_out(settings.kernel->isa, settings.kernel->feature,
                                             strcmp(a.workload, "QPDOT") == 0);
    if (better != NULL) {
        warnings_add(&warnings,
                     "cpubench was built without %s, which this CPU has: build it with a newer "
                     "compiler and assembler",
                     better);
    }
    const struct team_plan plan = make_plan(&a, settings.kernel);
    const struct team_job job = {.prepare = prepare, .run = run, .finish = finish};
    if (!team_run(&team, &cpus, &plan, &job, &settings)) {
        report_failure(&team);
    }
    print_result(settings.kernel, &team, &warnings);
    team_free(&team);
    warnings_free(&warnings);
    return STATUS_OK;
}
