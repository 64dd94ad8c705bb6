/* Exit codes and the one way to end a program early: one clear sentence on stderr, then exit. */
#ifndef PEAKMARK_STATUS_H
#define PEAKMARK_STATUS_H

enum {
    STATUS_OK = 0,
    STATUS_FAILED = 1,     /* the measurement was tried and failed, or its result is wrong */
    STATUS_USAGE = 2,      /* the command line is wrong */
    STATUS_IMPOSSIBLE = 77 /* this machine cannot do it: no such instructions, no such engine */
};

/* Name shown before each message; set once by options_parse. */
void status_set_program(const char *name);

/* Each prints "program: sentence" on stderr and exits with its code. */
_Noreturn void fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail_measurement(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail_impossible(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
