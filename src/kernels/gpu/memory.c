/* Bytes per second of the GPU's memory: RS WS RWS RWR, and the driver's copy and fill. */
#include "gpu/memory.h"

#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "common/status.h"

PTX_MODULE(ptx_memory, "memory");
PTX_MODULE(ptx_bulk, "bulk");

enum {
    SUMS = 1024,
    BLOCK_THREADS = 256,
    LANE_BYTES = 16,
    WARP_BYTES = 512,
    CHUNK_BYTES = 8192, /* of the bulk copy */
    SAMPLE_WORDS = 4096,
    SAMPLES = 256
};
#define POOL_MOST (UINT64_C(8) << 30)
#define BLOCK_LEAST 32
#define BLOCK_MOST (UINT64_C(1) << 20)
#define BLOCK_OF_RANDOM 4096

/* Kernels of a workload. A trial chooses the fastest. */
static const struct way {
    const char *operation; /* the workload, or RW for RWS and RWR */
    const char *kernel, *instruction;
    unsigned width; /* a warp handles so many times 512 bytes at once; 0: bulk copies */
    unsigned grid;  /* blocks of bulk copies on an SM; 0: a block for each four chunks */
} ways[] = {
    {"RS", "read1", "ld.global.v4", 1, 0},
    {"RS", "read4", "ld.global.v4", 4, 0},
    {"RS", "read8", "ld.global.v4", 8, 0},
    {"WS", "write1", "st.global.v4", 1, 0},
    {"WS", "write4", "st.global.v4", 4, 0},
    {"WS", "write8", "st.global.v4", 8, 0},
    {"RW", "copy1", "ld.global.v4, st.global.v4", 1, 0},
    {"RW", "copy2", "ld.global.v4, st.global.v4", 2, 0},
    {"RW", "copy4", "ld.global.v4, st.global.v4", 4, 0},
    {"RW", "copy8", "ld.global.v4, st.global.v4", 8, 0},
    {"RW", "copy2cs", "ld.global.v4, st.global.cs.v4", 2, 0},
    {"RW", "copy8cs", "ld.global.v4, st.global.cs.v4", 8, 0},
    {"RWS", "bulk", "cp.async.bulk", 0, 0},
    {"RWS", "bulk", "cp.async.bulk", 0, 1},
    {"RWS", "bulk", "cp.async.bulk", 0, 2},
    {"RWS", "bulk", "cp.async.bulk", 0, 4},
    {"RWS", "bulk", "cp.async.bulk", 0, 6},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

struct memory {
    struct sweep sweep;
    const struct way *way;
    void *function, *verify, *fill;
    uint64_t pool;
    bool reads, writes, by_driver;
};

bool pattern_holds(const uint32_t *words, size_t count, uint64_t first, uint32_t seed) {
    for (size_t i = 0; i < count; i++) {
        if (words[i] != (uint32_t)(first + i) * PATTERN_STEP + seed) {
            return false;
        }
    }
    return true;
}

int sweep_launch(void *stream, void *function, unsigned width, const struct sweep *sweep) {
    struct sweep s = *sweep;
    void *parameters[] = {&s.source,     &s.target, &s.sums, &s.log_block,
                          &s.log_blocks, &s.factor, &s.seed};
    const uint64_t bytes = UINT64_C(1) << (s.log_block + s.log_blocks);
    const uint64_t block = UINT64_C(1) << s.log_block, portion = (uint64_t)width * WARP_BYTES;
    const uint64_t warps = bytes / (block > portion ? block : portion);
    return gpu_launch(stream, function, (unsigned)(warps / (BLOCK_THREADS / 32)), BLOCK_THREADS,
                      parameters);
}

static void call(struct gpu *gpu) {
    struct memory *memory = gpu->state;
    struct sweep *sweep = &memory->sweep;
    int code;
    if (memory->by_driver && memory->reads) {
        code = cu.MemcpyDtoDAsync(sweep->target, sweep->source, memory->pool, gpu->stream);
    } else if (memory->by_driver) {
        code = cu.MemsetD32Async(sweep->target, sweep->seed, memory->pool / 4, gpu->stream);
    } else if (memory->way->width == 0) {
        uint64_t chunks = memory->pool / CHUNK_BYTES;
        void *parameters[] = {&sweep->source, &sweep->target, &chunks};
        const unsigned grid = memory->way->grid * (unsigned)gpu->sms;
        code = gpu_launch(gpu->stream, memory->function, grid > 0 ? grid : (unsigned)(chunks / 4),
                          32, parameters);
    } else {
        code = sweep_launch(gpu->stream, memory->function, memory->way->width, sweep);
    }
    gpu_check(gpu, code, "starting its kernel");
}

/* Bulk copies have a fixed size and need compute capability 9.0. */
static bool is_possible(const struct gpu *gpu, const struct way *way, bool any_block) {
    return strncmp(way->operation, gpu->request->workload, strlen(way->operation)) == 0 &&
           (way->width > 0 || (gpu->compute >= 90 && any_block));
}

static void choose_way(struct gpu *gpu, struct memory *memory) {
    const struct way *best = NULL;
    void *function = NULL;
    double least = 0;
    for (int i = 0; i < WAYS; i++) {
        if (!is_possible(gpu, &ways[i], gpu->request->block == 0)) {
            continue;
        }
        memory->way = &ways[i];
        memory->function =
            gpu_function(gpu, ways[i].width > 0 ? ptx_memory : ptx_bulk, ways[i].kernel);
        gpu_time(gpu, 1);
        double seconds = gpu_time(gpu, 3);
        if (best == NULL || seconds < least) {
            best = &ways[i];
            function = memory->function;
            least = seconds;
        }
    }
    memory->way = best;
    memory->function = function;
    gpu->isa = best->instruction;
}

static unsigned log2_of(uint64_t power) {
    return (unsigned)__builtin_ctzll(power);
}

/* Returns 8 GiB, or the largest power of two in a quarter of the memory. */
static uint64_t choose_pool(const struct gpu *gpu) {
    uint64_t pool = POOL_MOST;
    while (pool > gpu->memory / 4) {
        pool /= 2;
    }
    return pool;
}

/* Fills the source of the driver's copy with one random piece again and again, by the driver alone:
 * the reference needs no kernel of ours. */
static void fill_by_driver(struct gpu *gpu, const struct memory *memory) {
    const size_t piece = SAMPLE_WORDS * 4;
    uint32_t words[SAMPLE_WORDS];
    struct random_state random;
    random_seed(&random, gpu->request->seed, 1);
    random_fill(&random, words, sizeof words);
    gpu_check(gpu, cu.MemcpyHtoD(memory->sweep.source, words, sizeof words), "copying to it");
    for (uint64_t have = piece; have < memory->pool; have *= 2) {
        gpu_check(gpu,
                  cu.MemcpyDtoDAsync(memory->sweep.source + have, memory->sweep.source, have,
                                     gpu->stream),
                  "filling its memory");
    }
}

static void clear(struct gpu *gpu, device_pointer memory, uint64_t bytes) {
    gpu_check(gpu, cu.MemsetD32Async(memory, 0, bytes / 4, gpu->stream), "clearing its memory");
}

static void prepare(struct gpu *gpu) {
    const struct request *request = gpu->request;
    struct memory *memory = gpu_calloc(gpu, 1, sizeof *memory);
    struct sweep *sweep = &memory->sweep;
    const bool is_random = strcmp(request->workload, "RWR") == 0;
    const uint64_t least = is_random ? BLOCK_OF_RANDOM : WARP_BYTES;
    gpu->state = memory;
    memory->pool = choose_pool(gpu);
    memory->reads = request->workload[0] == 'R';
    memory->writes = strchr(request->workload, 'W') != NULL;
    memory->by_driver = request->reference != NULL;
    sweep->log_block = log2_of(request->block > 0 ? request->block : least);
    sweep->log_blocks = log2_of(memory->pool) - sweep->log_block;
    sweep->factor = is_random ? (PATTERN_STEP & 0x0FFFFFFF) : 1;
    sweep->seed = (uint32_t)request->seed * 2 + 1;
    sweep->sums = gpu_allocate(gpu, SUMS * 4);
    if (memory->reads) {
        sweep->source = gpu_allocate(gpu, memory->pool);
    }
    if (memory->writes) {
        sweep->target = gpu_allocate(gpu, memory->pool);
    }
    memory->verify = gpu_function(gpu, ptx_memory, "verify");
    if (memory->reads && memory->by_driver) {
        fill_by_driver(gpu, memory);
    } else if (memory->reads) {
        struct sweep fill = *sweep;
        fill.target = sweep->source;
        fill.factor = 1;
        gpu_check(gpu, sweep_launch(gpu->stream, gpu_function(gpu, ptx_memory, "write4"), 4, &fill),
                  "filling its memory");
    }
    if (!memory->by_driver) {
        choose_way(gpu, memory);
    } else {
        gpu->isa = memory->reads ? "cuMemcpyDtoD" : "cuMemsetD32";
    }
    if (memory->writes) {
        clear(gpu, sweep->target, memory->pool);
    }
    clear(gpu, sweep->sums, SUMS * 4);
    gpu->calls = 0;
    gpu->work = (double)memory->pool * (memory->reads + memory->writes);
}

/* Returns the sum of all warps' sums. */
static uint64_t total(const struct gpu *gpu, const struct memory *memory) {
    uint32_t sums[SUMS];
    uint64_t all = 0;
    gpu_wait(gpu);
    gpu_check(gpu, cu.MemcpyDtoH(sums, memory->sweep.sums, sizeof sums), "copying from it");
    for (int i = 0; i < SUMS; i++) {
        all += sums[i];
    }
    return all;
}

/* The sum of all words that were read must be that of the pattern, an arithmetic series. */
static void check_read(const struct gpu *gpu, const struct memory *memory) {
    const uint64_t words = memory->pool / 4;
    const uint64_t series = words / 2 * (words - 1) * PATTERN_STEP + words * memory->sweep.seed;
    if ((uint32_t)total(gpu, memory) != (uint32_t)(gpu->calls * series)) {
        gpu_wrong(gpu, "read other words than its memory holds");
    }
}

/* Compares some places on the CPU: with the pattern, with the source of the driver's copy, or with
 * the word of its fill. The target was cleared before. */
static void check_samples(const struct gpu *gpu, const struct memory *memory) {
    static _Thread_local uint32_t words[SAMPLE_WORDS], wanted[SAMPLE_WORDS];
    const struct sweep *sweep = &memory->sweep;
    struct random_state random;
    random_seed(&random, gpu->request->seed, 2);
    for (int i = 0; i < SAMPLES; i++) {
        const uint64_t last = memory->pool / sizeof words - 1;
        const uint64_t at = (i == 0 ? last : random_below(&random, last)) * sizeof words;
        gpu_check(gpu, cu.MemcpyDtoH(words, sweep->target + at, sizeof words), "copying from it");
        bool right = pattern_holds(words, SAMPLE_WORDS, at / 4, sweep->seed);
        if (memory->by_driver && memory->reads) {
            gpu_check(gpu, cu.MemcpyDtoH(wanted, sweep->source, sizeof words), "copying from it");
            right = memcmp(words, wanted, sizeof words) == 0;
        } else if (memory->by_driver) {
            right = words[0] == sweep->seed &&
                    memcmp(words, words + 1, sizeof words - sizeof words[0]) == 0;
        }
        if (!right) {
            gpu_wrong(gpu, "has other words in its memory at %llu than were written (%s)",
                      (unsigned long long)at, gpu->isa);
        }
    }
}

/* Compares all words on the GPU; the CPU would take too long. */
static void check_all(const struct gpu *gpu, const struct memory *memory) {
    struct sweep verify = memory->sweep;
    verify.source = memory->sweep.target;
    verify.factor = 1;
    gpu_check(gpu, sweep_launch(gpu->stream, memory->verify, 4, &verify), "starting its kernel");
    const uint64_t right = total(gpu, memory), words = memory->pool / 4;
    if (right != words) {
        gpu_wrong(gpu, "has %llu of %llu words wrong in its memory after %s",
                  (unsigned long long)(words - right), (unsigned long long)words, gpu->isa);
    }
}

static void finish(struct gpu *gpu) {
    struct memory *memory = gpu->state;
    if (!memory->writes) {
        check_read(gpu, memory);
    } else {
        check_samples(gpu, memory);
    }
    if (memory->writes && !memory->by_driver) {
        check_all(gpu, memory);
    }
    free(memory);
}

const struct job memory_job = {
    .unit = "B/s", .work_unit = "B", .prepare = prepare, .call = call, .finish = finish};
