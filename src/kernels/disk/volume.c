#include "disk/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

/* linux/magic.h lacks the network and cluster filesystems that matter here; the numbers never
 * change. */
static const struct {
    uint64_t type;
    const char *name;
} filesystems[] = {
    {0xef53, "ext4"},        {0x58465342, "xfs"},      {0x9123683e, "btrfs"},
    {0x794c7630, "overlay"}, {0x01021994, "tmpfs"},    {0x858458f6, "ramfs"},
    {0x6969, "nfs"},         {0x0bd00bd0, "lustre"},   {0x47504653, "gpfs"},
    {0x65735546, "fuse"},    {0x19830326, "beegfs"},   {0x2fc12fc1, "zfs"},
    {0xf2f52010, "f2fs"},    {0xff534d42, "cifs"},     {0xfe534d42, "smb2"},
    {0x00c36400, "ceph"},    {0xca451a4e, "bcachefs"}, {0x01161970, "gfs2"},
    {0x7461636f, "ocfs2"},   {0x20030528, "orangefs"}, {0x5346414f, "afs"},
    {0x01021997, "9p"},      {0x4d44, "vfat"},         {0x2011bab0, "exfat"},
    {0x3153464a, "jfs"},     {0x52654973, "reiserfs"}, {0x73717368, "squashfs"},
    {0xaad7aaea, "panfs"},   {0x6a656a63, "virtiofs"},
};

const char *volume_filesystem_name(uint64_t type) {
    for (size_t i = 0; i < sizeof(filesystems) / sizeof(filesystems[0]); i++) {
        if (filesystems[i].type == type) {
            return filesystems[i].name;
        }
    }
    return NULL;
}

/* First unsigned number of a small file, such as those of sysfs. */
static bool read_number(const char *path, uint64_t *number) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool ok = fscanf(file, "%" SCNu64, number) == 1;
    fclose(file);
    return ok;
}

/*
 * /sys/dev/block/MAJOR:MINOR leads to the device's directory; a partition lies inside its disk's
 * directory.
 */
static void find_device(dev_t number, struct volume *volume) {
    char link[64], path[PATH_MAX + 64], disk[PATH_MAX];
    snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(number), minor(number));
    if (realpath(link, disk) == NULL) {
        return; /* an anonymous device: btrfs, overlay, network filesystems, tmpfs */
    }
    struct stat status;
    snprintf(path, sizeof(path), "%s/partition", disk);
    if (stat(path, &status) == 0) {
        memcpy(path, disk, sizeof(disk));
        snprintf(disk, sizeof(disk), "%s", dirname(path));
    }
    const char *name = strrchr(disk, '/');
    snprintf(volume->device, sizeof(volume->device), "%.63s", name == NULL ? disk : name + 1);
    snprintf(path, sizeof(path), "%s/queue/logical_block_size", disk);
    if (!read_number(path, &volume->sector_bytes)) {
        volume->sector_bytes = 0;
    }
    /* With iostats off the counters stand still, which would look like a cache. */
    uint64_t counting;
    snprintf(path, sizeof(path), "%s/queue/iostats", disk);
    if (!read_number(path, &counting) || counting != 0) {
        snprintf(volume->counters, sizeof(volume->counters), "/sys/class/block/%.63s/stat",
                 volume->device);
    }
}

bool volume_inspect(int directory, struct volume *volume) {
    struct statfs filesystem;
    struct stat status;
    memset(volume, 0, sizeof(*volume));
    if (fstatfs(directory, &filesystem) != 0 || fstat(directory, &status) != 0) {
        return false;
    }
    uint64_t type =
        (uint64_t)filesystem.f_type & 0xffffffffu; /* f_type is signed on some machines */
    const char *name = volume_filesystem_name(type);
    if (name != NULL) {
        snprintf(volume->filesystem, sizeof(volume->filesystem), "%s", name);
    } else {
        snprintf(volume->filesystem, sizeof(volume->filesystem), "0x%" PRIx64, type);
    }
    volume->memory =
        strcmp(volume->filesystem, "tmpfs") == 0 || strcmp(volume->filesystem, "ramfs") == 0;
    volume->free_bytes = (uint64_t)filesystem.f_bavail * (uint64_t)filesystem.f_bsize;
    find_device(status.st_dev, volume);
    return true;
}

uint32_t volume_alignment(int file, const struct volume *volume, uint32_t *memory) {
    uint32_t offset = 0;
    *memory = 0;
#ifdef STATX_DIOALIGN
    struct statx status;
    if (statx(file, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
        (status.stx_mask & STATX_DIOALIGN) != 0) {
        offset = status.stx_dio_offset_align;
        *memory = status.stx_dio_mem_align;
    }
#else
    (void)file;
#endif
    if (offset == 0) {
        offset = volume->sector_bytes != 0 ? (uint32_t)volume->sector_bytes : 4096;
    }
    if (*memory < offset) {
        *memory = offset;
    }
    return offset;
}

bool volume_counters(const struct volume *volume, uint64_t *read, uint64_t *written) {
    if (volume->counters[0] == '\0') {
        return false;
    }
    FILE *file = fopen(volume->counters, "re");
    if (file == NULL) {
        return false;
    }
    /* read I/Os, merges, sectors, ms; write I/Os, merges, sectors, ms; a sector is 512 bytes
     * whatever the device. */
    uint64_t sectors_read, sectors_written;
    bool ok = fscanf(file, "%*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64, &sectors_read,
                     &sectors_written) == 2;
    fclose(file);
    if (ok) {
        *read = sectors_read * 512;
        *written = sectors_written * 512;
    }
    return ok;
}
