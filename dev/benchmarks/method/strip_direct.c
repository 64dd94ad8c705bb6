// Preloaded before diskbench: opens files without O_DIRECT, as a file system does that takes the flag and
// ignores it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>

typedef int (*open_function)(const char *, int, ...);
typedef int (*openat_function)(int, const char *, int, ...);

// The mode is there only with flags that create a file, but reading it in vain does no harm on any ABI we
// build for.
#define MODE_AFTER(last)                                                                                     \
    ({                                                                                                       \
        va_list arguments;                                                                                   \
        va_start(arguments, last);                                                                           \
        const unsigned mode = va_arg(arguments, unsigned);                                                   \
        va_end(arguments);                                                                                   \
        mode;                                                                                                \
    })

int open(const char *path, int flags, ...) {
    const unsigned mode = MODE_AFTER(flags);
    return ((open_function)dlsym(RTLD_NEXT, "open"))(path, flags & ~O_DIRECT, mode);
}

int open64(const char *path, int flags, ...) {
    const unsigned mode = MODE_AFTER(flags);
    return ((open_function)dlsym(RTLD_NEXT, "open64"))(path, flags & ~O_DIRECT, mode);
}

int openat(int directory, const char *path, int flags, ...) {
    const unsigned mode = MODE_AFTER(flags);
    return ((openat_function)dlsym(RTLD_NEXT, "openat"))(directory, path, flags & ~O_DIRECT, mode);
}

int openat64(int directory, const char *path, int flags, ...) {
    const unsigned mode = MODE_AFTER(flags);
    return ((openat_function)dlsym(RTLD_NEXT, "openat64"))(directory, path, flags & ~O_DIRECT, mode);
}
