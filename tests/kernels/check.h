/* cmocka and the headers it needs before it. */
#ifndef PEAKMARK_TEST_CHECK_H
#define PEAKMARK_TEST_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#endif
