/*
 * Preloaded into a program to give it faults that a test machine cannot give to itself:
 *   SHIM_BACK_MS=N   the wall clock goes back by an hour, N ms after the first look at it (and stays there)
 *   SHIM_EDQUOT=1    every pwrite fails with "quota exceeded"
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>

enum { BACK_S = 3600 };

static int (*real_clock)(clockid_t, struct timespec *);

/* Seconds to take off the wall clock now. */
static time_t back(void) {
    static struct timespec first;
    const char *after = getenv("SHIM_BACK_MS");
    struct timespec now;
    if (after == NULL) {
        return 0;
    }
    real_clock(CLOCK_MONOTONIC, &now);
    if (first.tv_sec == 0) {
        first = now;
    }
    double elapsed = (double)(now.tv_sec - first.tv_sec) * 1e3 + (double)(now.tv_nsec - first.tv_nsec) / 1e6;
    return elapsed >= atof(after) ? BACK_S : 0;
}

static int looked_up(clockid_t clock, struct timespec *time) {
    if (real_clock == NULL) {
        real_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    }
    return real_clock(clock, time);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int status = looked_up(clock, time);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        time->tv_sec -= back();
    }
    return status;
}

int gettimeofday(struct timeval *restrict value, void *restrict zone) {
    struct timespec now;
    (void)zone;
    int status = clock_gettime(CLOCK_REALTIME, &now);
    value->tv_sec = now.tv_sec;
    value->tv_usec = now.tv_nsec / 1000;
    return status;
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where != NULL) {
        *where = now.tv_sec;
    }
    return now.tv_sec;
}

static ssize_t refuse(const char *name, int file, const void *data, size_t size, off_t offset) {
    if (getenv("SHIM_EDQUOT") != NULL) {
        errno = EDQUOT;
        return -1;
    }
    ssize_t (*real)(int, const void *, size_t, off_t) =
        (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, name);
    return real(file, data, size, offset);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset) {
    return refuse("pwrite", file, data, size, offset);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset) {
    return refuse("pwrite64", file, data, size, offset);
}
