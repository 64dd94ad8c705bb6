/*
 * Plain C, as a student writes it: one multiplication and one addition at a time, compiled without
 * vectorisation (the Makefile's flags for *_scalar.c). Eight independent variables, so that it is
 * bound by throughput, not by latency.
 */
#include "cpu/kernel.inc"

#define KEEP_INTEGER(a) __asm__ volatile("" : "+r"(a))
#if defined(__x86_64__)
#define KEEP_FLOAT(a) __asm__ volatile("" : "+x"(a))
#elif defined(__aarch64__)
#define KEEP_FLOAT(a) __asm__ volatile("" : "+w"(a))
#else
#define KEEP_FLOAT(a) __asm__ volatile("" : "+m"(a))
#endif

#define STEP_INTEGER(a, x, y, TYPE)                                                                \
    a = (TYPE)(a * x + y);                                                                         \
    KEEP_INTEGER(a);
#define STEP_FLOAT(a, x, y)                                                                        \
    a = a * x + y;                                                                                 \
    KEEP_FLOAT(a);
#define STEP_I32(a, x, y) STEP_INTEGER(a, x, y, uint32_t)
#define STEP_I16(a, x, y) STEP_INTEGER(a, (unsigned)x, y, uint16_t)

DEFINE_KERNEL(dp, double, 8, STEP_FLOAT, NOTHING)
DEFINE_KERNEL(fp32, float, 8, STEP_FLOAT, NOTHING)
DEFINE_KERNEL(sp, uint32_t, 8, STEP_I32, NOTHING)
DEFINE_KERNEL(hp, uint16_t, 8, STEP_I16, NOTHING)
/* Bytes in registers of 32 bits, as compilers hold them, of which the lowest eight count: of bytes
 * clang keeps the factors on the stack and widens them in each pass. */
#undef AT_ANY_ADDRESS
#undef FETCH
#undef PUT
#define AT_ANY_ADDRESS(VECTOR)
#define FETCH(from, i) (((const unsigned char *)(const void *)(from))[i])
#define PUT(to, i, a) ((unsigned char *)(to))[i] = (unsigned char)(a)
DEFINE_KERNEL(qp, uint32_t, 8, STEP_I32, NOTHING)

/* a += x * y over four bytes each, x without and y with sign; the factors are hidden so that
 * products are not reused. Inlined into its two callers, of which one has no links: in any other
 * form clang lacks a register for the loop with a chain. */
static inline __attribute__((always_inline)) void dot(PACED_PARAMETERS) {
    uint32_t a[2];
    memcpy(a, start, sizeof a);
    uint32_t a0 = a[0], a1 = a[1];
    int x0 = operands->x[0][0], x1 = operands->x[0][1], x2 = operands->x[0][2],
        x3 = operands->x[0][3];
    int y0 = (int8_t)operands->y[0], y1 = (int8_t)operands->y[1];
    int y2 = (int8_t)operands->y[2], y3 = (int8_t)operands->y[3];
#define STEP_DOT(a)                                                                                \
    __asm__ volatile("" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3));                                 \
    a += (uint32_t)(x0 * y0 + x1 * y1 + x2 * y2 + x3 * y3);                                        \
    KEEP_INTEGER(a);
    if (links == 0) {
        for (uint64_t pass = 0; pass < passes; pass++) {
            STEP_DOT(a0)
            STEP_DOT(a1)
        }
    } else {
        for (uint64_t remaining = passes; remaining > 0; remaining -= 2) {
            STEP_DOT(a0)
            STEP_DOT(a1)
            STEP_DOT(a0)
            STEP_DOT(a1)
            CHAIN(links, chain);
        }
    }
    a[0] = a0;
    a[1] = a1;
    memcpy(result, a, sizeof a);
}

static void qpdot(RUN_PARAMETERS) {
    dot(passes, operands, start, result, 0, NULL);
}

static void qpdot_paced(PACED_PARAMETERS) {
    dot(passes, operands, start, result, links, chain);
}

const struct kernel kernels_scalar[] = {
    {"DP", ISA_SCALAR, ISA_FEATURE_NONE, "C: double a * x + y", RULE_CHAIN_F64, 8, 8, 2, 2, dp,
     dp_paced},
    {"FP32", ISA_SCALAR, ISA_FEATURE_NONE, "C: float a * x + y", RULE_CHAIN_F32, 4, 8, 2, 2, fp32,
     fp32_paced},
    /* A multiplication and an addition already are a mix. */
    {"DPMIX", ISA_SCALAR, ISA_FEATURE_NONE, "C: double a * x + y", RULE_CHAIN_F64, 8, 8, 2, 2, dp,
     dp_paced},
    {"FP32MIX", ISA_SCALAR, ISA_FEATURE_NONE, "C: float a * x + y", RULE_CHAIN_F32, 4, 8, 2, 2,
     fp32, fp32_paced},
    {"SP", ISA_SCALAR, ISA_FEATURE_NONE, "C: int32 a * x + y", RULE_CHAIN_I32, 4, 8, 2, 2, sp,
     sp_paced},
    {"HP", ISA_SCALAR, ISA_FEATURE_NONE, "C: int16 a * x + y", RULE_CHAIN_I16, 2, 8, 2, 2, hp,
     hp_paced},
    {"QP", ISA_SCALAR, ISA_FEATURE_NONE, "C: int8 a * x + y", RULE_CHAIN_I8, 1, 8, 2, 2, qp,
     qp_paced},
    {"QPDOT", ISA_SCALAR, ISA_FEATURE_NONE, "C: int32 a + 4 times int8 x * y", RULE_DOT_US, 4, 2, 8,
     8, qpdot, qpdot_paced},
    {0},
};
