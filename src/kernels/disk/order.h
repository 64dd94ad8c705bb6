/*
 * In which order the records of a file are visited: one after the other, or in a random order in
 * which every record comes once before any comes twice. Computed, not stored: a file of 2^40
 * records needs no table.
 */
#ifndef PEAKMARK_DISK_ORDER_H
#define PEAKMARK_DISK_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct order {
    uint64_t records; /* > 0 */
    uint64_t seed;
    bool random;
};

/* The record that operation 0, 1, 2, ... works on; operation / records is the pass, each in another
 * order. */
uint64_t order_at(const struct order *order, uint64_t operation);

#endif
