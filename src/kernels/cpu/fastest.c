/* Which of the mixes of a workload is the fastest on this CPU. */
#include <stdbool.h>
#include <string.h>

#include "common/clock.h"
#include "cpu/kernel.h"

/* Passes of a trial, 10 to 20 us: the cost of reading the clock does not show. Even. */
#define TRIAL_PASSES 4096
/* Each mix in turn, the best of so many trials: an interruption does not decide. */
#define TRIALS 9
#define MIXES_MAX 4

/* Nanoseconds of a pass's operation. */
static double trial(const struct kernel *kernel, const struct operands *operands, const void *start,
                    void *result) {
    const uint64_t begin = clock_now();
    kernel->run(TRIAL_PASSES, operands, start, result);
    return (double)(clock_now() - begin) / (kernel->operations * kernel->accumulators);
}

static bool is_mix_of(const struct kernel *kernel, const struct kernel *other) {
    return other->workload != NULL && strcmp(other->workload, kernel->workload) == 0 &&
           other->isa == kernel->isa && other->feature == kernel->feature;
}

const struct kernel *kernel_fastest(const struct kernel *kernel) {
    static struct operands operands;
    static _Alignas(64) unsigned char start[STATE_BYTES_MAX], result[STATE_BYTES_MAX];
    double least[MIXES_MAX] = {0};
    int mixes = 1, fastest = 0;
    if (strstr(kernel->workload, "MIX") == NULL) {
        return kernel;
    }
    while (mixes < MIXES_MAX && is_mix_of(kernel, kernel + mixes)) {
        mixes++;
    }
    for (int round = 0; round < TRIALS; round++) {
        for (int mix = 0; mix < mixes; mix++) {
            reference_inputs(kernel + mix, 1, 0, &operands, start);
            const double took = trial(kernel + mix, &operands, start, result);
            if (round == 0 || took < least[mix]) {
                least[mix] = took;
            }
        }
    }
    for (int mix = 1; mix < mixes; mix++) {
        if (least[mix] < least[fastest]) {
            fastest = mix;
        }
    }
    return kernel + fastest;
}
