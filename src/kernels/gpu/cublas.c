/* The vendor's matrix product for comparison: 8192 x 8192 x 8192 by cuBLAS, which is opened at run
 * time. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "common/status.h"
#include "gpu/gpu.h"
#include "gpu/number.h"

enum { N = 8192, PIECE_ROWS = 128, PIECE = PIECE_ROWS * N, SAMPLES = 256, LARGEST = 3 };
enum data_type { R_32F = 0, R_64F = 1, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14 };
enum compute_type { C_32F = 68, C_64F = 70, C_64F_PEDANTIC = 71, C_32I = 72, C_32F_TF32 = 77 };

/* Types of the matrices, of the result and of the computation. FP64 and FP32 use no matrix units.
 */
static const struct product {
    const char *workload;
    enum number_type type, result;
    enum data_type data, result_data;
    enum compute_type compute;
} products[] = {
    {"FP64", FP64, FP64, R_64F, R_64F, C_64F_PEDANTIC},
    {"FP32", FP32, FP32, R_32F, R_32F, C_32F},
    {"TC-FP64", FP64, FP64, R_64F, R_64F, C_64F},
    {"TC-TF32", TF32, FP32, R_32F, R_32F, C_32F_TF32},
    {"TC-FP16", FP16, FP32, R_16F, R_32F, C_32F},
    {"TC-BF16", BF16, FP32, R_16BF, R_32F, C_32F},
    {"TC-INT8", INT8, INT32, R_8I, R_32I, C_32I},
};
enum { PRODUCTS = sizeof products / sizeof products[0] };

typedef int create_function(void **handle);
typedef int stream_function(void *handle, void *stream);
typedef int gemm_function(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                          const void *alpha, device_pointer a, int a_type, int a_rows,
                          device_pointer b, int b_type, int b_rows, const void *beta,
                          device_pointer c, int c_type, int c_rows, int compute, int algorithm);

struct cublas {
    const struct product *product;
    void *handle;
    gemm_function *gemm;
    device_pointer a, b, c;
    signed char left[PIECE], right[PIECE]; /* rows that a and b repeat */
};

static void find(void *library, const char *symbol, void *function) {
    void *found = dlsym(library, symbol);
    if (found == NULL) {
        gpu_impossible("this libcublas has no %s", symbol);
    }
    memcpy(function, &found, sizeof found);
}

static void *open_library(void) {
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) {
            return library;
        }
    }
    gpu_impossible("no libcublas.so.13, .12 or .11 is found: load the CUDA module, or pip install "
                   "nvidia-cublas and name its folder nvidia/cu13/lib in LD_LIBRARY_PATH");
}

static void check_cublas(const struct gpu *gpu, int code, const char *doing) {
    if (code != 0) {
        driver_fail_alone();
        fail_measurement("GPU %d: %s failed with CUBLAS_STATUS %d", gpu->index, doing, code);
    }
}

static void call(struct gpu *gpu) {
    static const union {
        double of_double;
        float of_float;
        int32_t of_integer;
    } zero = {0}, one_double = {.of_double = 1}, one_float = {.of_float = 1},
      one_integer = {.of_integer = 1};
    enum { TRANSPOSED = 1, PLAIN = 0, DEFAULT_ALGORITHM = -1 };
    const struct cublas *cublas = gpu->state;
    const struct product *product = cublas->product;
    const void *one = product->result == FP64    ? &one_double
                      : product->result == INT32 ? &one_integer
                                                 : &one_float;
    check_cublas(gpu,
                 cublas->gemm(cublas->handle, TRANSPOSED, PLAIN, N, N, N, one, cublas->a,
                              product->data, N, cublas->b, product->data, N, &zero, cublas->c,
                              product->result_data, N, product->compute, DEFAULT_ALGORITHM),
                 "cublasGemmEx");
}

/* Returns a matrix of random small integers: each type holds the sums of 8192 products exactly. */
static device_pointer fill(struct gpu *gpu, const struct product *product, signed char *values,
                           uint64_t stream) {
    const size_t bytes = (size_t)number_types[product->type].bytes, all = (size_t)N * N * bytes;
    unsigned char *piece = gpu_calloc(gpu, PIECE, bytes);
    const device_pointer matrix = gpu_allocate(gpu, all);
    struct random_state random;
    random_seed(&random, gpu->request->seed, stream);
    for (size_t i = 0; i < PIECE; i++) {
        values[i] = (signed char)((int)random_below(&random, 2 * LARGEST + 1) - LARGEST);
        uint64_t bits = number_bits(product->type, values[i]);
        for (size_t byte = 0; byte < bytes; byte++) {
            piece[i * bytes + byte] = (unsigned char)(bits >> 8 * byte);
        }
    }
    for (size_t at = 0; at < all; at += PIECE * bytes) {
        gpu_check(gpu, cu.MemcpyHtoD(matrix + at, piece, PIECE * bytes), "copying to it");
    }
    free(piece);
    return matrix;
}

static void prepare(struct gpu *gpu) {
    struct cublas *cublas = gpu_calloc(gpu, 1, sizeof *cublas);
    create_function *create;
    stream_function *set_stream;
    gpu->state = cublas;
    for (int i = 0; i < PRODUCTS; i++) {
        if (strcmp(products[i].workload, gpu->request->workload) == 0) {
            cublas->product = &products[i];
        }
    }
    if (cublas->product == NULL) {
        gpu_impossible(
            "libcublas multiplies no FP8 matrices: that takes libcublasLt, which gpubench "
            "does not call");
    }
    void *library = open_library();
    find(library, "cublasCreate_v2", &create);
    find(library, "cublasSetStream_v2", &set_stream);
    find(library, "cublasGemmEx", &cublas->gemm);
    check_cublas(gpu, create(&cublas->handle), "cublasCreate");
    check_cublas(gpu, set_stream(cublas->handle, gpu->stream), "cublasSetStream");
    cublas->a = fill(gpu, cublas->product, cublas->left, 0);
    cublas->b = fill(gpu, cublas->product, cublas->right, 1);
    cublas->c =
        gpu_allocate(gpu, (size_t)N * N * (size_t)number_types[cublas->product->result].bytes);
    gpu->work = 2.0 * N * N * N;
    gpu->isa = "cublasGemmEx";
}

/* Compares some elements with those that the CPU computes. */
static void finish(struct gpu *gpu) {
    struct cublas *cublas = gpu->state;
    const enum number_type type = cublas->product->result;
    const size_t bytes = (size_t)number_types[type].bytes;
    struct random_state random;
    random_seed(&random, gpu->request->seed, 2);
    for (int i = 0; i < SAMPLES; i++) {
        const uint64_t row = random_below(&random, N), column = random_below(&random, N);
        const signed char *a = cublas->left + row % PIECE_ROWS * N;
        const signed char *b = cublas->right + column % PIECE_ROWS * N;
        uint64_t got = 0, wanted = 0;
        int sum = 0;
        for (int k = 0; k < N; k++) {
            sum += a[k] * b[k];
        }
        wanted = number_bits(type, sum);
        gpu_check(gpu, cu.MemcpyDtoH(&got, cublas->c + (row + column * N) * bytes, bytes),
                  "copying from it");
        if (memcmp(&got, &wanted, bytes) != 0) {
            gpu_wrong(gpu, "computed a wrong result with cublasGemmEx (%s)",
                      cublas->product->workload);
        }
    }
    free(cublas);
}

const struct job cublas_job = {.unit = "op/s",
                               .work_unit = "op",
                               .heats = true,
                               .prepare = prepare,
                               .call = call,
                               .finish = finish};
