/*
 * What the kernels must compute, lane by lane in plain C, and inputs for which that is exact.
 *
 * Floating point: the chain doubles and halves in turn (x = 2, then 1/2), so two passes add 1.5 y;
 * start values lie in [1, 1.25) and y is so small that a stays below 2, also in a mix, which adds y
 * up to twice as often. All values are multiples of
 * a step that the mantissa holds, so every result is exact, whether fused or not, never subnormal,
 * and one lost pass changes it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/random.h"
#include "cpu/kernel.h"

static unsigned lane_bytes(enum rule rule) {
    switch (rule) {
    case RULE_CHAIN_F64:
    case RULE_ADD_F64:
    case RULE_MIX_F64:
    case RULE_THIN_MIX_F64:
    case RULE_ADD_MIX_F64:
        return 8;
    case RULE_CHAIN_I16:
    case RULE_ADD_I16:
    case RULE_PAIRS:
    case RULE_GROW_F16:
        return 2;
    case RULE_CHAIN_I8:
    case RULE_ADD_I8:
        return 1;
    case RULE_CHAIN_F32:
    case RULE_ADD_F32:
    case RULE_MIX_F32:
    case RULE_THIN_MIX_F32:
    case RULE_ADD_MIX_F32:
    case RULE_CHAIN_I32:
    case RULE_ADD_I32:
    case RULE_DOT_US:
    case RULE_DOT_SS:
    case RULE_DOT_BF16:
    case RULE_MATRIX_SS:
    case RULE_MATRIX_BF16:
        return 4;
    }
    return 0; /* a rule that is none; the compiler warns of one that is not named above */
}

static double whole_below(struct random_state *random, uint64_t bound) {
    return (double)(1 + random_below(random, bound - 1));
}

/* Values in 1/2^50 (start, y of the chain), products of two in 1/2^20, or of 1/2^10 and 1/2^40: all
 * bits of a double are in use. */
static void fill_f64(struct random_state *random, enum rule rule, unsigned lane,
                     struct operands *operands) {
    double x[2] = {2.0, 0.5}, y = whole_below(random, UINT64_C(1) << 34) * 0x1p-49;
    if (rule == RULE_ADD_F64) {
        x[0] = whole_below(random, 1 << 12) * 0x1p-20;
        x[1] = whole_below(random, 1 << 12) * 0x1p-20;
        y = whole_below(random, 1 << 12) * 0x1p-20;
    } else if (rule == RULE_ADD_MIX_F64) {
        x[0] = whole_below(random, 1 << 10) * 0x1p-10;
        x[1] = whole_below(random, 1 << 10) * 0x1p-10;
        y = whole_below(random, 1 << 20) * 0x1p-40;
    } else if (rule == RULE_MIX_F64) {
        x[0] = x[1] = 1;
        y = whole_below(random, UINT64_C(1) << 33) * 0x1p-49;
    } else if (rule == RULE_THIN_MIX_F64) {
        y = whole_below(random, UINT64_C(1) << 33) * 0x1p-49;
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
    } else if (rule == RULE_ADD_MIX_F32) {
        x[0] = (float)(whole_below(random, 4) * 0x1p-2);
        x[1] = (float)(whole_below(random, 4) * 0x1p-2);
        y = (float)(whole_below(random, 17) * 0x1p-21);
    } else if (rule == RULE_MIX_F32) {
        x[0] = x[1] = 1;
        y = (float)(whole_below(random, 25) * 0x1p-21);
    } else if (rule == RULE_THIN_MIX_F32) {
        y = (float)(whole_below(random, 25) * 0x1p-21);
    }
    memcpy(operands->x[0] + lane * 4, &x[0], 4);
    memcpy(operands->x[1] + lane * 4, &x[1], 4);
    memcpy(operands->y + lane * 4, &y, 4);
}

