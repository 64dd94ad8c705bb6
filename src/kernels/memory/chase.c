#include "memory/chase.h"

static void **node(const struct chase *chase, uint64_t number) {
    return (void **)(void *)(chase->area + (size_t)number * chase->stride);
}

/*
 * Sattolo's shuffle, in place: the pointers are the permutation. Line i first points to itself;
 * swapping the pointers of i and of a random earlier line joins i into the cycle of the lines
 * before it.
 */
void chase_link(struct chase *chase, unsigned char *area, size_t bytes, size_t stride,
                struct random_state *random) {
    *chase = (struct chase){.area = area, .stride = stride, .nodes = bytes / stride};
    for (uint64_t i = 0; i < chase->nodes; i++) {
        *node(chase, i) = node(chase, i);
    }
    for (uint64_t i = 1; i < chase->nodes; i++) {
        uint64_t j = random_below(random, i);
        void *next = *node(chase, i);
        *node(chase, i) = *node(chase, j);
        *node(chase, j) = next;
    }
    chase->at = node(chase, 0);
}

/* The barrier keeps the compiler from loading ahead, dropping or merging loads; each is one mov
 * from the result of the one before. */
#define HOP                                                                                        \
    at = *at;                                                                                      \
    __asm__ volatile("" : "+r"(at) : : "memory");
#define HOP_4 HOP HOP HOP HOP

void chase_run(struct chase *chase, uint64_t hops) {
    void **at = chase->at;
    chase->hops += hops;
    for (; hops >= 16; hops -= 16) {
        HOP_4 HOP_4 HOP_4 HOP_4
    }
    for (; hops > 0; hops--) {
        HOP
    }
    chase->at = at;
}

/* Walks the cycle in the order of the links, at most one lap; what many laps do is known from the
 * rest of a division. */
const char *chase_verify(const struct chase *chase) {
    void **const start = node(chase, 0);
    void **at = start;
    for (uint64_t rest = chase->hops % chase->nodes; rest > 0; rest--) {
        at = *at;
        if (at == start) {
            return "the pointers return to the start before they went through the whole area";
        }
    }
    return at == chase->at ? NULL : "the number of loads done is not the number counted";
}
