/*
 * AMX: eight tiles of 16 rows of 64 bytes. A product of two tiles takes the unit 16 cycles and is
 * ready after 52 (Intel's optimisation manual), so four accumulators would keep it busy; here are
 * five, the two operands of even and odd passes, and y. Nothing is loaded within the loop.
 * Compilers use no tiles of their own accord, so what a tile holds outlives an asm statement.
 */
#include <stdint.h>

#include "common/chain.h"
#include "cpu/kernel.inc"

#define ROW_BYTES 64

struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static const struct tile_config tiles = {
    .palette = 1,
    .row_bytes = {ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES,
                  ROW_BYTES},
    .rows = {TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS,
             TILE_ROWS},
};

#define TILE_LOAD(number, from)                                                                    \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #number                                          \
                     :                                                                             \
                     : "r"(from), "r"((intptr_t)ROW_BYTES)                                         \
                     : "memory");
#define TILE_STORE(number, to)                                                                     \
    __asm__ volatile("tilestored %%tmm" #number ", (%0,%1,1)"                                      \
                     :                                                                             \
                     : "r"(to), "r"((intptr_t)ROW_BYTES)                                           \
                     : "memory");
#define LOAD_STATE(i, start) TILE_LOAD(i, (const unsigned char *)(start) + i * TILE_BYTES)
#define STORE_STATE(i, result) TILE_STORE(i, (unsigned char *)(result) + i * TILE_BYTES)
#define REPEAT_5(M, S) M(0, S) M(1, S) M(2, S) M(3, S) M(4, S)

#define STEP_EVEN(i, PRODUCT) PRODUCT " %%tmm7, %%tmm5, %%tmm" #i "\n\t"
#define STEP_ODD(i, PRODUCT) PRODUCT " %%tmm7, %%tmm6, %%tmm" #i "\n\t"

/* clang-format off */
#define TILE_BODY(PRODUCT, END_OF_TURN)                                                            \
    __asm__ volatile("ldtilecfg %0" : : "m"(tiles));                                               \
    REPEAT_5(LOAD_STATE, start)                                                                    \
    TILE_LOAD(5, operands->x[0])                                                                   \
    TILE_LOAD(6, operands->x[1])                                                                   \
    TILE_LOAD(7, operands->y)                                                                      \
    for (uint64_t remaining = passes; remaining > 0; remaining -= 2) {                             \
        __asm__ volatile(REPEAT_5(STEP_EVEN, PRODUCT) REPEAT_5(STEP_ODD, PRODUCT) : :);            \
        END_OF_TURN                                                                                \
    }                                                                                              \
    REPEAT_5(STORE_STATE, result)                                                                  \
    __asm__ volatile("tilerelease" : :);
/* clang-format on */

DEFINE_FORMS(qpmm, TILE_BODY, "tdpbssd")
DEFINE_FORMS(bf16mm, TILE_BODY, "tdpbf16ps")

const struct kernel kernels_amx[] = {
    {"QPMM", ISA_AVX512, ISA_FEATURE_AMX, "tdpbssd (AMX-INT8)", RULE_MATRIX_SS, TILE_BYTES, 5,
     2 * 16 * 16 * 64, 1, qpmm, qpmm_paced},
    {"BF16MM", ISA_AVX512, ISA_FEATURE_AMX, "tdpbf16ps (AMX-BF16)", RULE_MATRIX_BF16, TILE_BYTES, 5,
     2 * 16 * 16 * 32, 1, bf16mm, bf16mm_paced},
    {0},
};
