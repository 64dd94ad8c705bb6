/* gpubench: rates of a GPU, its memory and its links, with the driver alone. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/options.h"
#include "common/report.h"
#include "common/status.h"
#include "gpu/gpu.h"
#include "gpu/list.h"

enum { GPUS_MOST = 64 };
#define TIMEOUT_S 60

static const char *const rate_variants[] = {"sustained", "burst", NULL};
static const char *const link_variants[] = {"to", "from", "both", "peer", NULL};
static const char *const no_variants[] = {NULL};

/* The first variant is the default. */
static const struct workload {
    const char *name;
    const struct job *job;
    const char *const *variants;
    const char *reference; /* vendor's function that may be measured instead, or NULL */
} workloads[] = {
    {"FP64", &rate_job, rate_variants, "cublas"},
    {"FP32", &rate_job, rate_variants, "cublas"},
    {"FP16", &rate_job, rate_variants, NULL},
    {"INT32", &rate_job, rate_variants, NULL},
    {"TC-FP64", &rate_job, rate_variants, "cublas"},
    {"TC-TF32", &rate_job, rate_variants, "cublas"},
    {"TC-FP16", &rate_job, rate_variants, "cublas"},
    {"TC-BF16", &rate_job, rate_variants, "cublas"},
    {"TC-INT8", &rate_job, rate_variants, "cublas"},
    {"TC-FP8", &rate_job, rate_variants, "cublas"},
    {"RS", &memory_job, no_variants, NULL},
    {"WS", &memory_job, no_variants, "memset"},
    {"RWS", &memory_job, no_variants, "memcpy"},
    {"RWR", &memory_job, no_variants, NULL},
    {"LADDER-LAT", &ladder_job, no_variants, NULL},
    {"LINK", &link_job, link_variants, "memcpy"},
    {"LAUNCH", &launch_job, no_variants, NULL},
};
enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

struct arguments {
    struct request request;
    const char *gpus;
    double timeout;
    bool list;
};

static void parse_arguments(struct arguments *a, int argc, char **argv) {
    static const char *names[WORKLOADS + 1];
    static const char *const variants[] = {"sustained", "burst", "to", "from",
                                           "both",      "peer",  NULL};
    static const char *const references[] = {"cublas", "memcpy", "memset", NULL};
    static const struct program program = {
        .name = "gpubench",
        .synopsis = "--workload NAME [option]...",
        .summary =
            "Measures NVIDIA GPUs with their driver alone. FP64 FP32 FP16 INT32 are "
            "multiply-adds,\n"
            "TC-* matrix products of that type; one operation is one multiplication or one\n"
            "addition. RS WS RWS RWR read, write and copy the GPU's memory, RWR in random order;\n"
            "LADDER-LAT is the latency of a load by working set, LINK the rate between the GPU "
            "and\n"
            "pinned memory of the host or another GPU, LAUNCH the time of an empty kernel.",
        .example = "gpubench --workload TC-FP16 --gpus 0,1 --seconds 2"};
    struct request *request = &a->request;
    const struct option_spec specs[] = {
        {"workload", OPTION_CHOICE, &request->workload, "NAME", .help = "what to measure",
         .choices = names},
        {"variant", OPTION_CHOICE, &request->variant, "NAME",
         .help = "burst is the first 20 ms; the others are directions of LINK",
         .choices = variants},
        {"reference", OPTION_CHOICE, &request->reference, "NAME",
         .help = "measure a vendor's function instead", .choices = references},
        {"gpus", OPTION_TEXT, &a->gpus, "LIST", .help = "GPUs, e.g. 0,2-3 or all (default 0)"},
        {"block", OPTION_SIZE, &request->block, "SIZE",
         .help = "contiguous bytes of a warp, a power of two from 32B to 1MiB (default: the "
                 "fastest; RWR 4KiB)"},
        {"seconds", OPTION_SECONDS, &request->seconds, "S",
         .help = "measure for S seconds (default 1)"},
        {"warmup", OPTION_SECONDS, &request->warmup, "S",
         .help = "run, for burst rest, S seconds before the clock starts (default 0.5)"},
        {"timeout", OPTION_SECONDS, &a->timeout, "S",
         .help = "give up after S seconds (default 60 more than seconds and warm-up)"},
        {"seed", OPTION_SEED, &request->seed, "N",
         .help = "seed of data and random order (default 1)"},
        {"list", OPTION_FLAG, &a->list, NULL, .help = "print the GPUs and end"},
        END_OF_OPTIONS,
    };
    for (int i = 0; i < WORKLOADS; i++) {
        names[i] = workloads[i].name;
    }
    options_no_more(argc, argv, options_parse(&program, specs, argc, argv));
    if (request->workload == NULL && !a->list) {
        fail_usage("--workload is missing: choose one of FP64, FP32, FP16, INT32, TC-..., RS, WS, "
                   "RWS, RWR, LADDER-LAT, LINK, LAUNCH, or --list");
    }
}

