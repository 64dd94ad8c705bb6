#include "common/histogram.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t histogram_lower(unsigned index) {
    unsigned group = index >> HISTOGRAM_SUB_BITS, shift = group > 0 ? group - 1 : 0;
    return (uint64_t)(index - (shift << HISTOGRAM_SUB_BITS)) << shift;
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

double histogram_percentile(const struct histogram *histogram, double fraction) {
    double rank = fmax(1, ceil(fraction * (double)histogram->count)), seen = 0;
    if (rank >= (double)histogram->count) {
        return (double)histogram->maximum;
    }
    unsigned i = 0;
    while (seen + (double)histogram->bucket[i] < rank) {
        seen += (double)histogram->bucket[i++];
    }
    double lower = (double)histogram_lower(i), width = (double)histogram_lower(i + 1) - 1 - lower;
    double value = lower + width * (rank - 0.5 - seen) / (double)histogram->bucket[i];
    return fmax((double)histogram->minimum, fmin(value, (double)histogram->maximum));
}

double histogram_mean(const struct histogram *histogram) {
    return histogram->count > 0 ? histogram->sum / (double)histogram->count : 0;
}

char *histogram_text(const struct histogram *histogram) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    for (unsigned i = 0, next = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (histogram->bucket[i] == 0) {
            continue;
        }
        if (next == 0 || i != next) {
            fprintf(out, "%s%u", next > 0 ? ";" : "", i);
        }
        fprintf(out, " %" PRIu64, histogram->bucket[i]);
        next = i + 1;
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
