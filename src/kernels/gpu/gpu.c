#include "gpu/gpu.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/status.h"

/* Length of a burst, in which the power cap does not act yet. */
#define BURST_S 0.02
/* The sustained rate is measured once two windows of this length differ by less than this share. */
#define WINDOW_S 0.25
#define SETTLED 0.005
#define WINDOWS_MOST 40

void gpu_describe(struct gpu *gpu, int index) {
    gpu->index = index;
    gpu_check(gpu, cu.DeviceGet(&gpu->device, index), "asking for the device");
    gpu_check(gpu, cu.DeviceGetName(gpu->name, sizeof gpu->name, gpu->device), "asking its name");
    gpu_check(gpu, cu.DeviceGetPCIBusId(gpu->pci, sizeof gpu->pci, gpu->device),
              "asking its address");
    for (char *at = gpu->pci; *at != '\0'; at++) { /* as Linux writes it */
        *at = (char)tolower((unsigned char)*at);
    }
    gpu_check(gpu, cu.DeviceTotalMem(&gpu->memory, gpu->device), "asking its memory");
    gpu->sms = driver_attribute(gpu->device, ATTRIBUTE_SMS);
    gpu->l2 = (size_t)driver_attribute(gpu->device, ATTRIBUTE_L2_BYTES);
    gpu->compute = 10 * driver_attribute(gpu->device, ATTRIBUTE_COMPUTE_MAJOR) +
                   driver_attribute(gpu->device, ATTRIBUTE_COMPUTE_MINOR);
}

bool gpu_is_mig(const struct gpu *gpu) {
    return strstr(gpu->name, " MIG ") != NULL;
}

void *gpu_calloc(const struct gpu *gpu, size_t count, size_t bytes) {
    void *memory = calloc(count, bytes);
    gpu_check(gpu, memory != NULL ? 0 : ERROR_OUT_OF_MEMORY, "allocating memory of the host");
    return memory;
}

device_pointer gpu_allocate(const struct gpu *gpu, size_t bytes) {
    char doing[64], size[32];
    device_pointer memory = 0;
    snprintf(doing, sizeof doing, "allocating %s", format_size(bytes, size, sizeof size));
    gpu_check(gpu, cu.MemAlloc(&memory, bytes), doing);
    return memory;
}

void *gpu_allocate_pinned(const struct gpu *gpu, size_t bytes) {
    enum { PORTABLE_AND_MAPPED = 1 | 2 };
    void *memory = NULL;
    gpu_check(gpu, cu.MemHostAlloc(&memory, bytes, PORTABLE_AND_MAPPED),
              "pinning memory of the host");
    return memory;
}

void *gpu_function(const struct gpu *gpu, const char *ptx, const char *name) {
    enum { ERROR_LOG = 5, ERROR_LOG_BYTES = 6, INVALID_PTX = 218 };
    char log[4096] = "";
    int options[] = {ERROR_LOG, ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log}, *module = NULL, *function = NULL;
    int code = cu.ModuleLoadDataEx(&module, ptx, 2, options, values);
    if (code == INVALID_PTX && strstr(log, "Unsupported .version") != NULL) {
        code = ERROR_OLD_DRIVER; /* older drivers do not know this code */
    }
    if (code != 0 && log[0] != '\0') {
        fprintf(stderr, "gpubench: %s\n", log);
    }
    gpu_check(gpu, code, "compiling the PTX");
    gpu_check(gpu, cu.ModuleGetFunction(&function, module, name), "finding the kernel");
    return function;
}

int gpu_launch(void *stream, void *function, unsigned grid, unsigned block, void **parameters) {
    return cu.LaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, parameters, NULL);
}

void gpu_wait(const struct gpu *gpu) {
    gpu_check(gpu, cu.StreamSynchronize(gpu->stream), "waiting for its work");
}

