/* Operations per second of the arithmetic units: multiply-adds and matrix products. All operands
 * are in registers, those of wgmma in shared memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "gpu/gpu.h"
#include "gpu/number.h"

PTX_MODULE(ptx_fp64, "fp64");
PTX_MODULE(ptx_fp32, "fp32");
PTX_MODULE(ptx_fp16, "fp16");
PTX_MODULE(ptx_int32, "int32");
PTX_MODULE(ptx_tc_fp64_80, "tc-fp64-80");
PTX_MODULE(ptx_tc_fp64_90, "tc-fp64-90");
PTX_MODULE(ptx_tc_tf32_80, "tc-tf32-80");
PTX_MODULE(ptx_tc_tf32_90a, "tc-tf32-90a");
PTX_MODULE(ptx_tc_fp16_75, "tc-fp16-75");
PTX_MODULE(ptx_tc_fp16_80, "tc-fp16-80");
PTX_MODULE(ptx_tc_fp16_90a, "tc-fp16-90a");
PTX_MODULE(ptx_tc_bf16_80, "tc-bf16-80");
PTX_MODULE(ptx_tc_bf16_90a, "tc-bf16-90a");
PTX_MODULE(ptx_tc_int8_75, "tc-int8-75");
PTX_MODULE(ptx_tc_int8_80, "tc-int8-80");
PTX_MODULE(ptx_tc_int8_90a, "tc-int8-90a");
PTX_MODULE(ptx_tc_fp8_89, "tc-fp8-89");
PTX_MODULE(ptx_tc_fp8_90a, "tc-fp8-90a");

enum {
    CHAINS = 16, /* independent multiply-adds of a thread, each UNROLL times in a loop */
    UNROLL = 8,
    LOOPS_MOST = 8192, /* so many loops of 32 lanes take the CPU 0.1 s to check */
    GROUP_ROWS = 64,   /* rows of a wgmma, which 128 threads share */
    COLUMNS_MOST = 256,
    DEPTH_MOST = 32,
    OPERAND_BYTES = 16384,
    UNIT_MOST = 128
};
#define LAUNCH_S 0.005

/* The kernels that ptx.py writes. The first kernel of a workload that a chip can run is the fastest
 * one for it. Chips with a faster instruction that is not here are in data/gpu.csv. */
static const struct kernel {
    const char *workload;
    enum number_type type;
    int least, most; /* compute capability */
    const char *instruction, *ptx;
    int rows, columns, depth; /* of a matrix product; 0: a multiply-add */
    int chains, unroll;
} kernels[] = {
    {"FP64", FP64, 75, 999, "fma.rn.f64", ptx_fp64, 0, 0, 0, CHAINS, UNROLL},
    {"FP32", FP32, 75, 999, "fma.rn.f32", ptx_fp32, 0, 0, 0, CHAINS, UNROLL},
    {"FP16", FP16, 75, 999, "fma.rn.f16x2", ptx_fp16, 0, 0, 0, CHAINS, UNROLL},
    {"INT32", INT32, 75, 999, "mad.lo.s32", ptx_int32, 0, 0, 0, CHAINS, UNROLL},
    {"TC-FP64", FP64, 90, 999, "mma.sync.m16n8k16.f64", ptx_tc_fp64_90, 16, 8, 16, 4, 4},
    {"TC-FP64", FP64, 80, 999, "mma.sync.m8n8k4.f64", ptx_tc_fp64_80, 8, 8, 4, 8, 4},
    {"TC-TF32", TF32, 90, 90, "wgmma.m64n256k8.tf32", ptx_tc_tf32_90a, 64, 256, 8, 1, 8},
    {"TC-TF32", TF32, 80, 999, "mma.sync.m16n8k8.tf32", ptx_tc_tf32_80, 16, 8, 8, 6, 4},
    {"TC-FP16", FP16, 90, 90, "wgmma.m64n256k16.f16", ptx_tc_fp16_90a, 64, 256, 16, 1, 8},
    {"TC-FP16", FP16, 80, 999, "mma.sync.m16n8k16.f16", ptx_tc_fp16_80, 16, 8, 16, 6, 4},
    {"TC-FP16", FP16, 75, 999, "mma.sync.m16n8k8.f16", ptx_tc_fp16_75, 16, 8, 8, 6, 4},
    {"TC-BF16", BF16, 90, 90, "wgmma.m64n256k16.bf16", ptx_tc_bf16_90a, 64, 256, 16, 1, 8},
    {"TC-BF16", BF16, 80, 999, "mma.sync.m16n8k16.bf16", ptx_tc_bf16_80, 16, 8, 16, 6, 4},
    {"TC-INT8", INT8, 90, 90, "wgmma.m64n256k32.s8", ptx_tc_int8_90a, 64, 256, 32, 1, 8},
    {"TC-INT8", INT8, 80, 999, "mma.sync.m16n8k32.s8", ptx_tc_int8_80, 16, 8, 32, 6, 4},
    {"TC-INT8", INT8, 75, 999, "mma.sync.m8n8k16.s8", ptx_tc_int8_75, 8, 8, 16, 6, 4},
    {"TC-FP8", FP8, 90, 90, "wgmma.m64n256k32.e4m3", ptx_tc_fp8_90a, 64, 256, 32, 1, 8},
    {"TC-FP8", FP8, 89, 999, "mma.sync.m16n8k32.e4m3", ptx_tc_fp8_89, 16, 8, 32, 6, 4},
};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

