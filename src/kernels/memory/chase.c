#include "chase.h"

#include "sweep.h"

static void **line(const struct chase *chase, uint32_t number) {
    return (void **)(void *)(chase->area + (size_t)number * LINE_BYTES);
}

/*
 * Sattolo's shuffle, in place: the pointers are the permutation. Line i first points to itself; swapping the
 * pointers of i and of a random earlier line joins i into the cycle of the lines before it.
 */
void chase_link(struct chase *chase, unsigned char *area, size_t bytes, struct random_state *random) {
    *chase = (struct chase){.area = area, .lines = (uint32_t)(bytes / LINE_BYTES)};
    for (uint32_t i = 0; i < chase->lines; i++) {
        *line(chase, i) = line(chase, i);
    }
    for (uint32_t i = 1; i < chase->lines; i++) {
        uint32_t j = (uint32_t)random_below(random, i);
        void *next = *line(chase, i);
        *line(chase, i) = *line(chase, j);
        *line(chase, j) = next;
    }
    chase->at = line(chase, 0);
}

/* The barrier keeps the compiler from loading ahead, dropping or merging loads; each is one mov from its own
 * result. */
#define HOP                                                                                                  \
    at = *at;                                                                                                \
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

const char *chase_verify(const struct chase *chase) {
    void **at = line(chase, 0);
    void **wanted = NULL;
    uint64_t rest = chase->hops % chase->lines;
    for (uint32_t hop = 0; hop < chase->lines; hop++) {
        wanted = hop == rest ? at : wanted;
        at = *at;
        if (at == line(chase, 0) && hop + 1 < chase->lines) {
            return "the pointers do not form one cycle over the whole area";
        }
    }
    if (at != line(chase, 0)) {
        return "the pointers do not lead back to the start";
    }
    return wanted == chase->at ? NULL : "the number of loads done is not the number counted";
}
