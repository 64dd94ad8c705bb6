/*
 * The command line: a table of long options per program, parsed by getopt_long.
 *
 * A program lists its options as struct option_spec rows, starts with COMMON_OPTIONS, ends with an
 * empty row and calls options_parse. --help and --version are made from the same table. Any mistake
 * ends the program with exit 2.
 */
#ifndef PEAKMARK_OPTIONS_H
#define PEAKMARK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/place.h"

/* Text to value. Each returns false and leaves *value alone when text is not one. */
bool parse_size(const char *text,
                uint64_t *bytes); /* 4096, 1KiB, 16MiB, 1.5GiB, 1TiB: whole bytes, > 0 */
bool parse_count(const char *text, uint64_t *count); /* 100, 1e12, 2.5e9: whole, > 0 */
bool parse_seconds(const char *text,
                   double *seconds); /* 0, 1, 0.25, 1e-3: finite, >= 0, at most a week */
bool parse_cpu_list(const char *text, struct cpu_list *cpus); /* 0,2-3: order kept, no CPU twice */

/*
 * The shortest exact IEC form, as the Python side writes it: 1024 -> "1KiB", 1500 -> "1500B".
 * Returns buffer.
 */
const char *format_size(uint64_t bytes, char *buffer, size_t capacity);

enum option_kind {
    OPTION_FLAG,    /* value: bool *, no argument */
    OPTION_SIZE,    /* uint64_t *, bytes */
    OPTION_COUNT,   /* uint64_t * */
    OPTION_INTEGER, /* int *, minimum..maximum of the row */
    OPTION_SEED,    /* uint64_t *, any unsigned 64-bit number */
    OPTION_SECONDS, /* double * */
    OPTION_CPUS,    /* struct cpu_list * */
    OPTION_TEXT,    /* const char **, not empty */
    OPTION_CHOICE   /* const char **, one of choices; becomes the pointer in choices */
};

struct option_spec {
    const char *name; /* without --; NULL ends the table */
    enum option_kind kind;
    void *value;
    const char *argument; /* shown in --help: SIZE, N, S; NULL for a flag */
    const char *help;
    const char *const *choices; /* OPTION_CHOICE: NULL-terminated */
    int minimum, maximum;       /* OPTION_INTEGER */
    bool *is_set;               /* becomes true when the option is set; may be NULL */
};

struct program {
    const char *name;
    const char *synopsis; /* after the name in "Usage: name ..." */
    const char *summary; /* what it measures and what one unit of work is; may have several lines */
    const char *example; /* a whole command line */
};

/* What every kernel takes. Set defaults with COMMON_DEFAULTS before parsing. */
struct common_options {
    int threads;
    struct cpu_list cpus; /* count 0: the program chooses, see place_choose */
    double seconds;
    bool seconds_set;
    double warmup;
    uint64_t seed;
};

#define COMMON_DEFAULTS                                                                            \
    { .threads = 1, .cpus = {.count = 0}, .seconds = 1.0, .warmup = 0.1, .seed = 1 }
#define THREADS_MAX 4096

/* clang-format off */
#define COMMON_OPTIONS(c)                                                                          \
    {"threads", OPTION_INTEGER, &(c)->threads, "N",                                                \
        .help = "threads, each pinned to a CPU (default 1)",                                       \
        .minimum = 1, .maximum = THREADS_MAX},                                                     \
    {"cpus", OPTION_CPUS, &(c)->cpus, "LIST",                                                      \
        .help = "CPUs to use, e.g. 0,2-3 (default: those allowed, one per physical core first)"},  \
    {"seconds", OPTION_SECONDS, &(c)->seconds, "S",                                                \
        .help = "measure for at least S seconds (default 1)",                                      \
        .is_set = &(c)->seconds_set},                                                              \
    {"warmup", OPTION_SECONDS, &(c)->warmup, "S",                                                  \
    .help = "run S seconds before the clock starts (default 0.1)"},                                \
    {"seed", OPTION_SEED, &(c)->seed, "N", .help = "seed of data and random order (default 1)"}
/* clang-format on */

#define END_OF_OPTIONS                                                                             \
    { .name = NULL }

/*
 * Parses argv (argv[0] is skipped) and fills the values of the table. Options may stand before or
 * after positional arguments; the latter are moved to the end and the index of the first is
 * returned. --help and
 * --version print to stdout and exit 0. Anything wrong: exit 2.
 */
int options_parse(const struct program *program, const struct option_spec *specs, int argc,
                  char **argv);

/* Ends with exit 2 if there is a positional argument at argv[index]. */
void options_no_more(int argc, char **argv, int index);

#endif
