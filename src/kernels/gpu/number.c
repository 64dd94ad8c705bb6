#include "gpu/number.h"

#include <math.h>
#include <string.h>

const struct number_type_facts number_types[] = {
    [FP64] = {8, 1 << 14}, [FP32] = {4, 511}, [FP16] = {2, 511}, [INT32] = {4, 0},
    [TF32] = {4, 511},     [BF16] = {2, 127}, [INT8] = {1, 127}, [FP8] = {1, 7}};

double double_of_bits(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

uint64_t bits_of_double(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

float float_of_bits(uint32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

uint32_t bits_of_float(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Adds and subtracts a number 2^42 times as large: 11 bits of the mantissa are left. */
double round_to_half(double number) {
    const uint64_t least = 1023 - 14;
    uint64_t exponent = bits_of_double(number) >> 52 & 0x7ff;
    exponent = exponent < least ? least : exponent;
    const double large = double_of_bits((exponent + 42) << 52 | UINT64_C(1) << 51);
    return number + large - large;
}

static uint32_t encode(double number, int exponent_bits, int mantissa_bits) {
    const int least = 2 - (1 << (exponent_bits - 1));
    int exponent;
    (void)frexp(number, &exponent);
    exponent = number == 0 || exponent - 1 < least ? least : exponent - 1;
    uint32_t bits = (uint32_t)ldexp(fabs(number), mantissa_bits - exponent);
    if (bits >> mantissa_bits != 0) {
        bits += (uint32_t)(exponent - least) << mantissa_bits;
    }
    return bits | (uint32_t)(signbit(number) != 0) << (exponent_bits + mantissa_bits);
}

uint32_t bits_of_half(double number) {
    return encode(number, 5, 10);
}

double half_of_bits(uint32_t bits) {
    const int exponent = (int)(bits >> 10 & 31);
    const double mantissa = (bits & 1023) + (exponent > 0 ? 1024 : 0);
    const double number = ldexp(mantissa, (exponent > 0 ? exponent : 1) - 25);
    return bits >> 15 & 1 ? -number : number;
}

uint64_t number_bits(enum number_type type, int value) {
    switch (type) {
    case FP64:
        return bits_of_double(value);
    case FP32:
    case TF32:
        return bits_of_float((float)value);
    case FP16:
        return bits_of_half(value);
    case BF16:
        return bits_of_float((float)value) >> 16;
    case FP8:
        return encode(value, 4, 3);
    default:
        return (uint64_t)(int64_t)value;
    }
}
