/* AVX2 and FMA: 16 registers, so 12 accumulators and up to 4 operands and temporaries. */
#include <immintrin.h>

#define ISA ISA_AVX2
#define TABLE kernels_avx2
#define DOUBLES __m256d
#define FLOATS __m256
#define INTEGERS __m256i
#define ONES _mm256_set1_epi16(1)
#define REGISTER "x"
#define COUNT 12
#define DOT_COUNT 8
/* A chain of 4 and 3 cycles, as on Zen 3, takes so many on two pipes for each of both. */
#define MIX_COUNT 14

#include "cpu/kernel_wide.inc"
