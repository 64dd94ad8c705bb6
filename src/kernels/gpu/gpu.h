/* A GPU, the thread that measures it, and the work that is measured. */
#ifndef PEAKMARK_GPU_H
#define PEAKMARK_GPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"
#include "gpu/driver.h"

/* Defines a string of this name with the text of gpu/FILE.ptx, here or among the objects. */
#define PTX_MODULE(name, file)                                                                     \
    __asm__(".pushsection .rodata\n.globl " #name "\n.hidden " #name "\n" #name                    \
            ":\n.incbin \"gpu/" file ".ptx\"\n.byte 0\n.popsection\n");                            \
    extern const char name[]

struct request {
    const char *workload, *variant, *reference; /* variant and reference may be NULL */
    uint64_t block, seed;                       /* block 0: the fastest size */
    double seconds, warmup;
};

struct gpu {
    const struct request *request;
    const struct job *job;
    struct gpu *next; /* the GPU that LINK peer sends to; after the last GPU the first */
    pthread_barrier_t *together;
    pthread_t thread;
    int index, device, sms, compute; /* compute capability 9.0: 90 */
    char name[128], pci[32];
    size_t memory, l2;
    void *context, *stream, *begin, *end;
    void *state; /* what the job keeps between its functions */
    /* Set by the job. */
    const char *isa; /* instruction or function that ran */
    bool unsettled;  /* the rate still changed when the measurement began */
    double work;     /* of one call */
    double points[128][2];
    int point_count;
    /* Results. */
    uint64_t calls, measured_calls;  /* all since prepare ended, and the measured ones of them */
    double seconds, value, clock_hz; /* clock_hz 0: unknown */
};

/* One kind of measurement. Its functions run in the GPU's thread. */
struct job {
    const char *unit, *work_unit;
    bool heats;                       /* is measured only after the rate has settled */
    void (*prepare)(struct gpu *gpu); /* allocates, chooses the fastest kernel, clears results */
    void (*call)(struct gpu *gpu);    /* queues one portion of work */
    void (*clear_clock)(struct gpu *gpu); /* queued before the measured calls; may be NULL */
    void (*measure)(struct gpu *gpu);     /* runs instead of calls: sets seconds and value */
    void (*finish)(struct gpu *gpu);      /* checks the results after measuring; may be NULL */
};

extern const struct job rate_job, memory_job, link_job, ladder_job, launch_job, cublas_job;

/* Sets the driver's facts of a device. */
void gpu_describe(struct gpu *gpu, int index);
bool gpu_is_mig(const struct gpu *gpu);

/* Measures all GPUs at the same time. */
void gpu_measure_all(struct gpu *gpus, int count);

/* Ends the program if a call of the driver failed. `doing` names the work, such as "copying". */
static inline void gpu_check(const struct gpu *gpu, int code, const char *doing) {
    driver_check(gpu->index, code, doing);
}

/* Returns zeroed memory of the host. */
void *gpu_calloc(const struct gpu *gpu, size_t count, size_t bytes);
device_pointer gpu_allocate(const struct gpu *gpu, size_t bytes);
void *gpu_allocate_pinned(const struct gpu *gpu, size_t bytes);

/* Compiles the PTX and returns its kernel of this name. */
void *gpu_function(const struct gpu *gpu, const char *ptx, const char *name);

/* Queues a kernel and returns the driver's error code. */
int gpu_launch(void *stream, void *function, unsigned grid, unsigned block, void **parameters);

/* Returns the seconds of so many calls of the job, by events of the GPU. */
double gpu_time(struct gpu *gpu, uint64_t calls);

/* Waits for all that is queued. */
void gpu_wait(const struct gpu *gpu);

/* Ends the program with exit code 1, and prints the GPU's index to standard output. */
_Noreturn void gpu_wrong(const struct gpu *gpu, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends the program with exit code 77. */
_Noreturn void gpu_impossible(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
