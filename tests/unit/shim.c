/* Stand in for a filesystem that refuses a system call: preload this, and name the error number in
 * SHIM_FLOCK (flock), SHIM_LOCKF (locks of fcntl), SHIM_SYNC (fsync of files) or SHIM_SYNC_FOLDER
 * (fsync of folders).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool refused(const char *name)
{
    const char *text = getenv(name);
    if (text == NULL)
        return false;
    errno = atoi(text);
    return true;
}

int flock(int descriptor, int operation)
{
    if (refused("SHIM_FLOCK"))
        return -1;
    int (*next)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
    return next(descriptor, operation);
}

int fcntl64(int descriptor, int command, ...)
{
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    bool locks = command == F_SETLK || command == F_SETLKW || command == F_GETLK;
    if (locks && refused("SHIM_LOCKF"))
        return -1;
    int (*next)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl64");
    return next(descriptor, command, argument);
}

int fsync(int descriptor)
{
    struct stat about;
    bool folder = fstat(descriptor, &about) == 0 && S_ISDIR(about.st_mode);
    if (refused(folder ? "SHIM_SYNC_FOLDER" : "SHIM_SYNC"))
        return -1;
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return next(descriptor);
}