/* Blocks on an SM, and threads of a block. A trial chooses the fastest. */
static const struct shape {
    int blocks, threads;
} shapes[] = {{1, 128}, {1, 256}, {1, 384}, {2, 128}, {3, 128}, {1, 512},
              {2, 256}, {2, 512}, {4, 256}, {8, 256}, {1, 1024}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], BLOCKS_MOST = 8, THREADS_MOST = 2048 };

struct rate {
    const struct kernel *kernel;
    void *function;
    struct shape shape;
    device_pointer operands, results, clocks;
    uint32_t loops;
    unsigned char bytes[OPERAND_BYTES]; /* the operands */
    int a[GROUP_ROWS][DEPTH_MOST], b[COLUMNS_MOST][DEPTH_MOST];
    uint64_t expected[UNIT_MOST]; /* checksum of each thread of a warp or group of warps */
};

/* Returns the result of a chain of multiply-adds. All numbers are bits of the type. */
static uint64_t follow_chain(enum number_type type, uint64_t start, uint64_t factor,
                             uint64_t summand, uint64_t steps) {
    if (type == FP64) {
        double x = double_of_bits(start), c = double_of_bits(summand);
        for (uint64_t i = 0; i < steps; i++) {
            x = fma(x, x, c);
        }
        return bits_of_double(x);
    }
    if (type == FP32) {
        float x = float_of_bits((uint32_t)start), c = float_of_bits((uint32_t)summand);
        for (uint64_t i = 0; i < steps; i++) {
            x = fmaf(x, x, c);
        }
        return bits_of_float(x);
    }
    if (type == INT32) {
        uint32_t x = (uint32_t)start;
        for (uint64_t i = 0; i < steps; i++) {
            x = x * (uint32_t)factor + (uint32_t)summand;
        }
        return x;
    }
    uint64_t both = 0;
    for (int half = 0; half <= 16; half += 16) {
        double x = half_of_bits(start >> half & 0xffff), c = half_of_bits(summand >> half & 0xffff);
        for (uint64_t i = 0; i < steps; i++) {
            x = round_to_half(x * x + c);
        }
        both |= (uint64_t)bits_of_half(x) << half;
    }
    return both;
}

/* Returns a random number of the range as bits of the type; of INT32 any number. */
static uint64_t draw(enum number_type type, struct random_state *random, double low, double high) {
    const double number = low + (high - low) * (double)(random_next(random) >> 11) * 0x1p-53;
    switch (type) {
    case FP64:
        return bits_of_double(number);
    case FP32:
        return bits_of_float((float)number);
    case FP16:
        return bits_of_half(round_to_half(number)) |
               bits_of_half(round_to_half(low + high - number)) << 16;
    default:
        return random_next(random) & UINT32_MAX;
    }
}

/* Sets the start values, the factor and the summand of each lane. A factor of integers is odd;
 * floating-point chains are x * x + c, with c as the summand. */
static void fill_chains(struct rate *rate, struct random_state *random) {
    const enum number_type type = rate->kernel->type;
    for (int i = 0; i < 32 * (CHAINS + 2); i++) {
        uint64_t bits =
            i < 32 * CHAINS ? draw(type, random, -1.5, 1.5) : draw(type, random, -1.97, -1.8);
        bits = type == INT32 && i >= 32 * CHAINS ? (bits & ~UINT64_C(3)) | 1 : bits;
        memcpy(rate->bytes + 8 * i, &bits, sizeof bits);
    }
}

static void expect_chains(struct rate *rate) {
    uint64_t operands[CHAINS + 2][32];
    memcpy(operands, rate->bytes, sizeof operands);
    for (int lane = 0; lane < 32; lane++) {
        rate->expected[lane] = 0;
        for (unsigned chain = 0; chain < CHAINS; chain++) {
            rate->expected[lane] +=
                (2 * chain + 1) * follow_chain(rate->kernel->type, operands[chain][lane],
                                               operands[CHAINS][lane], operands[CHAINS + 1][lane],
                                               (uint64_t)rate->loops * UNROLL);
        }
    }
}

