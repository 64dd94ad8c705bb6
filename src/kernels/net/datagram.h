/*
 * What every datagram of a throughput test begins with, and the socket options that join and cut
 * datagrams.
 */
#ifndef PEAKMARK_NET_DATAGRAM_H
#define PEAKMARK_NET_DATAGRAM_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

/* linux/udp.h; older headers of the C library lack them. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { DATAGRAM_HELLO = 0x6f6c6c65, DATAGRAM_DATA = 0x61746164 };

/* Datagrams of one system call; of large ones fewer, so that a stream's buffer has 1 MiB at most.
 */
enum { DATAGRAM_BATCH = 64, DATAGRAM_BATCH_BYTES = 1 << 20 };

static inline unsigned datagram_batch(uint64_t message) {
    return message * DATAGRAM_BATCH <= DATAGRAM_BATCH_BYTES
               ? DATAGRAM_BATCH
               : (unsigned)(DATAGRAM_BATCH_BYTES / message);
}

/* Numbers are little-endian on the network, which costs nothing on x86-64 and AArch64. */
struct datagram {
    uint64_t run;
    uint64_t number;
    uint32_t stream;
    uint32_t kind; /* DATAGRAM_HELLO or DATAGRAM_DATA */
};

static inline struct datagram datagram_make(uint64_t run, uint64_t number, int stream,
                                            uint32_t kind) {
    return (struct datagram){.run = htole64(run),
                             .number = htole64(number),
                             .stream = htole32((uint32_t)stream),
                             .kind = htole32(kind)};
}

static inline uint64_t datagram_number(const struct datagram *datagram) {
    return le64toh(datagram->number);
}

static inline bool datagram_is(const struct datagram *datagram, uint64_t run, int stream,
                               uint32_t kind) {
    return le64toh(datagram->run) == run && le32toh(datagram->stream) == (uint32_t)stream &&
           le32toh(datagram->kind) == kind;
}

#endif
