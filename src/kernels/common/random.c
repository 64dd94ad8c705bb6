#include "common/random.h"

#include <string.h>

void random_seed(struct random_state *random, uint64_t seed, uint64_t stream) {
    uint64_t state = seed;
    state = splitmix64(&state) ^ (stream * UINT64_C(0xd1342543de82ef95));
    for (int i = 0; i < 4; i++) {
        random->s[i] = splitmix64(&state);
    }
}

/* The upper half of a product; the lower one is a * b. */
static uint64_t upper_half(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)a * b >> 64);
#else
    const uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    const uint64_t first = a_high * b_low + (a_low * b_low >> 32);
    const uint64_t second = a_low * b_high + (uint32_t)first;
    return a_high * b_high + (first >> 32) + (second >> 32);
#endif
}

uint64_t random_below(struct random_state *random, uint64_t bound) {
    uint64_t number = random_next(random);
    if (number * bound < bound) {
        const uint64_t least = (UINT64_C(0) - bound) % bound;
        while (number * bound < least) {
            number = random_next(random);
        }
    }
    return upper_half(number, bound);
}

void random_fill(struct random_state *random, void *buffer, size_t bytes) {
    unsigned char *at = buffer;
    while (bytes > 0) {
        uint64_t value = random_next(random);
        size_t part = bytes < sizeof value ? bytes : sizeof value;
        memcpy(at, &value, part);
        at += part;
        bytes -= part;
    }
}

void random_permutation(struct random_state *random, uint32_t *order, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = (uint32_t)random_below(random, (uint64_t)i + 1);
        order[i] = i; /* j may be i */
        order[i] = order[j];
        order[j] = i;
    }
}
