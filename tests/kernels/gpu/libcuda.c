/*
 * A library that takes the place of NVIDIA's driver in tests. It has two devices; their memory is
 * the host's, and copies are real. $FAKE_GPU lists their faults. With the word "runs" the CPU runs
 * the PTX of kernels. Without it kernels do nothing, so that each check of results must fail.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gpu/ptx.h"

/* These functions have no prototypes, as the driver's header is not installed. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define DEVICE_BYTES ((size_t)16 << 20)

static bool is_set(const char *word) {
    const char *words = getenv("FAKE_GPU");
    return words != NULL && strstr(words, word) != NULL;
}

int cuInit(unsigned flags) {
    return is_set("no-device") ? 100 : is_set("mismatch") ? 803 : 0;
}

int cuDriverGetVersion(int *version) {
    *version = 13000;
    return 0;
}

int cuGetErrorName(int code, const char **name) {
    *name = code == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : code == 214 ? "CUDA_ERROR_ECC_UNCORRECTABLE"
            : code == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
                          : "CUDA_ERROR_OF_THE_TEST";
    return 0;
}

int cuGetErrorString(int code, const char **text) {
    *text = "as the test wants it";
    return 0;
}

int cuDeviceGetCount(int *count) {
    *count = is_set("none-visible") ? 0 : 2;
    return 0;
}

int cuDeviceGet(int *device, int index) {
    *device = index;
    return 0;
}

int cuDeviceGetName(char *name, int bytes, int device) {
    snprintf(name, (size_t)bytes, "Fake GPU%s", is_set("mig") ? " MIG 1g.5gb" : "");
    return 0;
}

int cuDeviceGetPCIBusId(char *address, int bytes, int device) {
    snprintf(address, (size_t)bytes, "00F%d:3B:00.0", device);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = is_set("runs") ? DEVICE_BYTES / 16 : DEVICE_BYTES;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    const int compute = is_set("turing")      ? 75
                        : is_set("ampere")    ? 80
                        : is_set("ada")       ? 89
                        : is_set("blackwell") ? 100
                                              : 90;
    switch (attribute) {
    case 13:
        *value = 1980000;
        break;
    case 16:
        *value = 1;
        break;
    case 32:
        *value = 1;
        break;
    case 36:
        *value = 2619000;
        break;
    case 37:
        *value = 5120;
        break;
    case 38:
        *value = 65536;
        break;
    case 75:
        *value = compute / 10;
        break;
    case 76:
        *value = compute % 10;
        break;
    default:
        return 1;
    }
    return 0;
}

int cuDeviceCanAccessPeer(int *can, int device, int peer) {
    *can = !is_set("no-peer");
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = &cuDeviceGetCount;
    return is_set("exclusive") ? 46 : 0;
}

int cuCtxSetCurrent(void *context) {
    return 0;
}

int cuCtxEnablePeerAccess(void *peer, unsigned flags) {
    return 0;
}

int cuModuleLoadDataEx(void **module, const void *ptx, unsigned count, int *options,
                       void **values) {
    *module = (void *)(uintptr_t)ptx;
    if (is_set("bad-ptx") || is_set("very-old")) {
        snprintf(values[0], (size_t)(uintptr_t)values[1], "%s",
                 is_set("bad-ptx") ? "line 7: syntax error" : "Unsupported .version 8.0");
        return 218;
    }
    return is_set("old-driver") ? 222 : 0;
}

/* A function is its module and its name. */
struct function {
    const char *module;
    char name[32];
};

int cuModuleGetFunction(void **function, void *module, const char *name) {
    static struct function functions[128];
    static int used;
    struct function *found = &functions[__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED) % 128];
    found->module = module;
    snprintf(found->name, sizeof found->name, "%s", name);
    *function = found;
    return strstr(module, name) != NULL ? 0 : 500;
}

int cuLaunchKernel(void *function, unsigned grid, unsigned grid_y, unsigned grid_z, unsigned block,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream,
                   void **parameters, void **extra) {
    const struct function *kernel = function;
    if (is_set("few-registers") && block * grid > 256 && strcmp(kernel->name, "rate") == 0) {
        return 701;
    }
    if (is_set("runs") && !ptx_run(kernel->module, kernel->name, grid, block, parameters)) {
        return 500;
    }
    if (is_set("miscounts") && strcmp(kernel->name, "verify") != 0) {
        **(unsigned char **)parameters[1] += 1; /* changes the results, or the target of a copy */
    }
    return 0;
}

static int map(void **memory, size_t bytes) {
    *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return *memory != MAP_FAILED ? 0 : 2;
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
    void *mapped = NULL;
    int code = is_set("no-memory") && bytes > 65536 ? 2 : map(&mapped, bytes);
    *memory = (uintptr_t)mapped;
    return code;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    return map(memory, bytes);
}

int cuMemsetD32Async(uint64_t memory, unsigned word, size_t words, void *stream) {
    uint32_t *at = (uint32_t *)(uintptr_t)memory;
    for (size_t i = 0; i < words; i++) {
        at[i] = word;
    }
    return 0;
}

/* Copies without a fault: checks of results use synchronous copies. */
static int copy_right(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    return 0;
}

static int copy(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    if (is_set("one-bit") && bytes > 65536) {
        ((unsigned char *)to)[bytes - 1] ^= 1;
    }
    return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    return copy_right((void *)(uintptr_t)to, from, bytes);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    return copy_right(to, (const void *)(uintptr_t)from, bytes);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    return copy((void *)(uintptr_t)to, from, bytes);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    return copy(to, (const void *)(uintptr_t)from, bytes);
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

int cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context,
                      size_t bytes, void *stream) {
    return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

int cuStreamCreate(void **stream, unsigned flags) {
    *stream = NULL;
    return 0;
}

int cuStreamSynchronize(void *stream) {
    while (is_set("hang")) {
        pause();
    }
    return is_set("ecc") ? 214 : is_set("abort") ? 719 : 0;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    return 0;
}

int cuEventCreate(void **event, unsigned flags) {
    static struct timespec times[64];
    static int used;
    *event = &times[__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED) % 64];
    return 0;
}

int cuEventRecord(void *event, void *stream) {
    return clock_gettime(CLOCK_MONOTONIC, event) == 0 ? 0 : 1;
}

int cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
    const struct timespec *from = begin, *to = end;
    *milliseconds = (float)((double)(to->tv_sec - from->tv_sec) * 1e3 +
                            (double)(to->tv_nsec - from->tv_nsec) * 1e-6);
    return 0;
}
