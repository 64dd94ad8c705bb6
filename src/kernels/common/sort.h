/* Sorting of samples. */
#ifndef PEAKMARK_SORT_H
#define PEAKMARK_SORT_H

#include <stddef.h>

/* In ascending order; no value is NaN. */
void sort_doubles(double *values, size_t count);

/* Sorts at least one value and returns the median. */
double sort_median(double *values, size_t count);

#endif