static const struct workload *find_workload(const char *name) {
    const struct workload *workload = workloads;
    while (strcmp(workload->name, name) != 0) {
        workload++;
    }
    return workload;
}

static bool has_variant(const struct workload *workload, const char *variant) {
    for (int i = 0; workload->variants[i] != NULL; i++) {
        if (strcmp(workload->variants[i], variant) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_reference(const struct workload *workload, const char *reference) {
    return workload->reference != NULL && strcmp(workload->reference, reference) == 0;
}

/* Ends the program where options do not fit the workload; else sets the default variant. */
static void complete_request(struct request *request, const struct workload *workload) {
    const uint64_t block = request->block;
    if (request->variant != NULL && !has_variant(workload, request->variant)) {
        fail_usage("--variant %s does not belong to %s", request->variant, workload->name);
    }
    if (request->reference != NULL && !has_reference(workload, request->reference)) {
        fail_usage("--reference %s does not measure %s", request->reference, workload->name);
    }
    if (block > 0 && (workload->job != &memory_job || request->reference != NULL)) {
        fail_usage("--block belongs to RS, WS, RWS and RWR without --reference");
    }
    if (block > 0 && (block < 32 || block > 1 << 20 || (block & (block - 1)) != 0)) {
        fail_usage("--block is a power of two from 32B to 1MiB");
    }
    if (request->variant == NULL) {
        request->variant = workload->variants[0];
    }
}

static void choose_gpus(const char *text, int available, struct cpu_list *chosen) {
    if (strcmp(text, "all") == 0) {
        for (int i = 0; i < available && i < GPUS_MOST; i++) {
            chosen->cpu[chosen->count++] = i;
        }
        return;
    }
    if (!parse_cpu_list(text, chosen) || chosen->count > GPUS_MOST) {
        fail_usage("--gpus: '%s' is not a list of GPUs: write numbers and ranges, each once, e.g. "
                   "0,2-3, or all",
                   text);
    }
    for (int i = 0; i < chosen->count; i++) {
        if (chosen->cpu[i] >= available) {
            fail_impossible("GPU %d is not here: the driver has %d", chosen->cpu[i], available);
        }
    }
}

/* Ends the program, as nothing can stop a kernel or a call of the driver that hangs. */
static void give_up(int signal_number) {
    static const char text[] = "gpubench: the GPU has not finished within the timeout: a kernel or "
                               "the driver hangs; look for Xid in the kernel's log\n";
    (void)signal_number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) {
        _exit(STATUS_FAILED);
    }
    _exit(STATUS_FAILED);
}

static void start_timeout(const struct arguments *a) {
    const double usual = TIMEOUT_S + a->request.seconds + a->request.warmup;
    const double seconds = a->timeout > 0 ? a->timeout : usual;
    signal(SIGALRM, give_up);
    alarm((unsigned)ceil(seconds));
}

static void print_gpus(struct json *json, const struct gpu *gpus, int count) {
    json_begin_array(json, "per_gpu");
    for (int i = 0; i < count; i++) {
        json_begin_object(json, NULL);
        json_integer(json, "gpu", gpus[i].index);
        json_string(json, "name", gpus[i].name);
        json_string(json, "pci", gpus[i].pci);
        json_double(json, "value", gpus[i].value);
        json_double(json, "clock_hz", gpus[i].clock_hz > 0 ? gpus[i].clock_hz : NAN);
        json_double(json, "seconds", gpus[i].seconds);
        json_end_object(json);
    }
    json_end_array(json);
}

static const char *instrument(const char *reference) {
    if (reference == NULL) {
        return "gpubench";
    }
    return strcmp(reference, "cublas") == 0 ? "cublas" : "cuda-memcpy";
}

static void print_result(const struct request *request, const struct gpu *gpus, int count) {
    const struct job *job = gpus[0].job;
    const bool is_latency = strcmp(job->unit, "s") == 0;
    double value = 0, seconds = 0, clock_hz = 0, work = 0;
    struct warnings warnings = {0};
    struct json json;
    for (int i = 0; i < count; i++) {
        value += gpus[i].value / (is_latency ? count : 1);
        seconds = fmax(seconds, gpus[i].seconds);
        clock_hz += gpus[i].clock_hz / count;
        work += gpus[i].work * (double)gpus[i].measured_calls;
        if (gpus[i].unsettled) {
            warnings_add(&warnings, "the rate of GPU %d had not settled after 10 s", gpus[i].index);
        }
    }
    if (!isfinite(value) || value <= 0) {
        fail_measurement("the result %g %s is no measurement", value, job->unit);
    }
    json_init(&json, stdout);
    json_begin_object(&json, NULL);
    json_string(&json, "instrument", instrument(request->reference));
    json_string(&json, "version", PEAKMARK_VERSION);
    json_string(&json, "workload", request->workload);
    json_string(&json, "variant", request->variant);
    json_integer(&json, "threads", count);
    json_double(&json, "value", value);
    json_string(&json, "unit", job->unit);
    json_double(&json, "seconds", seconds);
    json_double(&json, "work", work);
    json_string(&json, "work_unit", job->work_unit);
    print_gpus(&json, gpus, count);
    json_string(&json, "isa", gpus[0].isa);
    json_double(&json, "clock_hz", clock_hz > 0 ? clock_hz : NAN);
    json_bool(&json, "checked", job->finish != NULL);
    if (gpus[0].point_count > 0) {
        json_unsigned(&json, "l2_bytes", gpus[0].l2);
        report_points(&json, gpus[0].points[0], gpus[0].point_count, 2);
    }
    json_begin_array(&json, "warnings");
    for (int i = 0; i < warnings.count; i++) {
        json_string(&json, NULL, warnings.text[i]);
    }
    json_end_array(&json);
    json_end_object(&json);
    warnings_free(&warnings);
    if (!json_finish(&json)) {
        fail_measurement("the result could not be written to standard output");
    }
}

int main(int argc, char **argv) {
    static struct arguments a = {.request = {.seed = 1, .seconds = 1, .warmup = 0.5}, .gpus = "0"};
    static struct cpu_list chosen;
    static struct gpu gpus[GPUS_MOST];
    parse_arguments(&a, argc, argv);
    start_timeout(&a);
    if (a.list) {
        list_gpus(driver_open());
        return STATUS_OK;
    }
    const struct workload *workload = find_workload(a.request.workload);
    complete_request(&a.request, workload);
    choose_gpus(a.gpus, driver_open(), &chosen);
    const char *reference = a.request.reference;
    const bool is_cublas = reference != NULL && strcmp(reference, "cublas") == 0;
    for (int i = 0; i < chosen.count; i++) {
        gpus[i].request = &a.request;
        gpus[i].job = is_cublas ? &cublas_job : workload->job;
        gpu_describe(&gpus[i], chosen.cpu[i]);
        if (gpu_is_mig(&gpus[i])) {
            fail_impossible("GPU %d (%s) is a part of a GPU (MIG), which is not measured",
                            gpus[i].index, gpus[i].name);
        }
    }
    gpu_measure_all(gpus, chosen.count);
    print_result(&a.request, gpus, chosen.count);
    return STATUS_OK;
}
