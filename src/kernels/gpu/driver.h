/*
 * The library of NVIDIA's driver, which is opened at run time: building needs nothing of CUDA, and
 * without a driver the program ends with the reason.
 */
#ifndef PEAKMARK_DRIVER_H
#define PEAKMARK_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t device_pointer;

/* Functions of the driver: name without "cu", symbol in the library, parameters. */
#define DRIVER_FUNCTIONS(X)                                                                        \
    X(Init, "cuInit", unsigned flags)                                                              \
    X(DriverGetVersion, "cuDriverGetVersion", int *version)                                        \
    X(GetErrorName, "cuGetErrorName", int code, const char **name)                                 \
    X(GetErrorString, "cuGetErrorString", int code, const char **text)                             \
    X(DeviceGetCount, "cuDeviceGetCount", int *count)                                              \
    X(DeviceGet, "cuDeviceGet", int *device, int index)                                            \
    X(DeviceGetName, "cuDeviceGetName", char *name, int bytes, int device)                         \
    X(DeviceGetPCIBusId, "cuDeviceGetPCIBusId", char *address, int bytes, int device)              \
    X(DeviceTotalMem, "cuDeviceTotalMem_v2", size_t *bytes, int device)                            \
    X(DeviceGetAttribute, "cuDeviceGetAttribute", int *value, int attribute, int device)           \
    X(DeviceCanAccessPeer, "cuDeviceCanAccessPeer", int *can, int device, int peer)                \
    X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", void **context, int device)              \
    X(CtxSetCurrent, "cuCtxSetCurrent", void *context)                                             \
    X(CtxEnablePeerAccess, "cuCtxEnablePeerAccess", void *peer, unsigned flags)                    \
    X(ModuleLoadDataEx, "cuModuleLoadDataEx", void **module, const void *ptx, unsigned count,      \
      int *options, void **values)                                                                 \
    X(ModuleGetFunction, "cuModuleGetFunction", void **function, void *module, const char *name)   \
    X(LaunchKernel, "cuLaunchKernel", void *function, unsigned grid, unsigned grid_y,              \
      unsigned grid_z, unsigned block, unsigned block_y, unsigned block_z, unsigned shared,        \
      void *stream, void **parameters, void **extra)                                               \
    X(MemAlloc, "cuMemAlloc_v2", device_pointer *memory, size_t bytes)                             \
    X(MemHostAlloc, "cuMemHostAlloc", void **memory, size_t bytes, unsigned flags)                 \
    X(MemsetD32Async, "cuMemsetD32Async", device_pointer memory, unsigned word, size_t words,      \
      void *stream)                                                                                \
    X(MemcpyHtoD, "cuMemcpyHtoD_v2", device_pointer to, const void *from, size_t bytes)            \
    X(MemcpyDtoH, "cuMemcpyDtoH_v2", void *to, device_pointer from, size_t bytes)                  \
    X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", device_pointer to, const void *from, size_t bytes,  \
      void *stream)                                                                                \
    X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", void *to, device_pointer from, size_t bytes,        \
      void *stream)                                                                                \
    X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", device_pointer to, device_pointer from,             \
      size_t bytes, void *stream)                                                                  \
    X(MemcpyPeerAsync, "cuMemcpyPeerAsync", device_pointer to, void *to_context,                   \
      device_pointer from, void *from_context, size_t bytes, void *stream)                         \
    X(StreamCreate, "cuStreamCreate", void **stream, unsigned flags)                               \
    X(StreamSynchronize, "cuStreamSynchronize", void *stream)                                      \
    X(StreamWaitEvent, "cuStreamWaitEvent", void *stream, void *event, unsigned flags)             \
    X(EventCreate, "cuEventCreate", void **event, unsigned flags)                                  \
    X(EventRecord, "cuEventRecord", void *event, void *stream)                                     \
    X(EventElapsedTime, "cuEventElapsedTime", float *milliseconds, void *begin, void *end)

#define DRIVER_FIELD(name, symbol, ...) int (*name)(__VA_ARGS__);
struct driver {
    DRIVER_FUNCTIONS(DRIVER_FIELD)
};
#undef DRIVER_FIELD

extern struct driver cu;

enum {
    ERROR_OUT_OF_MEMORY = 2,
    ERROR_NO_DEVICE = 100,
    ERROR_OLD_DRIVER = 222,
    ERROR_TOO_MANY_RESOURCES = 701,
    ERROR_PEER_ENABLED = 704
};

enum attribute {
    ATTRIBUTE_CLOCK_KHZ = 13,
    ATTRIBUTE_SMS = 16,
    ATTRIBUTE_ECC = 32,
    ATTRIBUTE_MEMORY_KHZ = 36,
    ATTRIBUTE_BUS_BITS = 37,
    ATTRIBUTE_L2_BYTES = 38,
    ATTRIBUTE_COMPUTE_MAJOR = 75,
    ATTRIBUTE_COMPUTE_MINOR = 76
};

/* Opens the library, initialises it and returns the number of GPUs, at least 1. Ends the program
 * with the reason if that is impossible: with exit code 77 without driver or GPU, else 1. */
int driver_open(void);

int driver_version(void);                                   /* 13000 for CUDA 13.0 */
int driver_attribute(int device, enum attribute attribute); /* 0 if it is unknown */

/* Prints which call failed on which GPU, why, and what to do, and ends the program: with exit code
 * 77 if the driver is too old, else 1. Any thread may call it. */
_Noreturn void driver_fail(int gpu, int code, const char *doing);

/* Ends the program if a call of the driver failed. `doing` names the work, such as "copying". */
static inline void driver_check(int gpu, int code, const char *doing) {
    if (code != 0) {
        driver_fail(gpu, code, doing);
    }
}

/* Returns in the first thread that fails, which then ends the program; other threads wait. */
void driver_fail_alone(void);

#endif
