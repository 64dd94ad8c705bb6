/* Which sweeper this CPU takes. */
#include "sweep.h"

const struct sweeper *sweeper_find(enum isa isa) {
    static const struct sweeper *const sweepers[] = {
#if defined(__x86_64__)
        &sweeper_avx512,
        &sweeper_avx2,
        &sweeper_sse2,
#elif defined(__aarch64__)
        &sweeper_neon,
#endif
        &sweeper_scalar,
    };
    for (size_t i = 0; i < sizeof sweepers / sizeof sweepers[0]; i++) {
        if ((isa == ISA_COUNT || sweepers[i]->isa == isa) && isa_available(sweepers[i]->isa)) {
            return sweepers[i];
        }
    }
    return NULL;
}
