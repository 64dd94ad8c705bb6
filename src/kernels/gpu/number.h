/* Numbers of the GPU's types as bits, which C has not all. */
#ifndef PEAKMARK_GPU_NUMBER_H
#define PEAKMARK_GPU_NUMBER_H

#include <stdint.h>

enum number_type { FP64, FP32, FP16, INT32, TF32, BF16, INT8, FP8 };

/* Bytes of a number, and the largest integer whose products add up exactly in a matrix unit: FP8
 * adds with about 14 bits. */
extern const struct number_type_facts { int bytes, exact; } number_types[];

/* An integer of at most `exact` in a type. */
uint64_t number_bits(enum number_type type, int value);

uint64_t bits_of_double(double number);
double double_of_bits(uint64_t bits);
uint32_t bits_of_float(float number);
float float_of_bits(uint32_t bits);
uint32_t bits_of_half(double number); /* of a number that FP16 has */
double half_of_bits(uint32_t bits);
double round_to_half(double number); /* below 2^16, to the nearest, ties to even */

#endif
