/*
 * Pseudo-random numbers: SplitMix64 (Steele, Lea, Flood 2014) makes seeds, xoshiro256** (Blackman,
 * Vigna 2018) the stream. Same seed, same numbers on every machine. Not for secrets.
 */
#ifndef PEAKMARK_RANDOM_H
#define PEAKMARK_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random_state {
    uint64_t s[4];
};

static inline uint64_t splitmix64(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/*
 * Streams of one seed (one per thread) do not overlap in practice: each starts from another
 * SplitMix64 point.
 */
void random_seed(struct random_state *random, uint64_t seed, uint64_t stream);

static inline uint64_t random_next(struct random_state *random) {
    uint64_t *s = random->s;
    uint64_t x = s[1] * 5, result = ((x << 7) | (x >> 57)) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* Uniform in 0 .. bound - 1, bound > 0, without bias (Lemire 2019). */
uint64_t random_below(struct random_state *random, uint64_t bound);

/* Fills bytes that no compressor or deduplicating device can shrink. */
void random_fill(struct random_state *random, void *buffer, size_t bytes);

/* order = a random permutation of 0 .. count - 1 (Fisher-Yates). */
void random_permutation(struct random_state *random, uint32_t *order, uint32_t count);

#endif
