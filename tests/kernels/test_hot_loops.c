/*
 * The loops of the compute kernels and sweeps as compiled, read with objdump, of every instruction
 * set that was compiled, also where this CPU lacks it: no operand on the stack, because a compiler
 * that spills an accumulator costs two thirds of the rate and nothing else would tell; as many of
 * the named instructions as are counted; and little else. Also: code of an instruction set stands
 * in the files of that set only.
 */
#include "check.h"

#include <glob.h>

#include "cpu/kernel.h"
#include "memory/sweep.h"

enum { LINES_MAX = 20000 };
static struct line {
    unsigned long address;
    char text[160];
} lines[LINES_MAX];

/* That of another architecture stands in $OBJDUMP. */
static const char *objdump(void) {
    const char *name = getenv("OBJDUMP");
    return name != NULL ? name : "objdump";
}

/* Disassembles one object file; a line per instruction, function headers have address 0. */
static int disassemble(const char *path) {
    char command[512], text[512];
    int count = 0;
    snprintf(command, sizeof command, "%s -d --no-show-raw-insn '%s' 2>/dev/null", objdump(), path);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    while (fgets(text, sizeof text, out) != NULL) {
        char *colon = strchr(text, ':');
        text[strcspn(text, "\n")] = '\0';
        assert_true(count < LINES_MAX);
        if (text[0] == ' ' && colon != NULL) {
            lines[count].address = strtoul(text, NULL, 16);
            snprintf(lines[count++].text, sizeof lines[0].text, "%.150s", colon + 1);
        } else if (strstr(text, ">:") != NULL) {
            lines[count].address = 0;
            snprintf(lines[count++].text, sizeof lines[0].text, "%.150s", text);
        }
    }
    assert_int_equal(pclose(out), 0);
    return count;
}

/* Target of a conditional jump, x86 (jb 670 <...>) or AArch64 (b.ne 670 <...>, cbnz x0, 670); 0 for
 * other lines. */
static unsigned long branch_target(const char *text) {
    char name[32];
    int end = 0;
    if (sscanf(text, " %31s %n", name, &end) != 1) {
        return 0;
    }
    bool x86 = name[0] == 'j' && strncmp(name, "jmp", 3) != 0; /* jmpq before binutils 2.37 */
    bool arm =
        strncmp(name, "b.", 2) == 0 || strncmp(name, "cb", 2) == 0 || strncmp(name, "tb", 2) == 0;
    const char *last = strrchr(text + end, ',');
    return x86 || arm ? strtoul(last != NULL ? last + 1 : text + end, NULL, 16) : 0;
}

/* %rbp may be an ordinary register; as a frame pointer it has negative offsets, which no loop here
 * uses otherwise. */
static bool is_stack_operand(const char *text) {
    const char *frame = strstr(text, "(%rbp)");
    while (frame != NULL && frame > text && strchr("0123456789abcdefx", frame[-1]) != NULL) {
        frame--;
    }
    return strstr(text, "(%rsp") != NULL || strstr(text, "[sp") != NULL ||
           strstr(text, "[x29") != NULL || (frame != NULL && frame > text && frame[-1] == '-');
}

static bool is_return(const char *text) {
    char name[32];
    /* retq before binutils 2.37 */
    return sscanf(text, " %31s", name) == 1 &&
           (strcmp(name, "ret") == 0 || strcmp(name, "retq") == 0);
}

static void skip_if_instrumented(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(INSTRUMENTED)
    skip(); /* sanitizers put checks and stack slots everywhere */
#endif
    char command[256];
    snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", objdump());
    if (system(command) != 0) {
        skip_because("%s is not installed", objdump());
    }
}

enum { LOOPS_MAX = 200 };
static struct loop { int first, last; /* in lines[] */ } loops[LOOPS_MAX];

/* Finds the innermost loops (backward jumps with none in between) of at least 8 instructions;
 * returns their number. */
