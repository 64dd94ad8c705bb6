/* Bytes per second between pinned memory of the host and a GPU, and from one GPU to the next. */
#include <stdlib.h>
#include <string.h>

#include "gpu/memory.h"

#define BYTES_MOST (UINT64_C(256) << 20)
#define LOG_BLOCK 12

struct link {
    void *function, *second, *fork, *join; /* second stream, and events that order both streams */
    uint64_t bytes;
    uint32_t seed;
    bool by_kernel, to, from, peer;
    /* Buffers of the host and of the GPU. */
    uint32_t *host_source, *host_target;
    device_pointer source, target;
};

static void copy(const struct gpu *gpu, device_pointer to, device_pointer from, void *stream) {
    const struct link *link = gpu->state;
    int code;
    if (link->by_kernel) {
        const struct sweep sweep = {.source = from,
                                    .target = to,
                                    .log_block = LOG_BLOCK,
                                    .log_blocks =
                                        (unsigned)__builtin_ctzll(link->bytes) - LOG_BLOCK,
                                    .factor = 1};
        code = sweep_launch(stream, link->function, 8, &sweep);
    } else if (link->peer) {
        code = cu.MemcpyPeerAsync(to, gpu->next->context, from, gpu->context, link->bytes, stream);
    } else if (to == link->target) {
        code = cu.MemcpyHtoDAsync(to, link->host_source, link->bytes, stream);
    } else {
        code = cu.MemcpyDtoHAsync(link->host_target, from, link->bytes, stream);
    }
    gpu_check(gpu, code, "copying over its link");
}

/* Queues the copies. Pinned memory has the same address on the host and on the GPU. */
static void call(struct gpu *gpu) {
    const struct link *link = gpu->state;
    const bool both = link->to && link->from;
    void *second = both ? link->second : gpu->stream;
    if (both) {
        gpu_check(gpu, cu.EventRecord(link->fork, gpu->stream), "forking a stream");
        gpu_check(gpu, cu.StreamWaitEvent(second, link->fork, 0), "forking a stream");
    }
    if (link->peer) {
        const struct link *next = gpu->next->state;
        copy(gpu, next->target, link->source, gpu->stream);
    }
    if (link->to) {
        copy(gpu, link->target, (uintptr_t)link->host_source, gpu->stream);
    }
    if (link->from) {
        copy(gpu, (uintptr_t)link->host_target, link->source, second);
    }
    if (both) {
        gpu_check(gpu, cu.EventRecord(link->join, second), "joining a stream");
        gpu_check(gpu, cu.StreamWaitEvent(gpu->stream, link->join, 0), "joining a stream");
    }
}

static void connect(const struct gpu *gpu) {
    int can = 0;
    if (gpu->next == gpu) {
        gpu_impossible("LINK peer needs two GPUs: name them with --gpus");
    }
    gpu_check(gpu, cu.DeviceCanAccessPeer(&can, gpu->device, gpu->next->device), "asking a peer");
    if (!can) {
        gpu_impossible("GPU %d has no direct access to GPU %d", gpu->index, gpu->next->index);
    }
    const int code = cu.CtxEnablePeerAccess(gpu->next->context, 0);
    gpu_check(gpu, code == ERROR_PEER_ENABLED ? 0 : code, "connecting it to a peer");
}

static void fill(struct gpu *gpu, struct link *link) {
    const uint64_t words = link->bytes / 4;
    for (uint64_t i = 0; i < words; i++) {
        link->host_source[i] = (uint32_t)i * PATTERN_STEP + link->seed;
    }
    gpu_check(gpu, cu.MemcpyHtoD(link->source, link->host_source, link->bytes), "copying to it");
}

static void clear(struct gpu *gpu, struct link *link) {
    memset(link->host_target, 0, link->bytes);
    gpu_check(gpu, cu.MemsetD32Async(link->target, 0, link->bytes / 4, gpu->stream), "clearing");
    gpu_wait(gpu);
}

static void prepare(struct gpu *gpu) {
    struct link *link = gpu_calloc(gpu, 1, sizeof *link);
    const char *variant = gpu->request->variant;
    gpu->state = link;
    link->peer = strcmp(variant, "peer") == 0;
    link->to = strcmp(variant, "to") == 0 || strcmp(variant, "both") == 0;
    link->from = strcmp(variant, "from") == 0 || strcmp(variant, "both") == 0;
    link->seed = (uint32_t)gpu->request->seed * 2 + 1;
    link->bytes = BYTES_MOST;
    while (link->bytes > gpu->memory / 8) {
        link->bytes /= 2;
    }
    if (link->peer) {
        connect(gpu);
    }
    gpu_check(gpu, cu.StreamCreate(&link->second, 1), "creating a stream");
    gpu_check(gpu, cu.EventCreate(&link->fork, 0), "creating an event");
    gpu_check(gpu, cu.EventCreate(&link->join, 0), "creating an event");
    link->host_source = gpu_allocate_pinned(gpu, link->bytes);
    link->host_target = gpu_allocate_pinned(gpu, link->bytes);
    link->source = gpu_allocate(gpu, link->bytes);
    link->target = gpu_allocate(gpu, link->bytes);
    fill(gpu, link);
    pthread_barrier_wait(gpu->together); /* the next GPU has allocated its target */
    gpu_time(gpu, 1);
    const double engine = gpu_time(gpu, 2);
    if (gpu->request->reference == NULL) {
        link->function = gpu_function(gpu, ptx_memory, "copy8");
        link->by_kernel = true;
        gpu_time(gpu, 1);
        link->by_kernel = gpu_time(gpu, 2) < engine;
    }
    pthread_barrier_wait(gpu->together); /* all trials have ended */
    clear(gpu, link);
    gpu->calls = 0;
    gpu->isa = link->by_kernel ? "ld.global.v4, st.global.v4" : "cuMemcpyAsync";
    gpu->work = (double)link->bytes * (link->to + link->from + link->peer);
}

static void check(const struct gpu *gpu, const struct link *link, const uint32_t *words,
                  const char *what) {
    if (!pattern_holds(words, link->bytes / 4, 0, link->seed)) {
        gpu_wrong(gpu, "copied wrong words %s (%s)", what, gpu->isa);
    }
}

static void finish(struct gpu *gpu) {
    struct link *link = gpu->state;
    if (link->from) {
        check(gpu, link, link->host_target, "to the host");
    }
    if (link->to || link->peer) {
        gpu_check(gpu, cu.MemcpyDtoH(link->host_target, link->target, link->bytes),
                  "copying from it");
        check(gpu, link, link->host_target, link->peer ? "from another GPU" : "from the host");
    }
    free(link);
}

const struct job link_job = {
    .unit = "B/s", .work_unit = "B", .prepare = prepare, .call = call, .finish = finish};
