/* gpubench without a driver, and with one that has faults: messages, exit codes, and that no wrong
 * result is reported. */
#include "process.h"

static char library[4096];

/* Runs gpubench with the driver of the tests, whose devices have these faults. */
static struct process *gpubench(const char *faults, const char *const *argv) {
    setenv("FAKE_GPU", faults, 1);
    return process_run(library, argv);
}

#define MEASURE(...) ARGV("gpubench", "--seconds", "0.01", "--warmup", "0.01", __VA_ARGS__)

static void no_driver_is_said(void **state) {
    (void)state;
    const char *missing = "PEAKMARK_LIBCUDA=/nowhere/libcuda.so.1";
    process_expect(process_run(missing, MEASURE("--workload", "FP64")), 77,
                   "no NVIDIA driver is installed");
    process_expect(process_run(missing, ARGV("gpubench", "--list")), 77,
                   "no NVIDIA driver is installed");
}

static void a_wrong_command_line_is_said(void **state) {
    (void)state;
    static const struct {
        const char *option, *value, *text;
    } cases[] = {{"--variant", "peer", "--variant peer does not belong to FP64"},
                 {"--reference", "memcpy", "--reference memcpy does not measure FP64"},
                 {"--block", "4KiB", "--block belongs to RS, WS, RWS and RWR"},
                 {"--gpus", "0,0", "'0,0' is not a list of GPUs"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        process_expect(
            gpubench("", ARGV("gpubench", "--workload", "FP64", cases[i].option, cases[i].value)),
            2, cases[i].text);
    }
    process_expect(gpubench("", ARGV("gpubench")), 2, "--workload is missing");
    process_expect(gpubench("", MEASURE("--workload", "RS", "--block", "3KiB")), 2,
                   "--block is a power of two");
}

static void what_is_not_possible_is_said(void **state) {
    (void)state;
    static const struct {
        const char *faults, *workload, *gpus, *text;
    } cases[] = {
        {"no-device", "FP64", "0", "gives no GPU: CUDA_ERROR_OF_THE_TEST (100)"},
        {"none-visible", "FP64", "0", "CUDA_VISIBLE_DEVICES"},
        {"", "FP64", "0-2", "GPU 2 is not here: the driver has 2"},
        {"mig", "FP64", "0", "GPU 0 (Fake GPU MIG 1g.5gb) is a part of a GPU (MIG)"},
        {"turing", "TC-BF16", "0", "compute capability 7.5 has no instruction for TC-BF16"},
        {"old-driver", "FP64", "0", "install a newer driver"},
        {"very-old", "FP64", "0", "install a newer driver"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        process_expect(gpubench(cases[i].faults,
                                MEASURE("--workload", cases[i].workload, "--gpus", cases[i].gpus)),
                       77, cases[i].text);
    }
}

static void what_fails_is_said_with_the_gpu_and_a_remedy(void **state) {
    (void)state;
    static const struct {
        const char *faults, *workload, *text;
    } cases[] = {{"mismatch", "FP64", "reboot after the update"},
                 {"no-memory", "RS", "GPU 0: allocating 4MiB failed: CUDA_ERROR_OUT_OF_MEMORY (2)"},
                 {"no-memory", "RS", "other programs hold its memory"},
                 {"exclusive", "FP64", "another program has it for itself"},
                 {"bad-ptx", "FP64", "line 7: syntax error"},
                 {"bad-ptx", "FP64", "GPU 0: compiling the PTX failed"},
                 {"ecc", "FP64", "CUDA_ERROR_ECC_UNCORRECTABLE (214)"},
                 {"ecc", "RWS", "drain the node"},
                 {"abort", "TC-FP16", "CUDA_ERROR_LAUNCH_FAILED (719)"},
                 {"abort", "RS", "its kernel was aborted: look for Xid"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        process_expect(gpubench(cases[i].faults, MEASURE("--workload", cases[i].workload)), 1,
                       cases[i].text);
    }
}

static void a_kernel_that_never_ends_is_left(void **state) {
    (void)state;
    process_expect(gpubench("hang", MEASURE("--workload", "FP32", "--timeout", "1")), 1,
                   "has not finished within the timeout");
}

/* Kernels do nothing here: each workload must find that its results are wrong. */
static void results_that_nobody_computed_are_wrong(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"FP64", "burst"},
                                           {"INT32", "burst"},
                                           {"TC-FP64", "burst"},
                                           {"TC-INT8", "burst"},
                                           {"RS"},
                                           {"WS"},
                                           {"RWS"},
                                           {"RWR"},
                                           {"LADDER-LAT"},
                                           {"LINK", "from"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *variant = cases[i][1] != NULL ? "--variant" : NULL;
        struct process *process =
            gpubench("few-registers",
                     MEASURE("--workload", cases[i][0], "--gpus", "1", variant, cases[i][1]));
        assert_string_equal(process->output, "{\"wrong_gpus\": [1]}\n");
        process_expect(process, 1, "GPU 1 (Fake GPU) ");
    }
}

/* The CPU runs the PTX, with the fragments of matrices as the PTX ISA lays them out. */
static void results_of_every_kernel_are_right(void **state) {
    (void)state;
    static const struct {
        const char *chip, *workload, *instruction;
    } cases[] = {{"hopper", "FP64", "fma.rn.f64"},
                 {"hopper", "FP32", "fma.rn.f32"},
                 {"hopper", "FP16", "fma.rn.f16x2"},
                 {"hopper", "INT32", "mad.lo.s32"},
                 {"hopper", "TC-FP64", "mma.sync.m16n8k16.f64"},
                 {"hopper", "TC-TF32", "wgmma.m64n256k8.tf32"},
                 {"hopper", "TC-FP16", "wgmma.m64n256k16.f16"},
                 {"hopper", "TC-BF16", "wgmma.m64n256k16.bf16"},
                 {"hopper", "TC-INT8", "wgmma.m64n256k32.s8"},
                 {"hopper", "TC-FP8", "wgmma.m64n256k32.e4m3"},
                 {"turing", "TC-FP16", "mma.sync.m16n8k8.f16"},
                 {"turing", "TC-INT8", "mma.sync.m8n8k16.s8"},
                 {"ampere", "TC-FP64", "mma.sync.m8n8k4.f64"},
                 {"ampere", "TC-TF32", "mma.sync.m16n8k8.tf32"},
                 {"ampere", "TC-BF16", "mma.sync.m16n8k16.bf16"},
                 {"ada", "TC-FP8", "mma.sync.m16n8k32.e4m3"},
                 {"blackwell", "FP32", "fma.rn.f32"},
                 {"blackwell", "TC-FP16", "mma.sync.m16n8k16.f16"},
                 {"blackwell", "TC-INT8", "mma.sync.m16n8k32.s8"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char faults[64], instruction[64];
        snprintf(faults, sizeof faults, "runs few-registers %s", cases[i].chip);
        snprintf(instruction, sizeof instruction, "\"%s\"", cases[i].instruction);
        struct process *process =
            gpubench(faults, MEASURE("--workload", cases[i].workload, "--variant", "burst"));
        if (process->status != 0) {
            fail_msg("%s on %s: %s", cases[i].workload, cases[i].chip, process->error);
        }
        assert_memory_equal(json_at(process, "isa"), instruction, strlen(instruction));
        assert_true(json_number(process, "clock_hz") > 0);
        process_free(process);
    }
}

static void memory_is_read_written_and_copied_right(void **state) {
    (void)state;
    static const struct {
        const char *workload, *block;
    } cases[] = {{"RS", NULL},     {"RS", "16KiB"},      {"WS", NULL},
                 {"RWS", NULL},    {"RWR", NULL},        {"RWR", "64B"},
                 {"RWR", "16KiB"}, {"LADDER-LAT", NULL}, {"LINK", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *option = cases[i].block != NULL ? "--block" : NULL;
        struct process *process = gpubench("runs", MEASURE("--workload", cases[i].workload,
                                                           "--gpus", "1", option, cases[i].block));
        if (process->status != 0) {
            fail_msg("%s: %s", cases[i].workload, process->error);
        }
        assert_memory_equal(json_at(process, "checked"), "true", 4);
        process_free(process);
    }
}

static void one_wrong_word_of_a_kernel_is_found(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"FP64", "in 1 of "},
                                           {"TC-FP16", "in 1 of "},
                                           {"WS", "has other words in its memory at 0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *variant = i < 2 ? "--variant" : NULL;
        process_expect(gpubench("runs few-registers miscounts",
                                MEASURE("--workload", cases[i][0], variant, "burst")),
                       1, cases[i][1]);
    }
}

/* Copies and fills of this driver are real. */
static void references_are_measured(void **state) {
    (void)state;
    static const char *const cases[][3] = {{"RWS", "memcpy"},          {"WS", "memset"},
                                           {"LINK", "memcpy", "to"},   {"LINK", "memcpy", "from"},
                                           {"LINK", "memcpy", "both"}, {"LINK", "memcpy", "peer"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *variant = cases[i][2] != NULL ? "--variant" : NULL;
        struct process *process =
            gpubench("", MEASURE("--workload", cases[i][0], "--reference", cases[i][1], "--gpus",
                                 "all", variant, cases[i][2]));
        assert_int_equal(process->status, 0);
        assert_memory_equal(json_at(process, "instrument"), "\"cuda-memcpy\"", 13);
        assert_memory_equal(json_at(process, "checked"), "true", 4);
        assert_memory_equal(json_at(process, "unit"), "\"B/s\"", 5);
        assert_true(json_number(process, "threads") == 2);
        assert_true(json_number(process, "value") > 1e6);
        assert_non_null(strstr(process->output, "\"pci\": \"00f1:3b:00.0\""));
        process_free(process);
    }
}

static void a_bit_that_a_copy_turns_is_found(void **state) {
    (void)state;
    process_expect(gpubench("one-bit", MEASURE("--workload", "RWS", "--reference", "memcpy")), 1,
                   "has other words in its memory");
    process_expect(gpubench("one-bit", MEASURE("--workload", "LINK", "--reference", "memcpy")), 1,
                   "copied wrong words from the host");
}

static void what_cublas_lacks_is_said(void **state) {
    (void)state;
    const char *const argv[] = {"gpubench", "--workload", "TC-FP8", "--reference", "cublas", NULL};
    process_expect(gpubench("", argv), 77, "that takes libcublasLt");
}

static void the_time_of_a_launch_is_measured(void **state) {
    (void)state;
    struct process *process = gpubench("", MEASURE("--workload", "LAUNCH"));
    assert_int_equal(process->status, 0);
    assert_memory_equal(json_at(process, "unit"), "\"s\"", 3);
    assert_memory_equal(json_at(process, "checked"), "false", 5);
    assert_true(json_number(process, "value") > 0 && json_number(process, "value") < 1);
    process_free(process);
}

static void gpus_are_listed(void **state) {
    (void)state;
    struct process *process = gpubench("", ARGV("gpubench", "--list"));
    assert_int_equal(process->status, 0);
    assert_true(json_number(process, "driver") == 13000);
    assert_true(json_number(process, "memory_clock_hz") == 2619e6);
    assert_memory_equal(json_at(process, "compute"), "\"9.0\"", 5);
    assert_non_null(strstr(process->output, "\"pci\": \"00f1:3b:00.0\""));
    process_free(process);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_driver_is_said),
        cmocka_unit_test(a_wrong_command_line_is_said),
        cmocka_unit_test(what_is_not_possible_is_said),
        cmocka_unit_test(what_fails_is_said_with_the_gpu_and_a_remedy),
        cmocka_unit_test(a_kernel_that_never_ends_is_left),
        cmocka_unit_test(results_that_nobody_computed_are_wrong),
        cmocka_unit_test(results_of_every_kernel_are_right),
        cmocka_unit_test(memory_is_read_written_and_copied_right),
        cmocka_unit_test(one_wrong_word_of_a_kernel_is_found),
        cmocka_unit_test(references_are_measured),
        cmocka_unit_test(a_bit_that_a_copy_turns_is_found),
        cmocka_unit_test(what_cublas_lacks_is_said),
        cmocka_unit_test(the_time_of_a_launch_is_measured),
        cmocka_unit_test(gpus_are_listed),
    };
    const char *kernels = getenv("KERNELS");
    snprintf(library, sizeof library, "PEAKMARK_LIBCUDA=%s/tests/libcuda.so.1",
             kernels != NULL ? kernels : "../../build/kernels");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
