/*
 * A chain of dependent loads beside the work: each takes the pointer that the one before has loaded, so it
 * cannot begin before that one has ended, and no compute kernel wants a pipe that loads. Its latency in the
 * first-level cache is a whole number of cycles (clock_load_cycles), so where the chain is the longer part
 * the time of a pass tells the clock.
 *
 * CHAIN(links, pointer): `links` loads, at most CHAIN_LINKS_MAX. The branches are the same in every pass, so
 * they are always foretold; they lie within one asm, because gcc moves and spills accumulators around
 * branches that it sees.
 */
#ifndef PEAKMARK_CPU_CHAIN_H
#define PEAKMARK_CPU_CHAIN_H

#define CHAIN_LINKS_MAX 63

#if defined(__x86_64__)
#define CHAIN_PART(count, after)                                                                             \
    "test $" #count ", %1\n\tjz " #after "f\n\t.rept " #count "\n\tmov (%0), %0\n\t.endr\n" #after ":\n\t"
#define CHAIN(links, pointer)                                                                                \
    __asm__ volatile(CHAIN_PART(1, 1) CHAIN_PART(2, 2) CHAIN_PART(4, 3) CHAIN_PART(8, 4) CHAIN_PART(16, 5)   \
                         CHAIN_PART(32, 6)                                                                   \
                     : "+r"(pointer)                                                                         \
                     : "r"(links)                                                                            \
                     : "cc")
#elif defined(__aarch64__)
#define CHAIN_PART(bit, count, after)                                                                        \
    "tbz %w1, #" #bit ", " #after "f\n\t.rept " #count "\n\tldr %0, [%0]\n\t.endr\n" #after ":\n\t"
#define CHAIN(links, pointer)                                                                                \
    __asm__ volatile(CHAIN_PART(0, 1, 1) CHAIN_PART(1, 2, 2) CHAIN_PART(2, 4, 3) CHAIN_PART(3, 8, 4)         \
                         CHAIN_PART(4, 16, 5) CHAIN_PART(5, 32, 6)                                           \
                     : "+r"(pointer)                                                                         \
                     : "r"(links))
#else
#define CHAIN(links, pointer) (void)(links), (void)(pointer)
#endif

#endif
