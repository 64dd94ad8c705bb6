#include "disk/transfer.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of linux/fs.h, which not every C library brings; nor has every one pwritev2. */
#ifndef RWF_SYNC
#define RWF_SYNC 4
#endif

static ssize_t transfer_once(int file, enum transfer kind, unsigned char *data, size_t size,
                             off_t offset) {
    if (kind == TRANSFER_WRITE_SYNC) {
        struct iovec part = {.iov_base = data, .iov_len = size};
        /* The kernel takes the offset in two words, of which one is enough where it has 64 bits. */
        const unsigned long low = (unsigned long)offset;
        const unsigned long high = (unsigned long)((uint64_t)offset >> 32);
        return syscall(SYS_pwritev2, file, &part, 1, low, high, RWF_SYNC);
    }
    return kind == TRANSFER_WRITE ? pwrite(file, data, size, offset)
                                  : pread(file, data, size, offset);
}

bool transfer_whole(int file, enum transfer kind, unsigned char *data, size_t size,
                    uint64_t offset) {
    while (size > 0) {
        ssize_t count = transfer_once(file, kind, data, size, (off_t)offset);
        if (count == 0) {
            errno = EIO;
            return false;
        }
        if (count < 0 && errno != EINTR) {
            return false;
        }
        if (count > 0) {
            data += count;
            size -= (size_t)count;
            offset += (uint64_t)count;
        }
    }
    return true;
}
