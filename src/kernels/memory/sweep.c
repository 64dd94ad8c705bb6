/* Which sweeper this CPU takes, and what the C library has instead. */
#include "memory/sweep.h"

#include <string.h>

/* LACKS_...: left out, as the toolchain cannot make it; see the Makefile. */
const struct sweeper *const sweepers[] = {
#if defined(__x86_64__)
#ifndef LACKS_avx512
    &sweeper_avx512,
#endif
#ifndef LACKS_avx2
    &sweeper_avx2,
#endif
    &sweeper_sse2,
#elif defined(__aarch64__)
    &sweeper_neon,
#endif
    &sweeper_scalar, NULL};

const struct sweeper *sweeper_find(enum isa isa) {
    for (int i = 0; sweepers[i] != NULL; i++) {
        if ((isa == ISA_COUNT || sweepers[i]->isa == isa) && isa_available(sweepers[i]->isa)) {
            return sweepers[i];
        }
    }
    return NULL;
}

uint64_t sweep_sum(const unsigned char *area, size_t bytes) {
    uint64_t sum = 0, word;
    for (size_t at = 0; at < bytes; at += sizeof word) {
        memcpy(&word, area + at, sizeof word);
        sum += word;
    }
    return sum;
}

uint64_t sweep_copy_libc(const struct sweep *s) {
    for (uint64_t i = 0; i < s->count; i++) {
        const size_t offset =
            (s->order != NULL ? s->order[s->first + i] : s->first + i) * s->stride;
        memcpy(s->target + offset, s->source + offset, s->block);
        __asm__ volatile("" ::: "memory"); /* a repeated copy of the same block must be done */
    }
    return 0;
}

uint64_t sweep_write_libc(const struct sweep *s) {
    for (uint64_t i = 0; i < s->count; i++) {
        const size_t offset =
            (s->order != NULL ? s->order[s->first + i] : s->first + i) * s->stride;
        memset(s->target + offset, (int)((s->value + i) & 0xff), s->block);
        __asm__ volatile("" ::: "memory");
    }
    return 0;
}
