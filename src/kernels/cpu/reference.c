/*
 * What the kernels must compute, lane by lane in plain C, and inputs for which that is exact.
 *
 * Floating point: the chain doubles and halves in turn (x = 2, then 1/2), so two passes add 1.5 y;
 * start values lie in [1, 1.25) and y is so small that a stays below 2. All values are multiples of
 * a step that the mantissa holds, so every result is exact, whether fused or not, never subnormal,
 * and one lost pass changes it.
 */
#include <stdint.h>
#include <string.h>

#include "common/random.h"
#include "cpu/kernel.h"

static unsigned lane_bytes(enum rule rule) {
    switch (rule) {
    case RULE_CHAIN_F64:
    case RULE_ADD_F64:
        return 8;
    case RULE_CHAIN_I16:
    case RULE_ADD_I16:
    case RULE_PAIRS:
        return 2;
    case RULE_CHAIN_I8:
    case RULE_ADD_I8:
        return 1;
    case RULE_CHAIN_F32:
    case RULE_ADD_F32:
    case RULE_CHAIN_I32:
    case RULE_ADD_I32:
    case RULE_DOT_US:
    case RULE_DOT_SS:
        return 4;
    }
    return 0; /* a rule that is none; the compiler warns of one that is not named above */
}

static double whole_below(struct random_state *random, uint64_t bound) {
    return (double)(1 + random_below(random, bound - 1));
}

/* Values in 1/2^50 (start, y of the chain) or products of two in 1/2^20: all bits of a double are
 * in use. */
static void fill_f64(struct random_state *random, enum rule rule, unsigned lane,
                     struct operands *operands) {
    double x[2] = {2.0, 0.5}, y = whole_below(random, UINT64_C(1) << 34) * 0x1p-49;
    if (rule == RULE_ADD_F64) {
        x[0] = whole_below(random, 1 << 12) * 0x1p-20;
        x[1] = whole_below(random, 1 << 12) * 0x1p-20;
        y = whole_below(random, 1 << 12) * 0x1p-20;
    }
    memcpy(operands->x[0] + lane * 8, &x[0], 8);
    memcpy(operands->x[1] + lane * 8, &x[1], 8);
    memcpy(operands->y + lane * 8, &y, 8);
}

static void fill_f32(struct random_state *random, enum rule rule, unsigned lane,
                     struct operands *operands) {
    float x[2] = {2.0f, 0.5f}, y = (float)(whole_below(random, 50) * 0x1p-21);
    if (rule == RULE_ADD_F32) {
        x[0] = (float)(whole_below(random, 10) * 0x1p-11);
        x[1] = (float)(whole_below(random, 10) * 0x1p-11);
        y = (float)(whole_below(random, 10) * 0x1p-11);
    }
    memcpy(operands->x[0] + lane * 4, &x[0], 4);
    memcpy(operands->x[1] + lane * 4, &x[1], 4);
    memcpy(operands->y + lane * 4, &y, 4);
}

/* Odd factors keep an integer chain from dying out at zero. */
static void make_odd(unsigned char *x, unsigned lane) {
    for (unsigned i = 0; i < VECTOR_BYTES_MAX; i += lane) {
        x[i] |= 1; /* little endian: the low byte */
    }
}

void reference_inputs(const struct kernel *kernel, uint64_t seed, uint64_t stream,
                      struct operands *operands, void *start) {
    struct random_state random;
    random_seed(&random, seed, stream);
    unsigned width = lane_bytes(kernel->rule), bytes = kernel->vector_bytes * kernel->accumulators;
    random_fill(&random, operands, sizeof *operands);
    random_fill(&random, start, bytes);
    switch (kernel->rule) {
    case RULE_CHAIN_F64:
    case RULE_ADD_F64:
        for (unsigned lane = 0; lane < VECTOR_BYTES_MAX / 8; lane++) {
            fill_f64(&random, kernel->rule, lane, operands);
        }
        for (unsigned at = 0; at < bytes; at += 8) {
            double value = 1.0 + whole_below(&random, UINT64_C(1) << 36) * 0x1p-38;
            memcpy((unsigned char *)start + at, &value, 8);
        }
        break;
    case RULE_CHAIN_F32:
    case RULE_ADD_F32:
        for (unsigned lane = 0; lane < VECTOR_BYTES_MAX / 4; lane++) {
            fill_f32(&random, kernel->rule, lane, operands);
        }
        for (unsigned at = 0; at < bytes; at += 4) {
            float value = (float)(1.0 + whole_below(&random, 1 << 20) * 0x1p-22);
            memcpy((unsigned char *)start + at, &value, 4);
        }
        break;
    case RULE_DOT_US:
    case RULE_DOT_SS:
        /* Seven bits without sign: two products of x and y never saturate the 16-bit sum of the
         * emulation. */
        for (unsigned i = 0; i < VECTOR_BYTES_MAX; i++) {
            operands->x[0][i] &= 0x7f;
        }
        memcpy(operands->x[1], operands->x[0], sizeof operands->x[1]);
        break;
    default:
        make_odd(operands->x[0], width);
        make_odd(operands->x[1], width);
    }
}

