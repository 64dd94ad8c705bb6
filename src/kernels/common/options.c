#include "common/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/isa.h"
#include "common/status.h"

#define OPTIONS_MAX 48
#define LONGEST_RUN_S (7.0 * 24 * 3600)

/* A plain decimal number at the start of text: digits, a fraction, an exponent; no sign, no hex, no
 * inf, no spaces. */
static bool leading_number(const char *text, long double *number, const char **rest) {
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        return false;
    }
    char *end = NULL;
    errno = 0;
    *number = strtold(text, &end);
    *rest = end;
    return errno == 0 && isfinite(*number);
}

/*
 * Digits and a unit as a whole number above 0 and below 2^63. Of a fraction or an exponent the
 * number is taken as a long double, which does not hold every such number on all machines.
 */
static bool whole(const char *text, uint64_t factor, uint64_t *value, const char **rest) {
    long double number;
    if (!leading_number(text, &number, rest)) {
        return false;
    }
    char *end = NULL;
    errno = 0;
    const unsigned long long digits = strtoull(text, &end, 10);
    if (end == *rest) {
        if (errno != 0 || digits == 0 || digits > INT64_MAX / factor) {
            return false;
        }
        *value = digits * factor;
        return true;
    }
    number *= (long double)factor;
    if (!(number >= 1) || number >= 0x1p63L || number != floorl(number)) {
        return false;
    }
    *value = (uint64_t)number;
    return true;
}

bool parse_size(const char *text, uint64_t *bytes) {
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"KiB", UINT64_C(1) << 10},
                 {"MiB", UINT64_C(1) << 20},
                 {"GiB", UINT64_C(1) << 30},
                 {"TiB", UINT64_C(1) << 40}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        uint64_t number;
        const char *unit;
        if (whole(text, units[i].factor, &number, &unit) && strcmp(unit, units[i].name) == 0) {
            *bytes = number;
            return true;
        }
    }
    return false;
}

bool parse_count(const char *text, uint64_t *count) {
    uint64_t number;
    const char *rest;
    if (!whole(text, 1, &number, &rest) || *rest != '\0') {
        return false;
    }
    *count = number;
    return true;
}

bool parse_seconds(const char *text, double *seconds) {
    long double number;
    const char *rest;
    if (!leading_number(text, &number, &rest) || *rest != '\0' || number > LONGEST_RUN_S) {
        return false;
    }
    *seconds = (double)number;
    return true;
}

static bool parse_seed(const char *text, uint64_t *seed) {
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return false;
    }
    *seed = number;
    return true;
}

static bool parse_integer(const char *text, int minimum, int maximum, int *value) {
    uint64_t number;
    if (!parse_seed(text, &number) || number > INT32_MAX) {
        return false;
    }
    if ((int)number < minimum || (int)number > maximum) {
        return false;
    }
    *value = (int)number;
    return true;
}

bool parse_cpu_list(const char *text, struct cpu_list *cpus) {
    struct cpu_list list = {.count = 0};
    for (const char *at = text;;) {
        if (!isdigit((unsigned char)*at)) {
            return false;
        }
        char *end;
        errno = 0;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-') {
            if (!isdigit((unsigned char)end[1])) {
                return false;
            }
            last = strtoul(end + 1, &end, 10);
        }
        if (errno != 0 || first > last || last >= CPU_LIST_MAX) {
            return false;
        }
        for (unsigned long cpu = first; cpu <= last; cpu++) {
            if (cpu_list_has(&list, (int)cpu)) {
                return false;
            }
            list.cpu[list.count++] = (int)cpu;
        }
        if (*end == '\0') {
            *cpus = list;
            return true;
        }
        if (*end != ',') {
            return false;
        }
        at = end + 1;
    }
}

const char *format_size(uint64_t bytes, char *buffer, size_t capacity) {
    static const char *const names[] = {"TiB", "GiB", "MiB", "KiB"};
    for (int i = 0; i < 4; i++) {
        uint64_t factor = UINT64_C(1) << (40 - 10 * i);
        if (bytes >= factor && bytes % factor == 0) {
            snprintf(buffer, capacity, "%" PRIu64 "%s", bytes / factor, names[i]);
            return buffer;
        }
    }
    snprintf(buffer, capacity, "%" PRIu64 "B", bytes);
    return buffer;
}

