#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static uint64_t read_clock(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t clock_now(void) {
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_thread_now(void) {
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
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

#if defined(__x86_64__)
#define LOAD "mov (%0), %0\n\t"
#elif defined(__aarch64__)
#define LOAD "ldr %0, [%0]\n\t"
#endif
static void loads(uint64_t passes, void *pointer) {
#ifdef LOAD
    while (passes-- > 0) {
        __asm__ volatile(TIMES_64(LOAD) : "+r"(pointer));
    }
#else
    (void)passes;
    (void)pointer;
#endif
}

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

/* Both chains in turn, in rounds so short that the clock has no time to change between them. */
unsigned clock_load_cycles(double *seconds) {
    enum { ROUNDS = 41, PASSES = 100 };
    void *itself = &itself;
    double ratio[ROUNDS], load[ROUNDS];
    *seconds = 0;
    if (CYCLES_PER_LINK == 0.0) {
        return 0;
    }
    uint64_t value = 1;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = clock_now();
        value = chain(PASSES, value);
        uint64_t middle = clock_now();
        loads(PASSES, &itself);
        uint64_t stop = clock_now();
        load[round] = (double)(stop - middle);
        ratio[round] = load[round] / (double)(middle > start ? middle - start : 1);
    }
    qsort(ratio, ROUNDS, sizeof ratio[0], ascending);
    qsort(load, ROUNDS, sizeof load[0], ascending);
    double cycles = CYCLES_PER_LINK * ratio[ROUNDS / 2], whole = (double)(unsigned)(cycles + 0.5);
    *seconds = load[ROUNDS / 2] * 1e-9 / (PASSES * LINKS);
    return whole >= 2 && whole <= 8 && cycles > whole - 0.15 && cycles < whole + 0.15 ? (unsigned)whole : 0;
}