static int find_loops(int count) {
    int loop_count = 0, last_loop_end = -1;
    for (int i = 0; i < count; i++) {
        unsigned long target = lines[i].address > 0 ? branch_target(lines[i].text) : 0;
        if (target == 0 || target >= lines[i].address) {
            continue;
        }
        int first = i;
        bool returns = false; /* a jump back to the common end of a function is no loop */
        while (first > 0 && lines[first - 1].address >= target && lines[first - 1].address > 0) {
            first--;
            returns = returns || is_return(lines[first].text);
        }
        if (returns) {
            continue;
        }
        if (first > last_loop_end && i - first >= 8) {
            assert_true(loop_count < LOOPS_MAX);
            loops[loop_count++] = (struct loop){first, i};
        }
        last_loop_end = i;
    }
    return loop_count;
}

/* The loops of an object file below $KERNELS/obj, none of which may use the stack; returns their
 * number. */
static int loops_of(const char *file) {
    const char *kernels = getenv("KERNELS");
    char path[512];
    snprintf(path, sizeof path, "%s/obj/%s", kernels != NULL ? kernels : "../../build/kernels",
             file);
    int loop_count = find_loops(disassemble(path));
    for (int i = 0; i < loop_count; i++) {
        const char *stack = NULL;
        bool works = false; /* clang makes the step from block to block a loop without any access */
        for (int j = loops[i].first; j <= loops[i].last; j++) {
            const char *text = lines[j].text;
            if (is_stack_operand(text)) {
                stack = text;
            } else if (strpbrk(text, "([") != NULL && strstr(text, "lea") == NULL) {
                works = true;
            }
        }
        if (stack != NULL && works) {
            fail_msg("%s: a loop uses the stack:%s", path, stack);
        }
    }
    return loop_count;
}

/* How often a loop has this instruction; of AArch64 with this arrangement of lanes (2d, 16b) unless
 * empty. */
static int occurrences(const struct loop *loop, const char *mnemonic, const char *lanes) {
    char name[32], arranged[40];
    int count = 0;
    snprintf(arranged, sizeof arranged, ".%s", lanes);
    for (int i = loop->first; i <= loop->last; i++) {
        const char *text = lines[i].text + strspn(lines[i].text, " \t");
        text +=
            strncmp(text, "{vex}", 5) == 0 ? 5 : 0; /* the short encoding of what AVX-512 has too */
        count += sscanf(text, " %31s", name) == 1 && strcmp(name, mnemonic) == 0 &&
                 (lanes[0] == '\0' || strstr(lines[i].text, arranged) != NULL);
    }
    return count;
}

/* The file that holds a kernel: that of its extension, if it needs one. */
static const char *suffix_of(const struct kernel *kernel) {
    switch (kernel->feature) {
    case ISA_FEATURE_AVXVNNI:
        return "avxvnni";
    case ISA_FEATURE_AVX512VNNI:
        return "avx512vnni";
    case ISA_FEATURE_DOTPROD:
        return "dotprod";
    case ISA_FEATURE_AVX512BF16:
        return "avx512bf16";
    case ISA_FEATURE_AVX512FP16:
        return "avx512fp16";
    case ISA_FEATURE_AMX:
        return "amx";
    case ISA_FEATURE_FP16:
        return "fp16";
    case ISA_FEATURE_I8MM:
        return "i8mm";
    case ISA_FEATURE_BF16:
        return "bf16";
    case ISA_FEATURE_SVE:
        return "sve";
    default:
        return isa_name(kernel->isa);
    }
}

/*
 * Some loop has the kernel's first instruction for every accumulator, in the even and in the odd
 * step, and, where a step is what is counted and nothing else, at most four more of the loop
 * itself. "2 pmuludq, ..." means two in a step; "fmla 2d" is AArch64's with lanes.
 */
static void has_its_loop(const struct kernel *kernel, int loop_count, const char *file) {
    char mnemonic[32] = "", lanes[8] = "";
    int times = 1, steps = 2 * (int)kernel->accumulators;
    if (sscanf(kernel->instruction, "%d %31[a-z0-9]", &times, mnemonic) != 2) {
        times = 1;
        assert_true(sscanf(kernel->instruction, "%31[a-z0-9] %7[0-9bhsd]", mnemonic, lanes) >= 1);
    }
    for (int i = 0; i < loop_count; i++) {
        int length = loops[i].last - loops[i].first + 1,
            rest = length - (int)(steps * kernel->instructions);
        if (occurrences(&loops[i], mnemonic, lanes) == times * steps &&
            (kernel->isa == ISA_SSE2 || (rest >= 0 && rest <= 4))) {
            return;
        }
    }
    fail_msg("%s: no loop of %s does %d steps of %g instructions with %d %s %s each", file,
             kernel->workload, steps, kernel->instructions, times, mnemonic, lanes);
}

