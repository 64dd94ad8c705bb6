/* One GPU that measures, in a thread of its own, and what it is asked to measure. */
#ifndef PEAKMARK_GPU_H
#define PEAKMARK_GPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"
#include "gpu/driver.h"

/* The text of gpu/FILE.ptx as a string of this name. */
#define PTX_MODULE(name, file)                                                                     \
    __asm__(".pushsection .rodata\n.globl " #name "\n.hidden " #name "\n" #name                    \
            ":\n.incbin \"gpu/" file ".ptx\"\n.byte 0\n.popsection\n");                            \
    extern const char name[]

struct request {
    const char *workload, *variant, *reference; /* the last two may be NULL */
    uint64_t block, seed;                       /* block 0: the fastest */
    double seconds, warmup;
};

struct gpu {
    const struct request *request;
    const struct job *job;
    struct gpu *next; /* that it sends to: the first one after the last */
    pthread_barrier_t *together;
    pthread_t thread;
    int index, device, sms, compute; /* compute capability 9.0: 90 */
    char name[128], pci[32];
    size_t memory, l2;
    void *context, *stream, *begin, *end;
    void *state; /* of the job */
    /* Set by the job. */
    const char *isa; /* the instruction or call that ran */
    bool unsettled;  /* power or clock still changed when the measurement began */
    double work;     /* of one call */
    double points[128][2];
    int point_count;
    /* Results. */
    uint64_t calls, measured_calls;  /* since prepare ended, and of these between the clocks */
    double seconds, value, clock_hz; /* clock_hz 0: unknown */
};

/* What is measured. All run in the GPU's thread. */
struct job {
    const char *unit, *work_unit;
    bool heats;                           /* measured when the power has settled */
    void (*prepare)(struct gpu *gpu);     /* allocates, chooses the fastest way, clears results */
    void (*call)(struct gpu *gpu);        /* queues one portion of work */
    void (*clear_clock)(struct gpu *gpu); /* queued before the measured calls; may be NULL */
    void (*measure)(struct gpu *gpu);     /* instead of calls: sets seconds and value */
    void (*finish)(struct gpu *gpu);      /* after the clock: checks the results; may be NULL */
};

extern const struct job rate_job, memory_job, link_job, ladder_job, launch_job, cublas_job;

/* Fills what the driver tells of a device. */
void gpu_describe(struct gpu *gpu, int index);
bool gpu_is_mig(const struct gpu *gpu);

/* Measures all GPUs at the same time. */
void gpu_measure_all(struct gpu *gpus, int count);

/* Ends the program where a call failed; doing is a word such as "copying". */
static inline void gpu_check(const struct gpu *gpu, int code, const char *doing) {
    driver_check(gpu->index, code, doing);
}

/* Memory of the host, zeros. */
void *gpu_calloc(const struct gpu *gpu, size_t count, size_t bytes);
device_pointer gpu_allocate(const struct gpu *gpu, size_t bytes);
void *gpu_allocate_pinned(const struct gpu *gpu, size_t bytes);

/* Compiles the PTX and returns its kernel of this name. */
void *gpu_function(const struct gpu *gpu, const char *ptx, const char *name);

/* Queues a kernel; returns the driver's code. */
int gpu_launch(void *stream, void *function, unsigned grid, unsigned block, void **parameters);

/* Seconds of so many calls of the job, by the GPU's clock. */
double gpu_time(struct gpu *gpu, uint64_t calls);

/* Waits for all that is queued. */
void gpu_wait(const struct gpu *gpu);

/* Fails with exit 1 and the GPU's index on stdout. */
_Noreturn void gpu_wrong(const struct gpu *gpu, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Fails with exit 77. */
_Noreturn void gpu_impossible(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
