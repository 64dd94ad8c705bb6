#include "common/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *program_name = "peakmark";

void status_set_program(const char *name) {
    program_name = name;
}

static void print_message(const char *format, va_list arguments) {
    fflush(stdout);
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void fail_usage(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
    fprintf(stderr, "Try '%s --help'.\n", program_name);
    exit(STATUS_USAGE);
}

void fail_measurement(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
    exit(STATUS_FAILED);
}

void fail_impossible(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
    exit(STATUS_IMPOSSIBLE);
}