/* Bytes of a row of x that go into one lane: two rows in 16 bytes, 16 in a tile. */
static unsigned row_bytes(const struct kernel *kernel) {
    return kernel->rule == RULE_DOT_BF16        ? 4
           : kernel->vector_bytes == TILE_BYTES ? TILE_BYTES / TILE_ROWS
                                                : 8;
}

static double from_bf16(const unsigned char *at) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static void to_bf16(unsigned char *at, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t half = (uint16_t)(bits >> 16);
    memcpy(at, &half, sizeof half);
}

/*
 * Whole numbers of eight bits, all the mantissa holds, and start values such that no sum exceeds 24
 * bits: then every order of additions is exact. The second x takes away what the first has added,
 * but for one y in a row, so that two passes change every lane.
 */
static void fill_bf16(struct random_state *random, const struct kernel *kernel,
                      struct operands *operands, unsigned char *start, unsigned bytes) {
    for (unsigned at = 0; at < VECTOR_BYTES_MAX; at += 2) {
        float x = (float)(127 + whole_below(random, 129)),
              y = (float)(127 + whole_below(random, 129));
        bool minus = random_below(random, 2) != 0, first = at % row_bytes(kernel) == 0;
        float back = first ? 1 - x : -x;
        to_bf16(operands->x[0] + at, minus ? -x : x);
        to_bf16(operands->x[1] + at, minus ? -back : back);
        to_bf16(operands->y + at, random_below(random, 2) != 0 ? -y : y);
    }
    for (unsigned at = 0; at < bytes; at += 4) {
        float value = (float)(whole_below(random, 1 << 21) - (1 << 20));
        memcpy(start + at, &value, 4);
    }
}

/* Half precision holds too few values for a sum, so these numbers grow: a pass doubles them, the
 * next takes nearly half, and two make each larger by a unit in the last place or two. From 2^-11
 * they come to 2^12 in a call, and have no subnormal or infinite among them. */
static void fill_f16(struct random_state *random, struct operands *operands, unsigned char *start,
                     unsigned bytes) {
    const uint16_t one = 0x3c00, nearly_minus_half = 0xb7fe; /* -(2^-1 - 2^-11) */
    for (unsigned at = 0; at < VECTOR_BYTES_MAX; at += 2) {
        memcpy(operands->x[0] + at, &one, 2);
        memcpy(operands->x[1] + at, &nearly_minus_half, 2);
    }
    for (unsigned at = 0; at < bytes; at += 2) {
        uint16_t value = (uint16_t)(4U << 10 | random_below(random, 1 << 10));
        memcpy(start + at, &value, 2);
    }
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
    case RULE_MIX_F64:
    case RULE_THIN_MIX_F64:
    case RULE_ADD_MIX_F64:
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
    case RULE_MIX_F32:
    case RULE_THIN_MIX_F32:
    case RULE_ADD_MIX_F32:
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
    case RULE_GROW_F16:
        fill_f16(&random, operands, start, bytes);
        break;
    case RULE_DOT_BF16:
    case RULE_MATRIX_BF16:
        fill_bf16(&random, kernel, operands, start, bytes);
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

/* a + a * x of normal positive numbers in half precision: exact as a double, whose mantissa is then
 * rounded to ten bits, ties to even. */
static uint16_t grow_f16(uint16_t a, uint16_t x) {
    double wide[2];
    const uint16_t narrow[2] = {a, x};
    uint64_t bits;
    for (int i = 0; i < 2; i++) {
        bits = (uint64_t)((narrow[i] >> 10 & 31U) + 1008) << 52 | (narrow[i] & 1023ULL) << 42 |
               (uint64_t)(narrow[i] >> 15) << 63;
        memcpy(&wide[i], &bits, sizeof bits);
    }
    wide[0] += wide[0] * wide[1];
    memcpy(&bits, &wide[0], sizeof bits);
    bits += (UINT64_C(1) << 41) - 1 + (bits >> 42 & 1);
    return (uint16_t)((bits >> 42) - (UINT64_C(1008) << 10));
}

/* turn: 0 or 1, of the passes in which a thin mix adds. */
static void lane_steps(enum rule rule, uint64_t turn, uint64_t passes, unsigned char *at,
                       const unsigned char *x0, const unsigned char *x1, const unsigned char *y0) {
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
    case RULE_MIX_F64:
        STEPS(double, y - a * f + (pass % 2 == 0 ? -y : y));
        break;
    case RULE_MIX_F32:
        STEPS(float, y - a * f + (pass % 2 == 0 ? -y : y));
        break;
    case RULE_THIN_MIX_F64:
        STEPS(double, a *f + y + (pass % 2 == turn ? y : 0));
        break;
    case RULE_THIN_MIX_F32:
        STEPS(float, a *f + y + (pass % 2 == turn ? y : 0));
        break;
    case RULE_ADD_MIX_F64:
        STEPS(double, a + f * y + y);
        break;
    case RULE_ADD_MIX_F32:
        STEPS(float, a + f * y + y);
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
    case RULE_GROW_F16:
        STEPS(uint16_t, grow_f16(a, f));
        break;
    default: /* product_steps */
        break;
    }
}