static void compute_kernels_are_as_counted(void **state) {
    (void)state;
    skip_if_instrumented();
    for (int table = 0; kernel_tables[table] != NULL; table++) {
        char file[64];
        int loop_count = 0, kernels = 0;
        for (const struct kernel *kernel = kernel_tables[table]; kernel->workload != NULL;
             kernel++, kernels++) {
            if (kernels == 0) {
                snprintf(file, sizeof file, "cpu/kernels_%s.o", suffix_of(kernel));
                loop_count = loops_of(file);
            }
            if (kernel->isa != ISA_SCALAR) { /* plain C: what the compiler makes of it */
                has_its_loop(kernel, loop_count, file);
            }
        }
        assert_true(loop_count >= kernels);
    }
}

/* Each instruction before the width in brackets is in a loop that goes over a group with it, each
 * byte once. */
static void go_over_a_group(const char *instruction, int loop_count, const char *file) {
    char words[64], *rest = words;
    int width = 0;
    assert_true(sscanf(strchr(instruction, '('), "(%d B)", &width) == 1);
    snprintf(words, sizeof words, "%s", instruction);
    *strchr(words, '(') = '\0';
    for (char *word; (word = strtok_r(rest, ", ", &rest)) != NULL;) {
        bool seen = false;
        for (int i = 0; i < loop_count; i++) {
            seen = seen || occurrences(&loops[i], word, "") == SWEEP_GROUP / width;
        }
        if (!seen) {
            fail_msg("%s: no loop has %s for each of %d B of a group", file, word, width);
        }
    }
}

/* Every instruction that a sweep names, and the arithmetic of its triad. */
static void sweeps_are_as_named(void **state) {
    (void)state;
    skip_if_instrumented();
    for (int table = 0; sweepers[table] != NULL; table++) {
        const struct sweeper *sweeper = sweepers[table];
        char file[64];
        snprintf(file, sizeof file, "memory/sweep_%s.o", isa_name(sweeper->isa));
        int loop_count = loops_of(file);
        assert_true(loop_count >= 4);
        if (sweeper->isa != ISA_SCALAR) { /* plain C: what the compiler makes of it */
            go_over_a_group(sweeper->instruction, loop_count, file);
            go_over_a_group(sweeper->triad_instruction, loop_count, file);
        }
    }
}

/* What the oldest CPU lacks, in a file that runs on any, would end the program there with an
 * illegal instruction. */
static void extensions_only_in_their_files(void **state) {
    (void)state;
    static const char *const marks[][2] = {
        {"%ymm", "avx"},   {"%zmm", "avx512"},    {"dpbusd", "vnni"}, {"sdot\tv", "dotprod"},
        {"%tmm", "amx"},   {"vdpbf16ps", "bf16"}, {"231ph", "fp16"},  {"smmla", "i8mm"},
        {"bfdot", "bf16"}, {"bfmmla", "bf16"},    {"p0/m", "sve"}};
    const char *kernels = getenv("KERNELS");
    char path[512];
    glob_t files;
    skip_if_instrumented();
    snprintf(path, sizeof path, "%s/obj/*/*.o", kernels != NULL ? kernels : "../../build/kernels");
    assert_int_equal(glob(path, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        int count = disassemble(files.gl_pathv[i]);
        for (int j = 0; j < count; j++) {
            for (size_t mark = 0; mark < sizeof marks / sizeof marks[0]; mark++) {
                if (strstr(lines[j].text, marks[mark][0]) != NULL &&
                    strstr(strrchr(files.gl_pathv[i], '/'), marks[mark][1]) == NULL) {
                    fail_msg("%s holds%s", files.gl_pathv[i], lines[j].text);
                }
            }
        }
    }
    globfree(&files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compute_kernels_are_as_counted),
        cmocka_unit_test(sweeps_are_as_named),
        cmocka_unit_test(extensions_only_in_their_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