double gpu_time(struct gpu *gpu, uint64_t calls) {
    float milliseconds = 0;
    gpu_check(gpu, cu.EventRecord(gpu->begin, gpu->stream), "starting the clock");
    for (uint64_t i = 0; i < calls; i++) {
        gpu->job->call(gpu);
    }
    gpu->calls += calls;
    gpu_check(gpu, cu.EventRecord(gpu->end, gpu->stream), "stopping the clock");
    gpu_wait(gpu);
    gpu_check(gpu, cu.EventElapsedTime(&milliseconds, gpu->begin, gpu->end), "reading the clock");
    return milliseconds > 0 ? (double)milliseconds * 1e-3 : 1e-6;
}

void gpu_wrong(const struct gpu *gpu, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    driver_fail_alone();
    printf("{\"wrong_gpus\": [%d]}\n", gpu->index);
    fail_measurement("GPU %d (%s) %s: the result is not reported", gpu->index, gpu->name, text);
}

void gpu_impossible(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    driver_fail_alone();
    fail_impossible("%s", text);
}

static uint64_t calls_in(double seconds, double call) {
    double calls = ceil(seconds / call);
    return calls > 1 ? (uint64_t)calls : 1;
}

/* Works until two windows take equally long: power and clock have settled. */
static void settle(struct gpu *gpu, double call) {
    const uint64_t window = calls_in(WINDOW_S, call);
    gpu_time(gpu, calls_in(gpu->request->warmup, call));
    double before = gpu_time(gpu, window), now = gpu_time(gpu, window);
    for (int i = 0; fabs(now / before - 1) > SETTLED; i++) {
        if (i == WINDOWS_MOST) {
            gpu->unsettled = true;
            return;
        }
        before = now;
        now = gpu_time(gpu, window);
    }
}

static void measure_calls(struct gpu *gpu) {
    const char *variant = gpu->request->variant;
    const bool burst = variant != NULL && strcmp(variant, "burst") == 0;
    double call = gpu_time(gpu, 1);
    if (burst) { /* the GPU rests, as the trials before have heated it */
        clock_sleep_until(clock_now() + (uint64_t)(gpu->request->warmup * 1e9));
    } else if (gpu->job->heats) {
        settle(gpu, call);
    } else {
        gpu_time(gpu, calls_in(gpu->request->warmup, call));
    }
    pthread_barrier_wait(gpu->together);
    if (gpu->job->clear_clock != NULL) {
        gpu->job->clear_clock(gpu);
    }
    gpu->measured_calls = calls_in(burst ? BURST_S : gpu->request->seconds, call);
    gpu->seconds = gpu_time(gpu, gpu->measured_calls);
    gpu->value = gpu->work * (double)gpu->measured_calls / gpu->seconds;
}

static void *measure(void *argument) {
    struct gpu *gpu = argument;
    gpu_check(gpu, cu.CtxSetCurrent(gpu->context), "entering its context");
    gpu_check(gpu, cu.StreamCreate(&gpu->stream, 1), "creating a stream");
    gpu_check(gpu, cu.EventCreate(&gpu->begin, 0), "creating an event");
    gpu_check(gpu, cu.EventCreate(&gpu->end, 0), "creating an event");
    gpu->job->prepare(gpu);
    pthread_barrier_wait(gpu->together);
    if (gpu->job->measure != NULL) {
        gpu->job->measure(gpu);
    } else {
        measure_calls(gpu);
    }
    pthread_barrier_wait(gpu->together);
    if (gpu->job->finish != NULL) {
        gpu->job->finish(gpu);
    }
    return NULL;
}

void gpu_measure_all(struct gpu *gpus, int count) {
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        gpus[i].together = &together;
        gpus[i].next = &gpus[(i + 1) % count];
        gpu_check(&gpus[i], cu.DevicePrimaryCtxRetain(&gpus[i].context, gpus[i].device),
                  "creating its context");
    }
    for (int i = 0; i < count; i++) {
        if (pthread_create(&gpus[i].thread, NULL, measure, &gpus[i]) != 0) {
            driver_fail_alone();
            fail_measurement("the thread of GPU %d cannot be started", gpus[i].index);
        }
    }
    for (int i = 0; i < count; i++) {
        pthread_join(gpus[i].thread, NULL);
    }
    pthread_barrier_destroy(&together);
}
