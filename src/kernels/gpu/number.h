/* Numbers of the GPU's types as bits. C lacks some of these types. */
#ifndef PEAKMARK_GPU_NUMBER_H
#define PEAKMARK_GPU_NUMBER_H

#include <stdint.h>

enum number_type { FP64, FP32, FP16, INT32, TF32, BF16, INT8, FP8 };

/* Bytes of a number, and the largest integer whose products matrix units add up exactly. They add
 * those of FP8 with about 14 bits. */
extern const struct number_type_facts { int bytes, exact; } number_types[];

/* Returns the bits of an integer of at most `exact`. */
uint64_t number_bits(enum number_type type, int value);

uint64_t bits_of_double(double number);
double double_of_bits(uint64_t bits);
uint32_t bits_of_float(float number);
float float_of_bits(uint32_t bits);
uint32_t bits_of_half(double number); /* the number must be one of FP16 */
double half_of_bits(uint32_t bits);
double round_to_half(double number); /* below 2^16, to the nearest, ties to even */

#endif
