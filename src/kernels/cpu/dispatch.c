/* Which kernel a workload takes on this CPU. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cpu/kernel.h"

/* LACKS_...: left out, as the toolchain cannot make it; see the Makefile. */
const struct kernel *const kernel_tables[] = {
#if defined(__x86_64__)
#ifndef LACKS_amx
    kernels_amx,
#endif
#ifndef LACKS_avx512fp16
    kernels_avx512fp16,
#endif
#ifndef LACKS_avx512bf16
    kernels_avx512bf16,
#endif
#ifndef LACKS_avx512vnni
    kernels_avx512vnni,
#endif
#ifndef LACKS_avx512
    kernels_avx512,
#endif
#ifndef LACKS_avxvnni
    kernels_avxvnni,
#endif
#ifndef LACKS_avx2
    kernels_avx2,
#endif
    kernels_sse2,
#elif defined(__aarch64__)
#ifndef LACKS_sve
    kernels_sve,
#endif
#ifndef LACKS_fp16
    kernels_fp16,
#endif
#ifndef LACKS_i8mm
    kernels_i8mm,
#endif
#ifndef LACKS_bf16
    kernels_bf16,
#endif
#ifndef LACKS_dotprod
    kernels_dotprod,
#endif
    kernels_neon,
#endif
    kernels_scalar,     NULL};

const struct kernel *kernel_find(const char *workload, enum isa isa, const char **reason) {
    static char text[256];
    const char *lacks = NULL;
    *reason = text;
    if (isa != ISA_COUNT && isa_left_out(isa, ISA_FEATURE_NONE)) {
        snprintf(text, sizeof text,
                 "cpubench was built without %s, which its compiler or assembler lacks: build it "
                 "with newer ones",
                 isa_name(isa));
        return NULL;
    }
    if (isa != ISA_COUNT && !isa_available(isa)) {
        snprintf(
            text, sizeof text,
            "this CPU or its operating system does not run %s; --isa auto takes the best it has",
            isa_name(isa));
        return NULL;
    }
    for (int table = 0; kernel_tables[table] != NULL; table++) {
        for (const struct kernel *kernel = kernel_tables[table]; kernel->workload != NULL;
             kernel++) {
            if (strcmp(kernel->workload, workload) != 0 ||
                (isa != ISA_COUNT && kernel->isa != isa)) {
                continue;
            }
            if (isa_available(kernel->isa) && isa_feature_available(kernel->feature)) {
                return kernel;
            }
            lacks = isa_feature_name(kernel->feature);
        }
    }
    if (lacks != NULL) {
        snprintf(text, sizeof text, "this CPU or its operating system has no %s, which %s needs",
                 lacks, workload);
    } else if (isa == ISA_COUNT && isa_built_without[0] != '\0') {
        snprintf(text, sizeof text,
                 "there is no kernel for %s: cpubench was built without%s, which its compiler or "
                 "assembler lacks",
                 workload, isa_built_without);
    } else {
        snprintf(text, sizeof text, "there is no kernel for %s with %s", workload, isa_name(isa));
    }
    return NULL;
}
