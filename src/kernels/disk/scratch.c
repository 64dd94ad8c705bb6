#include "disk/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/status.h"

#define MARKER "peakmark-"

enum { REMOVAL_PASSES = 3 };

/* One run per process; global because a signal handler must reach it. */
static struct {
    int parent, directory;             /* both open while the directory exists */
    char name[sizeof MARKER "XXXXXX"]; /* of the private directory in parent */
    volatile sig_atomic_t files;       /* names that may exist */
    volatile sig_atomic_t exists;
    volatile sig_atomic_t ending; /* no empty file is created any more */
    volatile sig_atomic_t
        folders; /* that may exist in directory, each with files_of_folder names */
    volatile sig_atomic_t files_of_folder;
    int *folder; /* open directories */
} scratch;

/* Called in a signal handler too: nothing here but async-signal-safe functions (so no snprintf). */
static void file_name(int index, char name[static sizeof MARKER + 10]) {
    char digits[10];
    int count = 0;
    do {
        digits[count++] = (char)('0' + index % 10);
        index /= 10;
    } while (index > 0);
    memcpy(name, MARKER, sizeof MARKER - 1);
    for (int i = 0; i < count; i++) {
        name[sizeof MARKER - 1 + (size_t)i] = digits[count - 1 - i];
    }
    name[sizeof MARKER - 1 + (size_t)count] = '\0';
}

static void remove_files(int directory, int count) {
    for (int i = 0; i < count; i++) {
        char name[sizeof MARKER + 10];
        file_name(i, name);
        unlinkat(directory, name, 0);
    }
}

void scratch_remove(void) {
    if (!scratch.exists) {
        return;
    }
    scratch.ending = 1;
    for (int i = 0; i < scratch.folders; i++) {
        char name[sizeof MARKER + 10];
        file_name(i, name);
        /* A thread may be creating a file at this moment: then the folder is not empty yet. */
        bool removed = false;
        for (int pass = 0; pass < REMOVAL_PASSES && !removed; pass++) {
            if (scratch.folder[i] > 0) { /* else it was just made, and is empty */
                remove_files(scratch.folder[i], scratch.files_of_folder);
            }
            removed = unlinkat(scratch.directory, name, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY;
        }
    }
    remove_files(scratch.directory, scratch.files);
    unlinkat(scratch.parent, scratch.name, AT_REMOVEDIR);
    scratch.exists = 0;
}

static void remove_and_reraise(int number) {
    scratch_remove();
    signal(number, SIG_DFL);
    raise(number); /* delivered when the handler returns: the parent sees which signal ended us */
}

static void handle_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGXFSZ};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action = {.sa_handler = remove_and_reraise};
        sigfillset(&action.sa_mask);
        sigaction(numbers[i], &action, NULL);
    }
}

void scratch_create(const char *directory) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%sXXXXXX", directory, MARKER) >= (int)sizeof path) {
        fail_usage("--directory: the path is longer than %d bytes",
                   PATH_MAX - (int)sizeof scratch.name);
    }
    scratch.parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (scratch.parent < 0) {
        fail_usage("--directory: '%s' cannot be opened: %s; name a directory you may write to",
                   directory, strerror(errno));
    }
    /* A signal between making the directory and knowing its name would leave it behind. */
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    if (mkdtemp(path) == NULL) {
        fail_usage("--directory: no directory can be made in '%s': %s; name one you may write to",
                   directory, strerror(errno));
    }
    memcpy(scratch.name, strrchr(path, '/') + 1, sizeof scratch.name);
    scratch.directory =
        openat(scratch.parent, scratch.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (scratch.directory < 0) {
        int error = errno;
        unlinkat(scratch.parent, scratch.name, AT_REMOVEDIR);
        fail_measurement("'%s' was made but cannot be opened: %s", path, strerror(error));
    }
    flock(scratch.directory, LOCK_EX | LOCK_NB); /* tells the next run that its maker lives */
    scratch.exists = 1;
    atexit(scratch_remove);
    handle_signals();
    sigprocmask(SIG_SETMASK, &before, NULL);
}

int scratch_directory(void) {
    return scratch.directory;
}

int scratch_open(int index, bool *direct) {
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    char name[sizeof MARKER + 10];
    file_name(index, name);
    scratch.files = index + 1;
    int file = openat(scratch.directory, name, flags | (*direct ? O_DIRECT : 0), 0600);
    if (file < 0 && *direct && errno == EINVAL) {
        *direct = false;
        unlinkat(scratch.directory, name,
                 0); /* some filesystems refuse O_DIRECT after creating the file */
        file = openat(scratch.directory, name, flags, 0600);
    }
    if (file < 0) {
        fail_measurement("file %s cannot be created: %s", name, strerror(errno));
    }
    return file;
}

int scratch_open_shared(const char *path, bool *direct) {
    const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    int file = open(path, flags | (*direct ? O_DIRECT : 0), 0600);
    if (file < 0 && *direct && errno == EINVAL) {
        *direct = false;
        file = open(path, flags, 0600);
    }
    if (file < 0) {
        fail_measurement("file '%s' cannot be opened: %s", path, strerror(errno));
    }
    return file;
}

void scratch_make_folders(int folders, int files) {
    scratch.folder = calloc((size_t)folders, sizeof *scratch.folder);
    if (scratch.folder == NULL) {
        fail_measurement("no memory for %d folders", folders);
    }
    scratch.files_of_folder = files;
    for (int i = 0; i < folders; i++) {
        char name[sizeof MARKER + 10];
        file_name(i, name);
        scratch.folders = i + 1; /* before it is made: a signal may come right after */
        if (mkdirat(scratch.directory, name, 0700) == 0) {
            scratch.folder[i] =
                openat(scratch.directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        if (scratch.folder[i] <= 0) {
            int error = errno;
            unlinkat(scratch.directory, name, AT_REMOVEDIR);
            fail_measurement("folder %s cannot be made: %s", name, strerror(error));
        }
    }
}

bool scratch_create_empty(int folder, int index) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    char name[sizeof MARKER + 10];
    file_name(index, name);
    if (scratch.ending) {
        errno = ECANCELED;
        return false;
    }
    int file = openat(scratch.folder[folder], name, flags, 0600);
    return file >= 0 && close(file) == 0;
}

bool scratch_is_empty(int folder, int index) {
    char name[sizeof MARKER + 10];
    file_name(index, name);
#ifdef STATX_BASIC_STATS
    struct statx found;
    if (statx(scratch.folder[folder], name, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC,
              STATX_BASIC_STATS, &found) != 0) {
        return false;
    }
    mode_t mode = found.stx_mode;
    uint64_t size = found.stx_size;
#else /* musl before 1.2.5: a network file system may answer from its cache */
    struct stat found;
    if (fstatat(scratch.folder[folder], name, &found, AT_SYMLINK_NOFOLLOW) != 0) {
        return false;
    }
    mode_t mode = found.st_mode;
    uint64_t size = (uint64_t)found.st_size;
#endif
    errno = EIO;
    return S_ISREG(mode) && size == 0;
}

bool scratch_unlink(int folder, int index) {
    char name[sizeof MARKER + 10];
    file_name(index, name);
    return unlinkat(scratch.folder[folder], name, 0) == 0;
}
