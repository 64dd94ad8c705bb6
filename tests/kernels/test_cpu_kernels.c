/* Every compute kernel this CPU runs: does it compute what plain C computes, and does the check
 * notice what is wrong? */
#include "check.h"

#include <math.h>

#include "common/chain.h"
#include "cpu/kernel.h"

static struct operands operands;
static _Alignas(64) unsigned char start[STATE_BYTES_MAX], result[STATE_BYTES_MAX],
    expected[STATE_BYTES_MAX];

typedef void check_function(const struct kernel *kernel);

static int for_each_kernel(check_function *check) {
    int kernels = 0;
    for (int table = 0; kernel_tables[table] != NULL; table++) {
        for (const struct kernel *kernel = kernel_tables[table]; kernel->workload != NULL;
             kernel++) {
            if (isa_available(kernel->isa) && isa_feature_available(kernel->feature)) {
                check(kernel);
                kernels++;
            }
        }
    }
    return kernels;
}

static void matches_reference(const struct kernel *kernel) {
    static const uint64_t passes[] = {0, 2, 4, 998};
    const unsigned bytes = kernel->vector_bytes * kernel->accumulators;
    assert_true(bytes <= STATE_BYTES_MAX);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        reference_inputs(kernel, seed, seed + 5, &operands, start);
        for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
            kernel->run(passes[i], &operands, start, result);
            reference_run(kernel, passes[i], &operands, start, expected);
            if (memcmp(result, expected, bytes) != 0) {
                fail_msg("%s with %s differs from plain C after %d passes", kernel->workload,
                         kernel->instruction, (int)passes[i]);
            }
        }
    }
}

/* A chain of any length among the steps changes nothing of what they compute. */
static void paced_matches_reference(const struct kernel *kernel) {
    static const unsigned links[] = {0, 1, 5, 26, CHAIN_LINKS_MAX};
    const unsigned bytes = kernel->vector_bytes * kernel->accumulators;
    void *itself = &itself;
    reference_inputs(kernel, 7, 1, &operands, start);
    for (uint64_t passes = 0; passes <= 96; passes += 32) {
        reference_run(kernel, passes, &operands, start, expected);
        for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
            kernel->paced(passes, &operands, start, result, links[i], &itself);
            if (memcmp(result, expected, bytes) != 0) {
                fail_msg("%s with %s and %u loads differs from plain C after %d passes",
                         kernel->workload, kernel->instruction, links[i], (int)passes);
            }
        }
    }
}

/* Two passes less, or one accumulator that stood still, must not look like a whole call. */
static void lost_steps_are_noticed(const struct kernel *kernel) {
    const unsigned bytes = kernel->vector_bytes * kernel->accumulators;
    reference_inputs(kernel, 2, 0, &operands, start);
    reference_run(kernel, PASSES_PER_CALL, &operands, start, expected);
    kernel->run(PASSES_PER_CALL - 2, &operands, start, result);
    assert_memory_not_equal(result, expected, bytes);
    kernel->run(PASSES_PER_CALL, &operands, start, result);
    assert_memory_equal(result, expected, bytes);
    for (unsigned i = 0; i < kernel->accumulators; i++) {
        if (memcmp(start + i * kernel->vector_bytes, result + i * kernel->vector_bytes,
                   kernel->vector_bytes) == 0) {
            fail_msg("accumulator %u of %s with %s ends where it began", i, kernel->workload,
                     kernel->instruction);
        }
    }
}

/* Plain C has eight kernels, and so has a vector ISA. */
static int least_kernels(void) {
    return isa_available(ISA_SSE2) || isa_available(ISA_NEON) ? 16 : 8;
}

static void all_kernels_match(void **state) {
    (void)state;
    assert_true(for_each_kernel(matches_reference) >= least_kernels());
}

static void all_kernels_match_with_a_chain(void **state) {
    (void)state;
    assert_true(for_each_kernel(paced_matches_reference) >= least_kernels());
}

static void all_kernels_notice_lost_steps(void **state) {
    (void)state;
    for_each_kernel(lost_steps_are_noticed);
}

/* Neither subnormal nor infinite nor NaN, and exact: between 1 and 2 in a whole call, by every
 * rule, also of another architecture's kernels. Kernels compute what the rule says, see above. */