#define STEPS(TYPE, EXPRESSION)                                                                    \
    do {                                                                                           \
        TYPE a, x[2], y;                                                                           \
        memcpy(&a, at, sizeof a);                                                                  \
        memcpy(&x[0], x0, sizeof a);                                                               \
        memcpy(&x[1], x1, sizeof a);                                                               \
        memcpy(&y, y0, sizeof a);                                                                  \
        for (uint64_t pass = 0; pass < passes; pass++) {                                           \
            const TYPE f = x[pass & 1];                                                            \
            a = (TYPE)(EXPRESSION);                                                                \
        }                                                                                          \
        memcpy(at, &a, sizeof a);                                                                  \
    } while (0)

/* One 16-bit lane of vpmaddubsw and vpaddw. */
static uint16_t pairs(uint16_t a, uint16_t x, uint16_t y) {
    int sum = (a & 0xff) * (int8_t)(x & 0xff) + (a >> 8) * (int8_t)(x >> 8);
    sum = sum > INT16_MAX ? INT16_MAX : sum < INT16_MIN ? INT16_MIN : sum;
    return (uint16_t)(sum + y);
}

static uint32_t dot(uint32_t x, uint32_t y, int with_sign) {
    int sum = 0;
    for (int i = 0; i < 32; i += 8) {
        int factor = with_sign ? (int8_t)(x >> i & 0xff) : (int)(x >> i & 0xff);
        sum += factor * (int8_t)(y >> i & 0xff);
    }
    return (uint32_t)sum;
}

static void lane_steps(enum rule rule, uint64_t passes, unsigned char *at, const unsigned char *x0,
                       const unsigned char *x1, const unsigned char *y0) {
    switch (rule) {
    case RULE_CHAIN_F64:
        STEPS(double, a *f + y);
        break;
    case RULE_CHAIN_F32:
        STEPS(float, a *f + y);
        break;
    case RULE_CHAIN_I32:
        STEPS(uint32_t, a * f + y);
        break;
    case RULE_CHAIN_I16:
        STEPS(uint16_t, (unsigned)a * f + y);
        break;
    case RULE_CHAIN_I8:
        STEPS(uint8_t, (unsigned)a * f + y);
        break;
    case RULE_ADD_F64:
        STEPS(double, a + f * y);
        break;
    case RULE_ADD_F32:
        STEPS(float, a + f * y);
        break;
    case RULE_ADD_I32:
        STEPS(uint32_t, a + f * y);
        break;
    case RULE_ADD_I16:
        STEPS(uint16_t, a + (unsigned)f * y);
        break;
    case RULE_ADD_I8:
        STEPS(uint8_t, a + (unsigned)f * y);
        break;
    case RULE_PAIRS:
        STEPS(uint16_t, pairs(a, f, y));
        break;
    case RULE_DOT_US:
        STEPS(uint32_t, a + dot(f, y, 0));
        break;
    case RULE_DOT_SS:
        STEPS(uint32_t, a + dot(f, y, 1));
        break;
    }
}

void reference_run(const struct kernel *kernel, uint64_t passes, const struct operands *operands,
                   const void *start, void *result) {
    unsigned width = lane_bytes(kernel->rule), bytes = kernel->vector_bytes * kernel->accumulators;
    memcpy(result, start, bytes);
    for (unsigned at = 0; at < bytes; at += width) {
        unsigned lane = at % kernel->vector_bytes;
        lane_steps(kernel->rule, passes, (unsigned char *)result + at, operands->x[0] + lane,
                   operands->x[1] + lane, operands->y + lane);
    }
}
