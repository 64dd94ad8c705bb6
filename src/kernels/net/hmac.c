#include "net/hmac.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 64, WORDS = 8, ROUNDS = 64, LENGTH_AT = BLOCK - 8 };

struct sha256 {
    uint32_t state[WORDS];
    uint64_t bytes;
    unsigned char block[BLOCK];
};

/* FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64
 * primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, int bits) {
    return word >> bits | word << (32 - bits);
}

/* FIPS 180-4, 6.2.2: takes one block into the state. */
static void compress(struct sha256 *hash) {
    uint32_t w[ROUNDS], s[WORDS];
    memcpy(w, hash->block, BLOCK);
    for (int i = 0; i < BLOCK / 4; i++) {
        w[i] = be32toh(w[i]);
    }
    for (int i = BLOCK / 4; i < ROUNDS; i++) {
        uint32_t early = w[i - 15], late = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) +
               (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10);
    }
    memcpy(s, hash->state, sizeof s);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t first = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + choice +
                         constants[i] + w[i];
        uint32_t second = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + majority;
        memmove(&s[1], &s[0], (WORDS - 1) * sizeof s[0]);
        s[4] += first;
        s[0] = first + second;
    }
    for (int i = 0; i < WORDS; i++) {
        hash->state[i] += s[i];
    }
}

/* FIPS 180-4, 5.3.3: the same bits of the square roots of the first 8 primes. */
static struct sha256 sha256_begin(void) {
    return (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                     0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static void sha256_add(struct sha256 *hash, const void *data, size_t bytes) {
    const unsigned char *from = data;
    for (size_t i = 0; i < bytes; i++) {
        hash->block[hash->bytes++ % BLOCK] = from[i];
        if (hash->bytes % BLOCK == 0) {
            compress(hash);
        }
    }
}

static void sha256_end(struct sha256 *hash, unsigned char digest[HMAC_BYTES]) {
    uint64_t bits = htobe64(8 * hash->bytes);
    static const unsigned char one = 0x80, zero = 0;
    sha256_add(hash, &one, 1);
    while (hash->bytes % BLOCK != LENGTH_AT) {
        sha256_add(hash, &zero, 1);
    }
    sha256_add(hash, &bits, sizeof bits);
    for (int i = 0; i < WORDS; i++) {
        uint32_t word = htobe32(hash->state[i]);
        memcpy(digest + 4 * i, &word, sizeof word);
    }
}

void hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                 unsigned char digest[HMAC_BYTES]) {
    unsigned char inner[BLOCK] = {0}, outer[BLOCK];
    struct sha256 hash = sha256_begin();
    if (key_bytes > BLOCK) {
        sha256_add(&hash, key, key_bytes);
        sha256_end(&hash, inner);
    } else {
        memcpy(inner, key, key_bytes);
    }
    for (int i = 0; i < BLOCK; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    hash = sha256_begin();
    sha256_add(&hash, inner, BLOCK);
    sha256_add(&hash, data, bytes);
    sha256_end(&hash, digest);
    hash = sha256_begin();
    sha256_add(&hash, outer, BLOCK);
    sha256_add(&hash, digest, HMAC_BYTES);
    sha256_end(&hash, digest);
}

bool hmac_equal(const unsigned char left[HMAC_BYTES], const unsigned char right[HMAC_BYTES]) {
    volatile unsigned char different = 0;
    for (int i = 0; i < HMAC_BYTES; i++) {
        different = (unsigned char)(different | (left[i] ^ right[i]));
    }
    return different == 0;
}