static void all_floats_stay_normal(void **state) {
    (void)state;
    static const struct {
        enum rule rule;
        unsigned lane;
    } cases[] = {{RULE_CHAIN_F64, 8},    {RULE_ADD_F64, 8},     {RULE_MIX_F64, 8},
                 {RULE_THIN_MIX_F64, 8}, {RULE_ADD_MIX_F64, 8}, {RULE_CHAIN_F32, 4},
                 {RULE_ADD_F32, 4},      {RULE_MIX_F32, 4},     {RULE_THIN_MIX_F32, 4},
                 {RULE_ADD_MIX_F32, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct kernel kernel = {
            .rule = cases[i].rule, .vector_bytes = 512, .accumulators = 2};
        reference_inputs(&kernel, 1, 0, &operands, start);
        reference_run(&kernel, PASSES_PER_CALL, &operands, start, result);
        for (unsigned at = 0; at < 2 * 512; at += cases[i].lane) {
            double value;
            float narrow;
            memcpy(&narrow, result + at, sizeof narrow);
            memcpy(&value, result + at / 8 * 8, sizeof value);
            value = cases[i].lane == 8 ? value : narrow;
            assert_true(isnormal(value) && value > 1 && value < 2);
        }
    }
}

/* Multiplications and additions per lane of a step, and its instructions where they are fused. */
static double per_lane(const struct kernel *kernel) {
    switch (kernel->rule) {
    case RULE_MIX_F64:
    case RULE_MIX_F32:
    case RULE_ADD_MIX_F64:
    case RULE_ADD_MIX_F32:
        assert_true(kernel->instructions == 2);
        return 3;
    case RULE_THIN_MIX_F64:
    case RULE_THIN_MIX_F32:
        assert_true(kernel->instructions == 1.5);
        return 2.5;
    default:
        return 2;
    }
}

/*
 * The counts follow from vector width and lane width: one multiplication and one addition per lane,
 * and what a mix adds.
 */
static void operations_follow_from_the_width(void **state) {
    (void)state;
    for (int table = 0; kernel_tables[table] != NULL; table++) {
        for (const struct kernel *kernel = kernel_tables[table]; kernel->workload != NULL;
             kernel++) {
            const char *w = kernel->workload;
            unsigned lane = strncmp(w, "DP", 2) == 0                             ? 8
                            : strcmp(w, "SP") == 0 || strncmp(w, "FP32", 4) == 0 ? 4
                            : strcmp(w, "HP") == 0 || strstr(w, "16") != NULL    ? 2
                                                                                 : 1;
            /* Each element of a row is multiplied with as many columns as there are rows. */
            unsigned columns = strstr(w, "MM") == NULL              ? 1
                               : kernel->vector_bytes == TILE_BYTES ? TILE_ROWS
                                                                    : 2;
            double operations = per_lane(kernel) * columns * kernel->vector_bytes / lane;
            assert_true(kernel->operations == operations);
            assert_true(kernel->instructions >= 1 && kernel->accumulators <= ACCUMULATORS_MAX);
        }
    }
}

static void the_best_kernel_is_found(void **state) {
    (void)state;
    static const char *const workloads[] = {"QP",   "HP",    "SP",      "DP",
                                            "FP32", "DPMIX", "FP32MIX", "QPDOT"};
    static const char *const units[] = {"FP16", "BF16DOT", "QPMM", "BF16MM"};
    const char *reason;
    for (size_t i = 0; i < 4; i++) { /* not every CPU has these */
        const struct kernel *kernel = kernel_find(units[i], ISA_COUNT, &reason);
        assert_null(kernel_find(units[i], ISA_SCALAR, &reason));
        if (kernel != NULL) {
            assert_string_equal(kernel->workload, units[i]);
        } else {
            assert_non_null(strstr(reason, units[i]));
        }
    }
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        const struct kernel *kernel = kernel_find(workloads[i], ISA_COUNT, &reason);
        assert_non_null(kernel);
        assert_string_equal(kernel->workload, workloads[i]);
        for (int isa = 0; isa < ISA_COUNT; isa++) {
            const struct kernel *forced = kernel_find(workloads[i], (enum isa)isa, &reason);
            if (isa_available((enum isa)isa)) {
                assert_int_equal(forced->isa, isa);
            } else {
                assert_null(forced);
                assert_non_null(strstr(reason, isa_name((enum isa)isa)));
            }
        }
    }
}

static uint64_t steps_of_slow;

/* A kernel that takes as long as many others. */
static void slow(uint64_t passes, const struct operands *unused, const void *from, void *to) {
    (void)unused, (void)from, (void)to;
    for (uint64_t i = 0; i < 100 * passes; i++) {
        __asm__ volatile("" : "+r"(steps_of_slow));
    }
}

static void quick(uint64_t passes, const struct operands *unused, const void *from, void *to) {
    (void)passes, (void)unused, (void)from, (void)to;
}

#define MADE(name, kind, operations, run)                                                          \
    { name, ISA_SCALAR, ISA_FEATURE_NONE, kind, RULE_CHAIN_F64, 8, 8, operations, 1, run, NULL }

/* The best of a workload's mixes is taken, by operations and not by passes; another workload's, or
 * that of a workload without mixes, is none of them. */
static void the_fastest_mix_is_taken(void **state) {
    (void)state;
    static const struct kernel mixes[] = {
        MADE("DPMIX", "slow", 2, slow),
        MADE("DPMIX", "quick", 2, quick),
        MADE("DPMIX", "slow", 3, slow),
        MADE("FP32MIX", "slow", 2, slow),
        MADE("DP", "slow", 2, slow),
        MADE("DP", "quick", 2, quick),
        MADE("DPMIX", "few", 2, slow),
        MADE("DPMIX", "many", 4, slow),
        {0},
    };
    assert_ptr_equal(kernel_fastest(&mixes[0]), &mixes[1]);
    assert_ptr_equal(kernel_fastest(&mixes[3]), &mixes[3]);
    assert_ptr_equal(kernel_fastest(&mixes[4]), &mixes[4]);
    assert_ptr_equal(kernel_fastest(&mixes[6]), &mixes[7]);
}

/* Kernels that no test here can run, in the lines that are counted. */
static void say_what_this_cpu_lacks(void) {
    for (int table = 0; kernel_tables[table] != NULL; table++) {
        for (const struct kernel *kernel = kernel_tables[table]; kernel->workload != NULL;
             kernel++) {
            bool isa = isa_available(kernel->isa);
            if (!isa || !isa_feature_available(kernel->feature)) {
                printf("SKIPPED [1] test_cpu_kernels.c: this CPU has no %s\n",
                       isa ? isa_feature_name(kernel->feature) : isa_name(kernel->isa));
            }
        }
    }
}

int main(void) {
    say_what_this_cpu_lacks();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kernels_match),
        cmocka_unit_test(all_kernels_match_with_a_chain),
        cmocka_unit_test(all_kernels_notice_lost_steps),
        cmocka_unit_test(all_floats_stay_normal),
        cmocka_unit_test(operations_follow_from_the_width),
        cmocka_unit_test(the_best_kernel_is_found),
        cmocka_unit_test(the_fastest_mix_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