/* Writes an element of a matrix whose rows start at `base`. wgmma reads cores of 8 rows by 16
 * bytes; cores of the same rows are 128 bytes apart. */
static void put_element(const struct kernel *kernel, unsigned char *base, int row, int k,
                        int value) {
    const int bytes = number_types[kernel->type].bytes, byte = k * bytes;
    const uint64_t bits = number_bits(kernel->type, value);
    unsigned char *at = base + row * kernel->depth * bytes + byte;
    if (kernel->rows == GROUP_ROWS) {
        at = base + row / 8 * 256 + byte / 16 * 128 + row % 8 * 16 + byte % 16;
    }
    for (int i = 0; i < bytes; i++) {
        at[i] = (unsigned char)(bits >> 8 * i);
    }
}

static void fill_matrices(struct rate *rate, struct random_state *random) {
    const struct kernel *kernel = rate->kernel;
    const int limit = number_types[kernel->type].exact;
    unsigned char *right =
        rate->bytes + kernel->rows * kernel->depth * number_types[kernel->type].bytes;
    for (int k = 0; k < kernel->depth; k++) {
        for (int row = 0; row < kernel->rows; row++) {
            rate->a[row][k] = (int)random_below(random, 2 * (uint64_t)limit + 1) - limit;
            put_element(kernel, rate->bytes, row, k, rate->a[row][k]);
        }
        for (int column = 0; column < kernel->columns; column++) {
            rate->b[column][k] = (int)random_below(random, 2 * (uint64_t)limit + 1) - limit;
            put_element(kernel, right, column, k, rate->b[column][k]);
        }
    }
}

/* Returns the bits of an element of the result. Kernels of FP64 and INT8 add all products; the
 * others add and subtract them in turn, so that one product is left. */
static uint64_t product_bits(const struct rate *rate, int row, int column) {
    const enum number_type type = rate->kernel->type;
    const int64_t all = (int64_t)rate->loops * rate->kernel->unroll + 1;
    int64_t sum = 0;
    for (int k = 0; k < rate->kernel->depth; k++) {
        sum += (int64_t)rate->a[row][k] * rate->b[column][k];
    }
    if (type == FP64) {
        return bits_of_double((double)(all * sum));
    }
    return type == INT8 ? (uint32_t)((uint64_t)all * (uint64_t)sum) : bits_of_float((float)sum);
}

static int unit_of(const struct kernel *kernel) {
    return kernel->rows == GROUP_ROWS ? 128 : 32;
}

/* Thread t holds rows t / 4 and 8 below, columns 2 (t % 4) and the next of each eight columns. */
static void expect_products(struct rate *rate) {
    const struct kernel *kernel = rate->kernel;
    const int unit = unit_of(kernel), held = kernel->rows * kernel->columns / unit;
    for (int t = 0; t < unit; t++) {
        rate->expected[t] = 0;
        for (int i = 0; i < held * kernel->chains; i++) {
            const int at = i % held, row = t / 32 * 16 + t % 32 / 4 + at / 2 % 2 * 8;
            const int column = at / 4 * 8 + t % 4 * 2 + at % 2;
            rate->expected[t] += (2 * (uint64_t)i + 1) * product_bits(rate, row, column);
        }
    }
}

static int launch(const struct gpu *gpu) {
    struct rate *rate = gpu->state;
    void *parameters[] = {&rate->operands, &rate->results, &rate->clocks, &rate->loops};
    return gpu_launch(gpu->stream, rate->function, (unsigned)(gpu->sms * rate->shape.blocks),
                      (unsigned)rate->shape.threads, parameters);
}

static void call(struct gpu *gpu) {
    gpu_check(gpu, launch(gpu), "starting its kernel");
}

/* Returns the operations of a thread in one loop. */
static double operations(const struct kernel *kernel) {
    if (kernel->rows == 0) {
        return 2.0 * (kernel->type == FP16 ? 2 : 1) * kernel->chains * kernel->unroll;
    }
    return 2.0 * kernel->rows * kernel->columns * kernel->depth / unit_of(kernel) * kernel->chains *
           kernel->unroll;
}

/* Returns the number of threads that work, all on the same operands. */
static double threads_of(const struct gpu *gpu, const struct rate *rate) {
    return (double)gpu->sms * rate->shape.blocks * rate->shape.threads;
}

