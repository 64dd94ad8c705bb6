#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

uint64_t clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void clock_sleep_until(uint64_t deadline_ns) {
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / UINT64_C(1000000000)),
                                .tv_nsec = (long)(deadline_ns % UINT64_C(1000000000))};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR) {
    }
}

/*
 * 64 links a pass. Adds of an immediate are no measure: Golden Cove and later fold them away at rename. A
 * 64-bit imul takes 3 cycles on every Intel core since Nehalem and every AMD core since Zen; on Arm,
 * multiplication differs (2 to 4 cycles) but plain eor and add take one.
 */
#define LINKS 64
#define TIMES_4(x) x x x x
#define TIMES_64(x) TIMES_4(TIMES_4(TIMES_4(x)))

#if defined(__x86_64__)
#define CYCLES_PER_LINK 3.0
static const char *const method = "chain of imul, 3 cycles each";
static uint64_t chain(uint64_t passes, uint64_t value) {
    while (passes-- > 0) {
        __asm__ volatile(TIMES_64("imul %1, %0\n\t") : "+r"(value) : "r"((uint64_t)3));
    }
    return value;
}
#elif defined(__aarch64__)
#define CYCLES_PER_LINK 2.0
static const char *const method = "chain of eor and add, 1 cycle each";
static uint64_t chain(uint64_t passes, uint64_t value) {
    while (passes-- > 0) {
        __asm__ volatile(TIMES_64("eor %0, %0, %1\n\tadd %0, %0, %1\n\t") : "+r"(value) : "r"((uint64_t)3));
    }
    return value;
}
#else
#define CYCLES_PER_LINK 0.0
static const char *const method = NULL;
static uint64_t chain(uint64_t passes, uint64_t value) {
    return passes + value;
}
#endif

const char *clock_hz_method(void) {
    return method;
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The median of rounds of about half a millisecond: an interrupted round does not count, a short boost
 * neither. */
double clock_hz(void) {
    enum { ROUNDS = 15 };
    double hz[ROUNDS];
    if (CYCLES_PER_LINK == 0.0) {
        return 0.0;
    }
    uint64_t passes = 64, value = 1;
    for (;;) {
        uint64_t start = clock_now();
        value = chain(passes, value);
        if (clock_now() - start >= UINT64_C(500000) || passes >= (UINT64_C(1) << 40)) {
            break;
        }
        passes *= 2;
    }
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = clock_now();
        value = chain(passes, value);
        uint64_t elapsed = clock_now() - start;
        hz[round] = (double)passes * LINKS * CYCLES_PER_LINK * 1e9 / (double)(elapsed > 0 ? elapsed : 1);
    }
    qsort(hz, ROUNDS, sizeof hz[0], ascending);
    return hz[ROUNDS / 2];
}
