/*
 * The kernels of AMX as compiled, on any x86-64 CPU: where one has no tiles its instructions trap,
 * and the handler here does what Intel's manual (SDM, volume 2) says of them.
 */
#include "check.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "cpu/kernel.h"

#if defined(__x86_64__) && !defined(LACKS_amx) && !defined(INSTRUMENTED)
enum { TILES = 8, ROW = 64, NO_PREFIX = 0, PREFIX_F3 = 2, PREFIX_F2 = 3, MEMORY_FORMS = 0xc0 };

static unsigned char tiles[TILES][TILE_ROWS][ROW];
static bool configured;

static void unknown(void) {
    static const char text[] = "an instruction that is none of the kernels' was illegal\n";
    _exit(write(2, text, sizeof text - 1) > 0 ? 3 : 4);
}

static float bfloat(const unsigned char *at) {
    uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void multiply(int to, int x, int y, bool bytes) {
    if (to == x || x == y || to == y) {
        unknown();
    }
    for (int i = 0; i < TILE_ROWS; i++) {
        for (int j = 0; j < TILE_ROWS; j++) {
            unsigned char *cell = &tiles[to][i][4 * j];
            uint32_t sum;
            float real, even = 0, odd = 0;
            memcpy(&sum, cell, 4);
            memcpy(&real, cell, 4);
            for (int k = 0; k < TILE_ROWS; k++) {
                const unsigned char *left = &tiles[x][i][4 * k], *right = &tiles[y][k][4 * j];
                for (int byte = 0; byte < 4; byte++) {
                    sum += (uint32_t)((int8_t)left[byte] * (int8_t)right[byte]);
                }
                even += bfloat(left) * bfloat(right);
                odd += bfloat(left + 2) * bfloat(right + 2);
            }
            real += even + odd;
            memcpy(cell, bytes ? (const void *)&sum : &real, 4);
        }
    }
}

/* ldtilecfg of what the kernels ask for: eight whole tiles. */
static void configure(const unsigned char *from) {
    unsigned char wanted[64] = {1};
    for (int tile = 0; tile < TILES; tile++) {
        wanted[16 + 2 * tile] = ROW;
        wanted[48 + tile] = TILE_ROWS;
    }
    if (memcmp(from, wanted, sizeof wanted) != 0) {
        unknown();
    }
    memset(tiles, 0, sizeof tiles);
    configured = true;
}

static void execute(int number, siginfo_t *information, void *context) {
    static const int registers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                    REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                    REG_R12, REG_R13, REG_R14, REG_R15};
    (void)number, (void)information;
    greg_t *values = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)values[REG_RIP];
    if (code[0] != 0xc4 || (code[1] & 31) != 2 || (code[2] & 0x84) != 0) { /* VEX.128.0F38.W0 */
        unknown();
    }
    const int x = code[1] & 0x40 ? 0 : 8, base = code[1] & 0x20 ? 0 : 8, other = ~code[2] >> 3 & 15;
    const int prefix = code[2] & 3, form = code[4], place = form & 7, reg = form >> 3 & 7;
    const bool memory = form < MEMORY_FORMS;
    unsigned char *address = NULL;
    intptr_t stride = 0;
    int32_t far = 0;
    int length = 5;
    if (memory && place == 4) { /* base and index */
        stride = values[registers[(code[5] >> 3 & 7) | x]] << (code[5] >> 6);
        address = (unsigned char *)values[registers[(code[5] & 7) | base]];
        length++;
    } else if (memory && form >> 6 == 0 && place == 5) { /* next to the code */
        memcpy(&far, code + length, 4);
        length += 4;
        address = (unsigned char *)values[REG_RIP] + length + far;
    } else if (memory) {
        address = (unsigned char *)values[registers[place | base]];
    }
    if (memory && form >> 6 == 1) {
        address += (int8_t)code[length++];
    } else if (memory && form >> 6 == 2) {
        memcpy(&far, code + length, 4);
        length += 4;
        address += far;
    }
    if (code[3] == 0x49 && prefix == NO_PREFIX && memory) {
        configure(address);
    } else if (code[3] == 0x49 && prefix == NO_PREFIX) {
        configured = false; /* tilerelease */
    } else if (configured && code[3] == 0x4b && prefix == PREFIX_F2) {
        for (int row = 0; row < TILE_ROWS; row++) {
            memcpy(tiles[reg][row], address + row * stride, ROW);
        }
    } else if (configured && code[3] == 0x4b && prefix == PREFIX_F3) {
        for (int row = 0; row < TILE_ROWS; row++) {
            memcpy(address + row * stride, tiles[reg][row], ROW);
        }
    } else if (configured && code[3] == 0x5e && prefix == PREFIX_F2) {
        multiply(reg, place, other, true); /* tdpbssd */
    } else if (configured && code[3] == 0x5c && prefix == PREFIX_F3) {
        multiply(reg, place, other, false); /* tdpbf16ps */
    } else {
        unknown();
    }
    values[REG_RIP] += length;
}

static struct operands operands;
static _Alignas(64) unsigned char start[STATE_BYTES_MAX], result[STATE_BYTES_MAX],
    paced[STATE_BYTES_MAX], expected[STATE_BYTES_MAX];

static void tiles_match_plain_c(void **state) {
    (void)state;
    void *cell = &cell;
    const struct sigaction action = {.sa_sigaction = execute, .sa_flags = SA_SIGINFO};
    assert_int_equal(sigaction(SIGILL, &action, NULL), 0);
    for (const struct kernel *kernel = kernels_amx; kernel->workload != NULL; kernel++) {
        const unsigned bytes = kernel->vector_bytes * kernel->accumulators;
        for (uint64_t passes = 0; passes <= 40; passes += passes == 0 ? 2 : 38) {
            reference_inputs(kernel, passes + 1, 0, &operands, start);
            reference_run(kernel, passes, &operands, start, expected);
            kernel->run(passes, &operands, start, result);
            kernel->paced(passes, &operands, start, paced, 5, &cell);
            assert_memory_equal(result, expected, bytes);
            assert_memory_equal(paced, expected, bytes);
        }
        reference_run(kernel, 38, &operands, start, expected);
        assert_memory_not_equal(result, expected, bytes);
    }
}
#else
static void tiles_match_plain_c(void **state) {
    (void)state;
    skip();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_match_plain_c)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
