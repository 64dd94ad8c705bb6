/* HMAC-SHA-256 (RFC 2104 with FIPS 180-4), for the proof that the other side knows the key. */
#ifndef PEAKMARK_NET_HMAC_H
#define PEAKMARK_NET_HMAC_H

#include <stdbool.h>
#include <stddef.h>

enum { HMAC_BYTES = 32 };

void hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                 unsigned char digest[HMAC_BYTES]);

/* Takes the same time wherever the digests differ. */
bool hmac_equal(const unsigned char left[HMAC_BYTES], const unsigned char right[HMAC_BYTES]);

#endif
