/*
 * A compute kernel: `accumulators` independent vectors kept in registers, each taking one step (a
 * multiply and an add on every lane, in a mix further additions) per pass. Even passes use operand
 * x[0], odd ones x[1].
 *
 * Counting: one operation is one multiplication or one addition on one lane, a fused multiply-add
 * is two. Only arithmetic that belongs to the workload counts; shifts, masks, copies and the
 * multiplication by one inside the emulated dot product do not.
 */
#ifndef PEAKMARK_CPU_KERNEL_H
#define PEAKMARK_CPU_KERNEL_H

#include <stdint.h>

#include "common/isa.h"

/* A tile of AMX: 16 rows of 64 bytes. */
#define TILE_ROWS 16
#define TILE_BYTES 1024
#define VECTOR_BYTES_MAX TILE_BYTES
#define ACCUMULATORS_MAX 24
#define STATE_BYTES_MAX (5 * TILE_BYTES)

/*
 * Passes of one call, about 50 us: the stop flag is checked between calls. Each call begins at the
 * same start values, so that single precision stays exact and every call must end at the same
 * result. Even.
 */
#define PASSES_PER_CALL 32766

/* What a step does to a lane a, for the reference. Integers wrap unless noted. */
enum rule {
    RULE_CHAIN_F64, /* a * x + y */
    RULE_CHAIN_F32,
    RULE_CHAIN_I32,
    RULE_CHAIN_I16,
    RULE_CHAIN_I8,
    RULE_ADD_F64, /* a + x * y: the only fused form on NEON */
    RULE_ADD_F32,
    RULE_ADD_I32,
    RULE_ADD_I16,
    RULE_ADD_I8,
    RULE_MIX_F64, /* y - a * x, then - y in even passes and + y in odd ones; all x are 1 */
    RULE_MIX_F32,
    RULE_THIN_MIX_F64, /* a * x + y, in every second pass then + y: in even passes of accumulators
                          of even number, in odd passes of the others */
    RULE_THIN_MIX_F32,
    RULE_ADD_MIX_F64, /* a + x * y, then + y */
    RULE_ADD_MIX_F32,
    RULE_PAIRS,  /* 16-bit lane: saturate(u8 a0 * s8 x0 + u8 a1 * s8 x1) + y, y 16 bits (vpmaddubsw,
                    vpaddw) */
    RULE_DOT_US, /* 32-bit lane: a + sum of four u8 x * s8 y */
    RULE_DOT_SS, /* 32-bit lane: a + sum of four s8 x * s8 y */
    RULE_GROW_F16,   /* a + a * x, rounded to half precision */
    RULE_DOT_BF16,   /* float lane: a + sum of two bfloat16 x * y */
    RULE_MATRIX_SS,  /* 32-bit lane in row i and column j: a + row i of x (s8) * column j of y */
    RULE_MATRIX_BF16 /* the same of bfloat16, into float */
};

struct operands {
    _Alignas(64) unsigned char x[2][VECTOR_BYTES_MAX];
    _Alignas(64) unsigned char y[VECTOR_BYTES_MAX];
};

/* passes: even. start, result: accumulators x vector_bytes bytes, aligned to 64. */
typedef void kernel_function(uint64_t passes, const struct operands *operands, const void *start,
                             void *result);

/*
 * The same with `links` (0 to CHAIN_LINKS_MAX) dependent loads in every two passes, see
 * common/chain.h; `chain` points to a cell that holds its own address. In the woven kernels the
 * first two passes have none.
 */
typedef void paced_function(uint64_t passes, const struct operands *operands, const void *start,
                            void *result, unsigned links, void *chain);

struct kernel {
    const char *workload; /* QP, DP ...; NULL ends a table */
    enum isa isa;
    enum isa_feature feature;
    const char *instruction; /* what a step executes */
    enum rule rule;
    unsigned vector_bytes;
    unsigned accumulators;
    unsigned operations; /* of one step on one accumulator, all lanes; of a thin mix on average */
    double instructions; /* of one step, likewise */
    kernel_function *run;
    paced_function *paced; /* the same steps with a chain, which gives the clock rate: see pace.h */
};

/* One table per file of an instruction set; within a workload the better row comes first. */
extern const struct kernel kernels_scalar[];
extern const struct kernel kernels_sse2[];
extern const struct kernel kernels_avx2[];
extern const struct kernel kernels_avxvnni[];
extern const struct kernel kernels_avx512[];
extern const struct kernel kernels_avx512vnni[];
extern const struct kernel kernels_avx512bf16[];
extern const struct kernel kernels_avx512fp16[];
extern const struct kernel kernels_amx[];
extern const struct kernel kernels_neon[];
extern const struct kernel kernels_dotprod[];
extern const struct kernel kernels_fp16[];
extern const struct kernel kernels_i8mm[];
extern const struct kernel kernels_bf16[];
extern const struct kernel kernels_sve[];

/* All tables of this architecture, best first, NULL-terminated. */
extern const struct kernel *const kernel_tables[];

/*
 * Best kernel of the workload that this CPU runs; isa ISA_COUNT means any. NULL when there is none,
 * with *reason the reason.
 */
const struct kernel *kernel_find(const char *workload, enum isa isa, const char **reason);

/*
 * The fastest on this CPU of the kernels that mix operations in other shares: those that follow
 * `kernel` in its table with the same workload. Which mix keeps all pipes busy depends on the
 * design. Under a millisecond. A workload without mixes keeps its kernel.
 */
const struct kernel *kernel_fastest(const struct kernel *kernel);

/* Operands and start values for a rule, from seed and stream: exact in floating point for
 * PASSES_PER_CALL passes. */
void reference_inputs(const struct kernel *kernel, uint64_t seed, uint64_t stream,
                      struct operands *operands, void *start);

/* The same computation in plain C, lane by lane. */
void reference_run(const struct kernel *kernel, uint64_t passes, const struct operands *operands,
                   const void *start, void *result);

#endif
