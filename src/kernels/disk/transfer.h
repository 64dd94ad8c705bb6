/* Whole reads and writes of a file at an offset. */
#ifndef PEAKMARK_DISK_TRANSFER_H
#define PEAKMARK_DISK_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum transfer { TRANSFER_READ, TRANSFER_WRITE, TRANSFER_WRITE_SYNC /* as with O_SYNC */ };

/* Moves all bytes; where the kernel moves fewer (a signal, a limit per call), the rest follows.
 * False: errno; EIO where it moved none. */
bool transfer_whole(int file, enum transfer kind, unsigned char *data, size_t size,
                    uint64_t offset);

#endif
