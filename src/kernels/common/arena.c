#include "common/arena.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/status.h"

bool arena_create(struct arena *arena, size_t bytes, bool huge) {
    size_t page = huge ? HUGE_PAGE : (size_t)sysconf(_SC_PAGESIZE);
    *arena = (struct arena){0};
    if (bytes == 0 || bytes > SIZE_MAX / 2) {
        errno = EINVAL;
        return false;
    }
    size_t usable = (bytes + page - 1) / page * page;
    size_t mapped = huge ? usable + HUGE_PAGE : usable;
    void *mapping = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
        return false;
    }
    uintptr_t first = ((uintptr_t)mapping + page - 1) / page * page;
    arena->base = (unsigned char *)mapping + (first - (uintptr_t)mapping);
    arena->bytes = usable;
    arena->mapping = mapping;
    arena->mapped = mapped;
#ifdef MADV_HUGEPAGE
    /* Refused where the kernel has no transparent huge pages: see arena_huge_bytes. */
    (void)madvise(arena->base, usable, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
    return true;
}

void arena_destroy(struct arena *arena) {
    if (arena->mapping != NULL) {
        munmap(arena->mapping, arena->mapped);
    }
    *arena = (struct arena){0};
}

/* Bytes of the arenas between two addresses. */
static size_t overlap_of(const struct arena *const *arenas, int count, uintptr_t from,
                         uintptr_t to) {
    size_t overlap = 0;
    for (int i = 0; i < count; i++) {
        const uintptr_t begin = (uintptr_t)arenas[i]->base, end = begin + arenas[i]->bytes;
        const uintptr_t low = from > begin ? from : begin, high = to < end ? to : end;
        overlap += low < high ? high - low : 0;
    }
    return overlap;
}

/* The kernel may merge neighbouring mappings, so an entry of smaps is counted as far as it overlaps
 * the arenas. */
size_t arena_huge_bytes(const struct arena *const *arenas, int count) {
    FILE *file = fopen("/proc/self/smaps", "re");
    if (file == NULL) {
        return 0;
    }
    char line[512];
    size_t huge = 0, overlap = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        uintptr_t from, to;
        size_t kib;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
            overlap = overlap_of(arenas, count, from, to);
        } else if (overlap > 0 && (sscanf(line, "AnonHugePages: %zu kB", &kib) == 1 ||
                                   sscanf(line, "Private_Hugetlb: %zu kB", &kib) == 1)) {
            const size_t bytes = kib << 10;
            huge += bytes < overlap ? bytes : overlap;
        }
    }
    fclose(file);
    return huge;
}

const char *arena_huge_policy(void) {
    static const char *const policies[] = {"always", "madvise", "never"};
    char text[128] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (file != NULL) {
        if (fgets(text, sizeof text, file) == NULL) {
            text[0] = '\0';
        }
        fclose(file);
    }
    for (int i = 0; i < 3; i++) {
        char bracketed[32];
        snprintf(bracketed, sizeof bracketed, "[%s]", policies[i]);
        if (strstr(text, bracketed) != NULL) {
            return policies[i];
        }
    }
    return "unknown";
}

/* A line of /proc/meminfo in bytes; 0 if unknown. */
static uint64_t meminfo(const char *wanted) {
    char line[256], name[64];
    uint64_t kib, bytes = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%63[^:]: %" SCNu64 " kB", name, &kib) == 2 && strcmp(name, wanted) == 0) {
            bytes = kib << 10;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

uint64_t memory_available(void) {
    return meminfo("MemAvailable");
}

void memory_need(uint64_t bytes, const char *options) {
    const uint64_t available = memory_available();
    if (available == 0 || bytes <= available) {
        return;
    }
    void (*fail)(const char *format, ...) = fail_measurement;
    if (bytes > meminfo("MemTotal")) {
        fail = fail_impossible;
    }
    fail("%" PRIu64 " bytes of memory are needed, but only %" PRIu64
         " are available: make %s smaller",
         bytes, available, options);
}
