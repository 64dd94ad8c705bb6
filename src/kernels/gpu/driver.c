#include "gpu/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/status.h"

struct driver cu;

static const struct remedy {
    int code;
    const char *text;
} remedies[] = {
    {2, "other programs hold its memory: end them, or choose another GPU with --gpus"},
    {34, "this is the library of CUDA's toolkit to link with: name the driver's own"},
    {46, "another program has it for itself: choose another GPU with --gpus"},
    {100, "load the driver's kernel module, or check CUDA_VISIBLE_DEVICES and the job's --gres"},
    {214,
     "its memory has an error that ECC cannot correct: drain the node, read nvidia-smi -q -d ECC"},
    {220, "a link to another GPU has errors: read nvidia-smi nvlink -e"},
    {222, "the driver is older than this kernel's PTX: install a newer driver"},
    {700, "its kernel read or wrote a wrong address: look for Xid in the kernel's log"},
    {702, "the driver stopped a kernel that ran too long: measure on a GPU without a display"},
    {719, "its kernel was aborted: look for Xid in the kernel's log"},
    {802, "start the service nvidia-fabricmanager"},
    {803, "library and kernel module of the driver differ: reboot after the update"},
};

static const char *remedy_of(int code) {
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++) {
        if (remedies[i].code == code) {
            return remedies[i].text;
        }
    }
    return "look into the kernel's log for NVRM";
}

static const char *error_text(int code, char *buffer, size_t capacity) {
    const char *name = NULL, *text = NULL;
    cu.GetErrorName(code, &name);
    cu.GetErrorString(code, &text);
    snprintf(buffer, capacity, "%s (%d), %s", name != NULL ? name : "error", code,
             text != NULL ? text : "unknown to this driver");
    return buffer;
}

void driver_fail_alone(void) {
    static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&failing); /* never unlocked */
}

void driver_fail(int gpu, int code, const char *doing) {
    char text[256];
    driver_fail_alone();
    error_text(code, text, sizeof text);
    if (code == ERROR_OLD_DRIVER) {
        fail_impossible("GPU %d: %s failed: %s; %s", gpu, doing, text, remedy_of(code));
    }
    fail_measurement("GPU %d: %s failed: %s; %s", gpu, doing, text, remedy_of(code));
}

/* Stores the function with this symbol. C forbids to cast dlsym's pointer to that of a function. */
static void find(void *library, const char *path, const char *symbol, void *function) {
    void *found = dlsym(library, symbol);
    if (found == NULL) {
        fail_impossible("%s has no %s: the driver is older than CUDA 11, install a newer one", path,
                        symbol);
    }
    memcpy(function, &found, sizeof found);
}

int driver_open(void) {
    const char *path = getenv("PEAKMARK_LIBCUDA");
    char text[256];
    int count = 0;
    path = path != NULL ? path : "libcuda.so.1";
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0); /* as nvidia-smi numbers them */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fail_impossible("no NVIDIA driver is installed: %s", dlerror());
    }
#define DRIVER_FIND(name, symbol, ...) find(library, path, symbol, &cu.name);
    DRIVER_FUNCTIONS(DRIVER_FIND)
#undef DRIVER_FIND
    int code = cu.Init(0);
    code = code == 0 ? cu.DeviceGetCount(&count) : code;
    if (code != 0) {
        void (*fail)(const char *format, ...) =
            code == ERROR_NO_DEVICE ? fail_impossible : fail_measurement;
        fail("the NVIDIA driver gives no GPU: %s; %s", error_text(code, text, sizeof text),
             remedy_of(code));
    }
    if (count == 0) {
        fail_impossible("the NVIDIA driver has no GPU to offer: check CUDA_VISIBLE_DEVICES, and "
                        "whether MIG is on without an instance");
    }
    return count;
}

int driver_version(void) {
    int version = 0;
    cu.DriverGetVersion(&version);
    return version;
}

int driver_attribute(int device, enum attribute attribute) {
    int value = 0;
    return cu.DeviceGetAttribute(&value, (int)attribute, device) == 0 ? value : 0;
}
