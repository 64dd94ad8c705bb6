/*
 * Counts of unsigned values (latencies in ns) in logarithmic buckets: 128 per power of two, exact
 * below 256, so a percentile is within 1/128 = 0.8 % of the true value. Same idea as HdrHistogram
 * and fio's clat buckets. src/peakmark/tools/common.py reads and merges them.
 */
#ifndef PEAKMARK_HISTOGRAM_H
#define PEAKMARK_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SUB_BITS 7
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

/* 58 KiB; all zero is a valid empty histogram. */
struct histogram {
    uint64_t count;
    uint64_t minimum, maximum; /* exact; 0 when empty */
    double sum;
    uint64_t bucket[HISTOGRAM_BUCKETS];
};

/* Bucket of a value, and the least value that falls into a bucket. */
static inline unsigned histogram_index(uint64_t value) {
    if (value < (UINT64_C(1) << HISTOGRAM_SUB_BITS)) {
        return (unsigned)value;
    }
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
    return ((shift + 1) << HISTOGRAM_SUB_BITS) +
           (unsigned)((value >> shift) & ((1u << HISTOGRAM_SUB_BITS) - 1));
}
uint64_t histogram_lower(unsigned index);

static inline void histogram_add(struct histogram *histogram, uint64_t value) {
    histogram->minimum =
        histogram->count == 0 || value < histogram->minimum ? value : histogram->minimum;
    histogram->maximum = value > histogram->maximum ? value : histogram->maximum;
    histogram->count++;
    histogram->sum += (double)value;
    histogram->bucket[histogram_index(value)]++;
}

void histogram_clear(struct histogram *histogram);
void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * Least value that at least fraction (0..1) of all values do not exceed (nearest rank), by its rank
 * within its bucket, never outside minimum..maximum. 0 when empty.
 */
double histogram_percentile(const struct histogram *histogram, double fraction);
double histogram_mean(const struct histogram *histogram); /* exact; 0 when empty */

/*
 * The buckets as text, which the caller frees: runs of neighbours, separated by ";", each with the
 * index of its first bucket and then the counts: "1005 3 12 40;1010 2". NULL: no memory.
 */
char *histogram_text(const struct histogram *histogram);

#endif