/* Runs each shape for about 1 ms and keeps the fastest; an SM has too few registers for some. */
static void choose_shape(struct gpu *gpu, struct rate *rate) {
    struct shape best = {0, 0};
    double highest = 0, pass = 1;
    for (int i = 0; i < SHAPES; i++) {
        if (shapes[i].threads % unit_of(rate->kernel) != 0) {
            continue;
        }
        rate->shape = shapes[i];
        rate->loops = 16;
        int code = launch(gpu);
        if (code == ERROR_TOO_MANY_RESOURCES) {
            continue;
        }
        gpu_check(gpu, code, "starting its kernel");
        double wanted = ceil(0.001 / (gpu_time(gpu, 1) / rate->loops));
        rate->loops = (uint32_t)fmin(fmax(wanted, 16), LOOPS_MOST);
        double seconds = gpu_time(gpu, 1) / rate->loops;
        if (threads_of(gpu, rate) / seconds > highest) {
            highest = threads_of(gpu, rate) / seconds;
            best = shapes[i];
            pass = seconds;
        }
    }
    rate->shape = best;
    rate->loops = (uint32_t)fmin(fmax(ceil(LAUNCH_S / pass), 1), LOOPS_MOST);
}

static const struct kernel *choose_kernel(const struct gpu *gpu) {
    for (int i = 0; i < KERNELS; i++) {
        if (strcmp(kernels[i].workload, gpu->request->workload) == 0 &&
            gpu->compute >= kernels[i].least && gpu->compute <= kernels[i].most) {
            return &kernels[i];
        }
    }
    gpu_impossible("GPU %d (%s) of compute capability %d.%d has no instruction for %s", gpu->index,
                   gpu->name, gpu->compute / 10, gpu->compute % 10, gpu->request->workload);
}

static void prepare(struct gpu *gpu) {
    struct random_state random;
    struct rate *rate = gpu_calloc(gpu, 1, sizeof *rate);
    gpu->state = rate;
    rate->kernel = choose_kernel(gpu);
    rate->function = gpu_function(gpu, rate->kernel->ptx, "rate");
    random_seed(&random, gpu->request->seed, 0);
    (rate->kernel->rows == 0 ? fill_chains : fill_matrices)(rate, &random);
    const size_t threads = (size_t)gpu->sms * THREADS_MOST;
    rate->operands = gpu_allocate(gpu, OPERAND_BYTES);
    rate->results = gpu_allocate(gpu, threads * 8);
    rate->clocks = gpu_allocate(gpu, (size_t)gpu->sms * BLOCKS_MOST * 16);
    gpu_check(gpu, cu.MemcpyHtoD(rate->operands, rate->bytes, OPERAND_BYTES), "copying to it");
    choose_shape(gpu, rate);
    gpu_check(gpu, cu.MemsetD32Async(rate->results, 0, threads * 2, gpu->stream), "clearing");
    gpu->calls = 0;
    gpu->work = operations(rate->kernel) * rate->loops * threads_of(gpu, rate);
    gpu->isa = rate->kernel->instruction;
}

static void clear_clock(struct gpu *gpu) {
    const struct rate *rate = gpu->state;
    gpu_check(gpu,
              cu.MemsetD32Async(rate->clocks, 0, (size_t)gpu->sms * BLOCKS_MOST * 4, gpu->stream),
              "clearing");
}

static uint64_t *fetch(const struct gpu *gpu, device_pointer from, size_t words) {
    uint64_t *copy = gpu_calloc(gpu, words, sizeof *copy);
    gpu_check(gpu, cu.MemcpyDtoH(copy, from, words * sizeof *copy), "copying from it");
    return copy;
}

/* Every thread of every launch since prepare has added the same checksum to its own. */
static void finish(struct gpu *gpu) {
    struct rate *rate = gpu->state;
    const size_t threads = (size_t)threads_of(gpu, rate);
    const size_t blocks = (size_t)gpu->sms * (size_t)rate->shape.blocks;
    const size_t unit = (size_t)unit_of(rate->kernel);
    uint64_t *results = fetch(gpu, rate->results, threads);
    uint64_t *clocks = fetch(gpu, rate->clocks, blocks * 2);
    size_t wrong = 0;
    double cycles = 0, ns = 0;
    (rate->kernel->rows == 0 ? expect_chains : expect_products)(rate);
    for (size_t i = 0; i < threads; i++) {
        wrong += results[i] != gpu->calls * rate->expected[i % unit];
    }
    if (wrong > 0) {
        gpu_wrong(gpu, "computed a wrong result with %s (%s) in %zu of %zu threads", gpu->isa,
                  rate->kernel->workload, wrong, threads);
    }
    for (size_t i = 0; i < blocks; i++) {
        cycles += (double)clocks[2 * i];
        ns += (double)clocks[2 * i + 1];
    }
    gpu->clock_hz = ns > 0 ? cycles / ns * 1e9 : 0;
    free(results);
    free(clocks);
    free(rate);
}

const struct job rate_job = {.unit = "op/s",
                             .work_unit = "op",
                             .heats = true,
                             .prepare = prepare,
                             .call = call,
                             .clear_clock = clear_clock,
                             .finish = finish};
