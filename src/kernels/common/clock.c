#include "common/clock.h"

#include <errno.h>
#include <time.h>

#include "common/chain.h"
#include "common/sort.h"

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
 * 64 links a pass. Adds of an immediate are no measure: Golden Cove and later fold them away at
 * rename. A 64-bit imul takes 3 cycles on every Intel core since Nehalem and every AMD core since
 * Zen; on Arm, multiplication differs (2 to 4 cycles) but plain eor and add take one.
 */
#define LINKS 64
#define TIMES_4(x) x x x x
#define TIMES_64(x) TIMES_4(TIMES_4(TIMES_4(x)))

#if defined(__x86_64__)
#define CYCLES_PER_LINK 3.0
#define LINK "imul %1, %0\n\t"
static const char *const method = "chain of imul, 3 cycles each";
#elif defined(__aarch64__)
#define CYCLES_PER_LINK 2.0
#define LINK "eor %0, %0, %1\n\tadd %0, %0, %1\n\t"
static const char *const method = "chain of eor and add, 1 cycle each";
#else
#define CYCLES_PER_LINK 0.0
#define LINK ""
static const char *const method = NULL;
#endif

static uint64_t chain(uint64_t passes, uint64_t value) {
    while (passes-- > 0) {
        __asm__ volatile(TIMES_64(LINK) : "+r"(value) : "r"((uint64_t)3));
    }
    return value;
}

/* As many loads a pass, each of the cell that `pointer` points to, which holds its own address. */
static void loads(uint64_t passes, void *pointer) {
    while (passes-- > 0) {
        CHAIN_64(pointer);
    }
}

const char *clock_hz_method(void) {
    return method;
}

/* Median of rounds of about half a millisecond, so that neither an interruption nor a short boost
 * counts. */
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
        hz[round] =
            (double)passes * LINKS * CYCLES_PER_LINK * 1e9 / (double)(elapsed > 0 ? elapsed : 1);
    }
    sort_doubles(hz, ROUNDS);
    return hz[ROUNDS / 2];
}

/*
 * Both chains in turn, in rounds so short that the clock has no time to change between them. Other
 * work on the core makes a round longer, that of loads more than the other, so the minimum of each
 * counts.
 */
static double load_cycles_now(double *seconds) {
    enum { ROUNDS = 41, PASSES = 100 };
    void *cell = &cell;
    uint64_t value = 1, least_chain = UINT64_MAX, least_load = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = clock_now();
        value = chain(PASSES, value);
        uint64_t middle = clock_now();
        loads(PASSES, &cell);
        uint64_t stop = clock_now();
        least_chain = middle - start < least_chain ? middle - start : least_chain;
        least_load = stop - middle < least_load ? stop - middle : least_load;
    }
    *seconds = (double)least_load * 1e-9 / (PASSES * LINKS);
    return CYCLES_PER_LINK * (double)least_load / (double)(least_chain > 0 ? least_chain : 1);
}

unsigned clock_load_cycles(double *seconds) {
    enum { ATTEMPTS = 3 };
    double cycles = 0;
    *seconds = 0;
    if (CYCLES_PER_LINK == 0.0) {
        return 0;
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        double attempt_seconds, attempt_cycles = load_cycles_now(&attempt_seconds);
        if (attempt == 0 || attempt_cycles < cycles) {
            cycles = attempt_cycles;
            *seconds = attempt_seconds;
        }
    }
    double whole = (double)(unsigned)(cycles + 0.5);
    return whole >= 2 && whole <= 8 && cycles > whole - 0.15 && cycles < whole + 0.15
               ? (unsigned)whole
               : 0;
}
