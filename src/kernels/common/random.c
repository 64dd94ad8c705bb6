#include "common/random.h"

#include <string.h>

void random_seed(struct random_state *random, uint64_t seed, uint64_t stream) {
    uint64_t state = seed;
    state = splitmix64(&state) ^ (stream * UINT64_C(0xd1342543de82ef95));
    for (int i = 0; i < 4; i++) {
        random->s[i] = splitmix64(&state);
    }
}

uint64_t random_below(struct random_state *random, uint64_t bound) {
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)random_next(random) * bound;
    if ((uint64_t)product < bound) {
        uint64_t least = (UINT64_C(0) - bound) % bound;
        while ((uint64_t)product < least) {
            product = (wide)random_next(random) * bound;
        }
    }
    return (uint64_t)(product >> 64);
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
