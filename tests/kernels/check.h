/* cmocka and the headers it needs before it; without it, what of it is used here. */
#ifndef PEAKMARK_TEST_CHECK_H
#define PEAKMARK_TEST_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#ifdef PLAIN_CHECKS
#include "plain.h"
#else
#include <cmocka.h>
#endif

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Skips the test this is called in. The line has the form of pytest's, so that all are counted
 * alike. */
#define skip_because(...)                                                                          \
    do {                                                                                           \
        printf("SKIPPED [1] %s:%d: ", strrchr("/" __FILE__, '/') + 1, __LINE__);                   \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        fflush(stdout);                                                                            \
        skip();                                                                                    \
    } while (0)

#endif
