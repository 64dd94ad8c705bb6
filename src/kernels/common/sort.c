#include "common/sort.h"

#include <stdlib.h>

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void sort_doubles(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
}
