/*
 * Instruction sets a kernel can be built for, and which of them this CPU and operating system run.
 */
#ifndef PEAKMARK_ISA_H
#define PEAKMARK_ISA_H

#include <stdbool.h>

enum isa { ISA_SCALAR, ISA_SSE2, ISA_AVX2, ISA_AVX512, ISA_NEON, ISA_COUNT };

/* Extensions that only some kernels need, beyond the ISA itself. */
enum isa_feature {
    ISA_FEATURE_NONE,
    ISA_FEATURE_AVXVNNI,
    ISA_FEATURE_AVX512VNNI,
    ISA_FEATURE_DOTPROD,
    ISA_FEATURE_AVX512BF16,
    ISA_FEATURE_AVX512FP16,
    ISA_FEATURE_AMX, /* of int8 and bfloat16; the first question asks the kernel for the tiles */
    ISA_FEATURE_FP16,
    ISA_FEATURE_I8MM,
    ISA_FEATURE_BF16,
    ISA_FEATURE_SVE /* with vectors of 512 bits */
};

/* For --isa: auto, scalar, sse2, avx2, avx512, neon. */
extern const char *const isa_choices[];

const char *isa_name(enum isa isa);
enum isa isa_from_name(const char *name); /* ISA_COUNT for auto */

/*
 * avx2 means AVX2 and FMA; avx512 means F, BW, DQ and VL. The operating system's support for the
 * registers (XCR0) is part of the answer: __builtin_cpu_supports looks at it.
 */
bool isa_available(enum isa isa);
bool isa_feature_available(enum isa_feature feature);

/* Whether this CPU runs it, but the programs were built without it, as the toolchain lacks it: then
 * not available. */
bool isa_left_out(enum isa isa, enum isa_feature feature);

/* What isa_left_out is true of and would be better than what is taken: "avx512", of dot products
 * also "AVX-VNNI"; NULL when nothing is. */
const char *isa_better_left_out(enum isa taken, enum isa_feature feature, bool dots);

/* What the programs were built without, whatever this CPU runs: "avxvnni"; "" when nothing is. */
extern const char isa_built_without[];

const char *isa_feature_name(enum isa_feature feature);

#endif
