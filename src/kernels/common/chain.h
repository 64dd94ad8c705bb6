/*
 * Chains of dependent loads: each takes the pointer that the one before has loaded, so it cannot
 * begin before that one has ended. Their latency in the first-level cache is a whole number of
 * cycles (clock_load_cycles).
 *
 * `pointer` holds the address of a cell that holds its own address. The clobber "memory" tells the
 * compiler that the asm reads the cell: otherwise it may drop the store that fills it. The cell as
 * an operand would do too, but takes clang another register, which the kernels do not have.
 *
 * CHAIN(links, pointer): `links` loads, at most CHAIN_LINKS_MAX, next to the work of a compute
 * kernel, which has no use for a pipe that loads: where the chain is the longer part, the time of a
 * pass gives the clock rate. The branches are the same in every pass, so they are always predicted;
 * they lie within one asm, because gcc moves and spills accumulators around branches that it sees.
 *
 * CHAIN_64(pointer): 64 loads and nothing else.
 */
#ifndef PEAKMARK_CHAIN_H
#define PEAKMARK_CHAIN_H

#define CHAIN_LINKS_MAX 127

#if defined(__x86_64__)
#define CHAIN_LOADS(count) ".rept " #count "\n\tmov (%0), %0\n\t.endr\n"
#define CHAIN_PART(count, after)                                                                   \
    "test $" #count ", %1\n\tjz " #after "f\n\t" CHAIN_LOADS(count) #after ":\n\t"
#define CHAIN(links, pointer)                                                                      \
    __asm__ volatile(CHAIN_PART(1, 1) CHAIN_PART(2, 2) CHAIN_PART(4, 3) CHAIN_PART(8, 4)           \
                         CHAIN_PART(16, 5) CHAIN_PART(32, 6) CHAIN_PART(64, 7)                     \
                     : "+r"(pointer)                                                               \
                     : "r"(links)                                                                  \
                     : "cc", "memory")
#elif defined(__aarch64__)
#define CHAIN_LOADS(count) ".rept " #count "\n\tldr %0, [%0]\n\t.endr\n"
#define CHAIN_PART(bit, count, after)                                                              \
    "tbz %w1, #" #bit ", " #after "f\n\t" CHAIN_LOADS(count) #after ":\n\t"
#define CHAIN(links, pointer)                                                                      \
    __asm__ volatile(CHAIN_PART(0, 1, 1) CHAIN_PART(1, 2, 2) CHAIN_PART(2, 4, 3)                   \
                         CHAIN_PART(3, 8, 4) CHAIN_PART(4, 16, 5) CHAIN_PART(5, 32, 6)             \
                             CHAIN_PART(6, 64, 7)                                                  \
                     : "+r"(pointer)                                                               \
                     : "r"(links)                                                                  \
                     : "memory")
#else
#define CHAIN(links, pointer) (void)(links), (void)(pointer)
#endif

#ifdef CHAIN_LOADS
#define CHAIN_64(pointer) __asm__ volatile(CHAIN_LOADS(64) : "+r"(pointer) : : "memory")
#else
#define CHAIN_64(pointer) (void)(pointer)
#endif

#endif
