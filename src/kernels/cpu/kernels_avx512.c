/* AVX-512 F, BW, DQ, VL: 32 registers, so 24 accumulators: enough for a latency of 5 on two pipes,
 * and of 10 on one. */
#include <immintrin.h>

#define ISA ISA_AVX512
#define TABLE kernels_avx512
#define DOUBLES __m512d
#define FLOATS __m512
#define INTEGERS __m512i
#define ONES _mm512_set1_epi16(1)
#define REGISTER "v"
#define COUNT 24
#define DOT_COUNT 12
#define MIX_COUNT COUNT

#include "cpu/kernel_wide.inc"
