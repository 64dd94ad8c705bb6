#include "common/sort.h"

#include <stdlib.h>

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void sort_doubles(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
}

double sort_median(double *values, size_t count) {
    sort_doubles(values, count);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}
