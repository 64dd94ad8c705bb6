/* Seconds of a load from the GPU's caches and memory by working set, and of an empty kernel. */
#include <math.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/random.h"
#include "common/sort.h"
#include "gpu/gpu.h"

PTX_MODULE(ptx_latency, "latency");

enum { LINE_BYTES = 128, LINES_OF_GRAIN = 16, LINK_THREADS = 256, LAUNCHES_MOST = 1 << 16 };
#define FIRST_BYTES 16384.0
/* Least number of loads: they take 2 ms in the first-level cache, and the timer ticks every 1 us.
 */
#define HOPS_LEAST (1U << 17)
/* Multiple of the second-level cache from which on it does not hold the lines of a walk. */
#define BEYOND_L2 4
#define LARGEST_BYTES (UINT64_C(4) << 30)

struct chain {
    void *link, *chase;
    device_pointer area, order, out;
    uint64_t bytes; /* of the area */
    uint32_t lines_most;
    uint32_t *shuffled;
};

static void prepare_chain(struct gpu *gpu) {
    struct chain *chain = gpu_calloc(gpu, 1, sizeof *chain);
    const uint64_t quarter = gpu->memory / 4;
    gpu->state = chain;
    chain->bytes = quarter < LARGEST_BYTES ? quarter : LARGEST_BYTES;
    chain->lines_most = (uint32_t)(BEYOND_L2 * gpu->l2 / LINE_BYTES);
    chain->link = gpu_function(gpu, ptx_latency, "link");
    chain->chase = gpu_function(gpu, ptx_latency, "chase");
    chain->area = gpu_allocate(gpu, chain->bytes);
    chain->order = gpu_allocate(gpu, chain->lines_most * sizeof *chain->shuffled);
    chain->out = gpu_allocate(gpu, 3 * sizeof(uint64_t));
    chain->shuffled = gpu_calloc(gpu, chain->lines_most, sizeof *chain->shuffled);
    gpu->isa = "ld.global.u64";
}

/* Follows the chain, which must end where it began, and returns the seconds. */
static double walk(struct gpu *gpu, const struct chain *chain, device_pointer first,
                   uint32_t hops) {
    uint64_t out[3], line = first;
    void *parameters[] = {&line, (void *)(uintptr_t)&chain->out, &hops};
    gpu_check(gpu, gpu_launch(gpu->stream, chain->chase, 1, 1, parameters), "starting its kernel");
    gpu_wait(gpu);
    gpu_check(gpu, cu.MemcpyDtoH(out, chain->out, sizeof out), "copying from it");
    if (out[0] != first) {
        gpu_wrong(gpu, "followed a chain of %u loads to a wrong end", hops);
    }
    gpu->clock_hz = out[2] > 0 ? (double)out[1] / (double)out[2] * 1e9 : 0;
    return (double)out[2] * 1e-9;
}

/* Measures one working set. A first lap, which does not count, fills the caches. */
static void measure_area(struct gpu *gpu, struct chain *chain, double bytes,
                         struct random_state *random) {
    uint32_t lines = (uint32_t)(bytes / LINE_BYTES / LINES_OF_GRAIN + 0.5) * LINES_OF_GRAIN;
    lines = lines < chain->lines_most ? lines : chain->lines_most;
    /* Lines may have been rounded up: they are then neighbours and take a little more than `bytes`.
     */
    uint32_t step = (uint32_t)fmax(1, bytes / lines / LINE_BYTES + 0.001) * LINE_BYTES;
    void *parameters[] = {&chain->area, &chain->order, &lines, &step};
    const unsigned blocks = (lines + LINK_THREADS - 1) / LINK_THREADS;
    random_permutation(random, chain->shuffled, lines);
    gpu_check(gpu, cu.MemcpyHtoD(chain->order, chain->shuffled, lines * sizeof *chain->shuffled),
              "copying to it");
    gpu_check(gpu, gpu_launch(gpu->stream, chain->link, blocks, LINK_THREADS, parameters),
              "starting its kernel");
    const device_pointer first = chain->area + (uint64_t)chain->shuffled[0] * step;
    const uint32_t hops = lines * (lines < HOPS_LEAST ? (HOPS_LEAST + lines - 1) / lines : 1);
    walk(gpu, chain, first, lines);
    const double seconds = walk(gpu, chain, first, hops);
    double *point = gpu->points[gpu->point_count++];
    point[0] = (double)lines * step;
    point[1] = seconds / hops;
    gpu->seconds += seconds;
    gpu->work += hops;
    gpu->value = point[1]; /* the last one, of the largest area, remains */
}

/* Two points an octave up to four times the second-level cache, then one for each factor of 4. */
static void measure_ladder(struct gpu *gpu) {
    struct chain *chain = gpu->state;
    struct random_state random;
    const double dense = (double)chain->lines_most * LINE_BYTES;
    random_seed(&random, gpu->request->seed, 0);
    for (double bytes = FIRST_BYTES; bytes <= (double)chain->bytes;
         bytes *= bytes < dense ? M_SQRT2 : 4) {
        measure_area(gpu, chain, bytes, &random);
    }
    gpu->measured_calls = 1;
}

static void finish_ladder(struct gpu *gpu) {
    struct chain *chain = gpu->state;
    free(chain->shuffled); /* each walk has been checked */
    free(chain);
}

static void prepare_launch(struct gpu *gpu) {
    gpu->state = gpu_function(gpu, ptx_latency, "empty");
    gpu->isa = "empty kernel";
}

static double launch_once(struct gpu *gpu) {
    const uint64_t begin = clock_now();
    gpu_check(gpu, gpu_launch(gpu->stream, gpu->state, 1, 1, NULL), "starting its kernel");
    gpu_wait(gpu);
    return (double)(clock_now() - begin) * 1e-9;
}

static void measure_launch(struct gpu *gpu) {
    double *seconds = gpu_calloc(gpu, LAUNCHES_MOST, sizeof *seconds);
    size_t count = 0;
    for (double warm = 0; warm < gpu->request->warmup;) {
        warm += launch_once(gpu);
    }
    while (count == 0 || (gpu->seconds < gpu->request->seconds && count < LAUNCHES_MOST)) {
        seconds[count] = launch_once(gpu);
        gpu->seconds += seconds[count++];
    }
    gpu->value = sort_median(seconds, count);
    gpu->work = (double)count;
    gpu->measured_calls = 1;
    free(seconds);
}

const struct job ladder_job = {.unit = "s",
                               .work_unit = "access",
                               .prepare = prepare_chain,
                               .measure = measure_ladder,
                               .finish = finish_ladder};
/* An empty kernel has no result, so there is no finish. */
const struct job launch_job = {
    .unit = "s", .work_unit = "launch", .prepare = prepare_launch, .measure = measure_launch};
