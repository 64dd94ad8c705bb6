#include "disk/order.h"

#include "common/random.h"

/*
 * Multiplying by an odd number, adding, and x ^= x >> s are each one-to-one on k-bit numbers, so
 * their chain is a permutation of 0 .. 2^k - 1. Values that are not below `records` pass through
 * the chain until one is
 * ("cycle walking"); 2^k < 2 records, so this takes less than two rounds on average.
 */
uint64_t order_at(const struct order *order, uint64_t operation) {
    uint64_t pass = operation / order->records, at = operation % order->records;
    if (!order->random || order->records == 1) {
        return at;
    }
    unsigned bits = 64u - (unsigned)__builtin_clzll(order->records - 1);
    uint64_t mask = UINT64_MAX >> (64 - bits), state = order->seed + pass;
    uint64_t first = splitmix64(&state) | 1, second = splitmix64(&state) | 1,
             third = splitmix64(&state) | 1;
    uint64_t shift = splitmix64(&state);
    do {
        at = (at + shift) & mask;
        at = (at * first) & mask;
        at ^= at >> (bits / 2 + 1);
        at = (at * second) & mask;
        at ^= at >> (bits / 3 + 1);
        at = (at * third) & mask;
        at ^= at >> (bits / 2 + 1);
    } while (at >= order->records);
    return at;
}