/* Sum of the products that go into a lane. AMX has four bytes of a column side by side in y, then
 * those of the next one; Arm has whole columns. */
static double products(const struct kernel *kernel, const unsigned char *x, const unsigned char *y,
                       unsigned lane) {
    const bool tile = kernel->vector_bytes == TILE_BYTES, bytes = kernel->rule == RULE_MATRIX_SS;
    const unsigned width = row_bytes(kernel), columns = tile ? TILE_ROWS : 2;
    double sum = 0;
    for (unsigned k = 0; k < width; k += bytes ? 1 : 2) {
        const unsigned column = lane % columns;
        unsigned at_x = lane / columns * width + k,
                 at_y = tile ? k / 4 * width + column * 4 + k % 4 : column * width + k;
        if (kernel->rule == RULE_DOT_BF16) {
            at_x = at_y = lane * width + k;
        }
        sum += bytes ? (double)(int8_t)x[at_x] * (int8_t)y[at_y]
                     : from_bf16(x + at_x) * from_bf16(y + at_y);
    }
    return sum;
}

/* The steps of a lane that gets sums of products. */
static void product_steps(const struct kernel *kernel, uint64_t passes,
                          const struct operands *operands, unsigned lane, unsigned char *at) {
    const double sums[2] = {products(kernel, operands->x[0], operands->y, lane),
                            products(kernel, operands->x[1], operands->y, lane)};
    if (kernel->rule == RULE_MATRIX_SS) {
        uint32_t a;
        memcpy(&a, at, sizeof a);
        for (uint64_t pass = 0; pass < passes; pass++) {
            a += (uint32_t)(int32_t)sums[pass & 1];
        }
        memcpy(at, &a, sizeof a);
    } else {
        float a;
        memcpy(&a, at, sizeof a);
        for (uint64_t pass = 0; pass < passes; pass++) {
            a += (float)sums[pass & 1];
        }
        memcpy(at, &a, sizeof a);
    }
}

void reference_run(const struct kernel *kernel, uint64_t passes, const struct operands *operands,
                   const void *start, void *result) {
    unsigned width = lane_bytes(kernel->rule), bytes = kernel->vector_bytes * kernel->accumulators;
    memcpy(result, start, bytes);
    for (unsigned at = 0; at < bytes; at += width) {
        unsigned lane = at % kernel->vector_bytes;
        if (kernel->rule >= RULE_DOT_BF16) {
            product_steps(kernel, passes, operands, lane / width, (unsigned char *)result + at);
            continue;
        }
        lane_steps(kernel->rule, at / kernel->vector_bytes % 2, passes,
                   (unsigned char *)result + at, operands->x[0] + lane, operands->x[1] + lane,
                   operands->y + lane);
    }
}
