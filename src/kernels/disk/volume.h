/* The filesystem and the block device below a directory: names, alignment of direct I/O, sectors
 * moved so far. */
#ifndef PEAKMARK_DISK_VOLUME_H
#define PEAKMARK_DISK_VOLUME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct volume {
    char filesystem[32]; /* "ext4", "xfs", ..., or "0x1234" for a type that is not known */
    bool memory;         /* tmpfs, ramfs: the files lie in RAM */
    char device[64];     /* "vda": the whole disk; "" when the directory lies on no block device */
    char counters[160];  /* its statistics file; "" when there is none or when it does not count */
    uint64_t sector_bytes; /* logical block size of the device, 0 if not known */
    uint64_t free_bytes;   /* for users other than root */
};

/* Look at the filesystem of an open directory. False, with errno set, when the kernel does not
 * answer. */
bool volume_inspect(int directory, struct volume *volume);

/* Name of a statfs f_type ("ext4" for the type that ext2, ext3 and ext4 share), or NULL. */
const char *volume_filesystem_name(uint64_t type);

/* Offset alignment that O_DIRECT needs on an open file: as statx says it, else the device's logical
 * block, else 4096. `memory` receives the alignment of the buffer, never less than that of the
 * offset. */
uint32_t volume_alignment(int file, const struct volume *volume, uint32_t *memory);

/* Bytes read and written by the device since it came up. False when they can't be known. */
bool volume_counters(const struct volume *volume, uint64_t *read, uint64_t *written);

#endif