static void print_choices(FILE *out, const char *const *choices) {
    for (int i = 0; choices[i] != NULL; i++) {
        fprintf(out, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
}

static void print_help(const struct program *program, const struct option_spec *specs) {
    printf("Usage: %s %s\n%s\n\nOptions:\n", program->name, program->synopsis, program->summary);
    for (const struct option_spec *spec = specs; spec->name != NULL; spec++) {
        char usage[64];
        snprintf(usage, sizeof usage, "--%s%s%s", spec->name, spec->argument != NULL ? " " : "",
                 spec->argument != NULL ? spec->argument : "");
        printf("  %-22s %s", usage, spec->help);
        if (spec->kind == OPTION_CHOICE) {
            printf(": ");
            print_choices(stdout, spec->choices);
        }
        putchar('\n');
    }
    printf("  %-22s %s\n  %-22s %s\n\n", "--help", "show this text", "--version",
           "show the version");
    printf("Sizes are bytes or 1KiB, 16MiB, 1GiB (1KiB = 1024 B); counts may be written 1e12. One "
           "JSON "
           "object on\n"
           "stdout; exit 0: measured, 1: failed, 2: wrong command line, 77: not possible on this "
           "machine.\n\n"
           "Example: %s\n",
           program->example);
}

static _Noreturn void bad_value(const struct option_spec *spec, const char *text,
                                const char *allowed) {
    fail_usage("--%s: '%s' is not %s", spec->name, text, allowed);
}

static void set_choice(const struct option_spec *spec, const char *text) {
    for (int i = 0; spec->choices[i] != NULL; i++) {
        if (strcmp(text, spec->choices[i]) == 0) {
            *(const char **)spec->value = spec->choices[i];
            return;
        }
    }
    char allowed[512] = "one of ";
    for (int i = 0; spec->choices[i] != NULL; i++) {
        size_t used = strlen(allowed);
        snprintf(allowed + used, sizeof allowed - used, "%s%s", i > 0 ? ", " : "",
                 spec->choices[i]);
    }
    bad_value(spec, text, allowed);
}

static void set_value(const struct option_spec *spec, const char *text) {
    char range[80];
    switch (spec->kind) {
    case OPTION_FLAG:
        *(bool *)spec->value = true;
        break;
    case OPTION_SIZE:
        if (!parse_size(text, spec->value)) {
            bad_value(spec, text,
                      "a size: write whole bytes above 0, e.g. 4096, 1KiB, 16MiB or 1GiB");
        }
        break;
    case OPTION_COUNT:
        if (!parse_count(text, spec->value)) {
            bad_value(spec, text, "a count: write a whole number above 0, e.g. 1000 or 1e12");
        }
        break;
    case OPTION_INTEGER:
        if (!parse_integer(text, spec->minimum, spec->maximum, spec->value)) {
            snprintf(range, sizeof range, "a whole number from %d to %d", spec->minimum,
                     spec->maximum);
            bad_value(spec, text, range);
        }
        break;
    case OPTION_SEED:
        if (!parse_seed(text, spec->value)) {
            bad_value(spec, text, "a whole number from 0 to 18446744073709551615");
        }
        break;
    case OPTION_SECONDS:
        if (!parse_seconds(text, spec->value)) {
            bad_value(spec, text,
                      "a time in seconds: write 0 or more, at most a week, e.g. 0.5 or 10");
        }
        break;
    case OPTION_CPUS:
        if (!parse_cpu_list(text, spec->value)) {
            bad_value(spec, text,
                      "a CPU list: write numbers and ranges, each CPU once, e.g. 0,2-3");
        }
        break;
    case OPTION_TEXT:
        if (*text == '\0') {
            bad_value(spec, text, "allowed: it must not be empty");
        }
        *(const char **)spec->value = text;
        break;
    case OPTION_CHOICE:
        set_choice(spec, text);
        break;
    }
    if (spec->is_set != NULL) {
        *spec->is_set = true;
    }
}

int options_parse(const struct program *program, const struct option_spec *specs, int argc,
                  char **argv) {
    enum { CODE_HELP = OPTIONS_MAX, CODE_VERSION };
    struct option table[OPTIONS_MAX + 3] = {{0}};
    int count = 0;
    status_set_program(program->name);
    for (; count < OPTIONS_MAX && specs[count].name != NULL; count++) {
        int has_argument = specs[count].kind == OPTION_FLAG ? no_argument : required_argument;
        table[count] = (struct option){specs[count].name, has_argument, NULL, count};
    }
    table[count] = (struct option){"help", no_argument, NULL, CODE_HELP};
    table[count + 1] = (struct option){"version", no_argument, NULL, CODE_VERSION};
    opterr = 0;
    optind = 0; /* glibc: start anew, so that tests and subcommands may parse more than once */
    for (;;) {
        int at = optind == 0 ? 1 : optind;
        int code = getopt_long(argc, argv, ":", table, NULL);
        if (code == -1) {
            return optind;
        }
        if (code == CODE_HELP) {
            print_help(program, specs);
            exit(fflush(stdout) == 0 ? STATUS_OK : STATUS_FAILED);
        }
        if (code == CODE_VERSION) {
            bool whole = isa_built_without[0] == '\0';
            printf("%s (peakmark) %s%s%s%s\n", program->name, PEAKMARK_VERSION,
                   whole ? "" : " without", isa_built_without,
                   whole ? "" : ", which its compiler or assembler lacks");
            exit(fflush(stdout) == 0 ? STATUS_OK : STATUS_FAILED);
        }
        if (code == ':') {
            fail_usage("%s needs a value", argv[optind - 1]);
        }
        if (code == '?') {
            /* optind may or may not have moved past the option, and positionals may stand before
             * it. */
            const char *text = optind > at || at >= argc ? argv[optind - 1] : argv[at];
            fail_usage("'%s' is not an option of this program, is not unique or takes no value",
                       text);
        }
        set_value(&specs[code], optarg);
    }
}

void options_no_more(int argc, char **argv, int index) {
    if (index < argc) {
        fail_usage("'%s' is not understood: this program takes options only", argv[index]);
    }
}
