/*
 * The JSON object every kernel prints: keys of all kernels first, then those of the program,
 * warnings last.
 */
#ifndef PEAKMARK_REPORT_H
#define PEAKMARK_REPORT_H

#include "common/histogram.h"
#include "common/json.h"
#include "common/team.h"

#define WARNINGS_MAX 16

/*
 * Facts that make a result doubtful, as sentences; beyond WARNINGS_MAX further ones are dropped,
 * repeats too.
 */
struct warnings {
    int count;
    char *text[WARNINGS_MAX];
};

void warnings_add(struct warnings *warnings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void warnings_free(struct warnings *warnings);

struct report {
    const char *instrument; /* program name */
    const char *workload;
    double value; /* finite and > 0, else the program fails */
    const char *unit;
    const char *work_unit;   /* of work: "op", "B", "access", "round trip" */
    const char *isa;         /* NULL where no ISA was chosen */
    const struct team *team; /* seconds, work, threads and per_thread[] */
    const struct warnings *warnings;
};

/* Opens the object on stdout and writes the keys shared by all kernels, but warnings. */
void report_begin(struct json *json, const struct report *report);

/*
 * Ends the program with exit 1 and the team's sentence. Of members whose result is wrong it first
 * prints the CPUs: {"wrong_cpus": [3]}.
 */
_Noreturn void report_failure(const struct team *team);

/* For threads that compute: writes clock_hz_before and clock_hz_after, null when they were not
 * measured, and cpu_share, the share of their time in which they had their CPUs. Of two threads and
 * more, core_to_core_before and core_to_core_after, s, where they were measured. */
void report_clock(struct json *json, const struct team *team);

/* Writes clock_hz_loaded, the clock rate under the work, null where it is unknown; and held_up, the
 * number of threads whose execution units something else used meanwhile. */
void report_clock_loaded(struct json *json, const struct team *team);

/* Writes p50, p90, p99, p999 and max in seconds, of values in ns, and their histogram. */
void report_percentiles(struct json *json, const struct histogram *latency);

/* Opens a row of a matrix or curve: one class, level or mix, and its value. The caller may add
 * keys, writes its points and ends the object. */
void report_row_begin(struct json *json, const char *variant, double value);

/* Writes points[]: `count` lists of `width` numbers. */
void report_points(struct json *json, const double *points, int count, int width);

/* Writes warnings[], ends the object. Ends the program with exit 1 if stdout cannot be written. */
void report_end(struct json *json, const struct report *report);

#endif
