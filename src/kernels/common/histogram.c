#include "common/histogram.h"

#include <math.h>
#include <string.h>

uint64_t histogram_upper(unsigned index) {
    unsigned group = index >> HISTOGRAM_SUB_BITS;
    if (group == 0) {
        return index;
    }
    uint64_t mantissa =
        (UINT64_C(1) << HISTOGRAM_SUB_BITS) + (index & ((1u << HISTOGRAM_SUB_BITS) - 1));
    unsigned shift = group - 1;
    return (mantissa << shift) + ((UINT64_C(1) << shift) - 1);
}

void histogram_clear(struct histogram *histogram) {
    memset(histogram, 0, sizeof *histogram);
}

void histogram_merge(struct histogram *into, const struct histogram *from) {
    if (from->count == 0) {
        return;
    }
    into->minimum =
        into->count == 0 || from->minimum < into->minimum ? from->minimum : into->minimum;
    into->maximum = from->maximum > into->maximum ? from->maximum : into->maximum;
    into->count += from->count;
    into->sum += from->sum;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        into->bucket[i] += from->bucket[i];
    }
}

uint64_t histogram_percentile(const struct histogram *histogram, double fraction) {
    if (histogram->count == 0) {
        return 0;
    }
    double wanted = ceil(fraction * (double)histogram->count);
    uint64_t rank = wanted < 1 ? 1 : (uint64_t)wanted, seen = 0;
    rank = rank > histogram->count ? histogram->count : rank;
    if (rank == histogram->count) {
        return histogram->maximum;
    }
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->bucket[i];
        if (seen >= rank) {
            uint64_t upper = histogram_upper(i);
            upper = upper > histogram->maximum ? histogram->maximum : upper;
            return upper < histogram->minimum ? histogram->minimum : upper;
        }
    }
    return histogram->maximum;
}

double histogram_mean(const struct histogram *histogram) {
    return histogram->count > 0 ? histogram->sum / (double)histogram->count : 0;
}
