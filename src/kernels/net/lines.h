/* Memory of threads that write side by side. */
#ifndef PEAKMARK_NET_LINES_H
#define PEAKMARK_NET_LINES_H

#include <stdlib.h>
#include <string.h>

/* Alignment, in bytes, of what one thread writes for each message: CPUs fetch two lines of 64 bytes
 * at once, and a line that two CPUs write costs each of them a transfer for each message. */
enum { LINES_BYTES = 128 };

/* `count` structs aligned to LINES_BYTES, all zero; NULL when there is no memory. */
static inline void *lines_allocate(size_t count, size_t bytes) {
    void *memory = aligned_alloc(LINES_BYTES, count * bytes);
    return memory == NULL ? NULL : memset(memory, 0, count * bytes);
}

#endif
