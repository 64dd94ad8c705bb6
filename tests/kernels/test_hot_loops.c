/*
 * The loops of the compute kernels and sweeps as compiled, read with objdump: no operand on the stack. A
 * compiler that spills an accumulator costs two thirds of the rate, and nothing else would tell. Also: code
 * of one instruction set lies in its own files only.
 */
#include "check.h"

#include <glob.h>

enum { LINES_MAX = 20000 };
static struct line {
    unsigned long address;
    char text[160];
} lines[LINES_MAX];

/* Disassembles one object file; a line per instruction, function headers have address 0. */
static int disassemble(const char *path) {
    char command[512], text[512];
    int count = 0;
    snprintf(command, sizeof command, "objdump -d --no-show-raw-insn '%s' 2>/dev/null", path);
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

/* Target of a conditional jump, x86 (jb 670 <...>) or AArch64 (b.ne 670 <...>, cbnz x0, 670); 0 for other
 * lines. */
static unsigned long branch_target(const char *text) {
    char name[32];
    int end = 0;
    if (sscanf(text, " %31s %n", name, &end) != 1) {
        return 0;
    }
    bool x86 = name[0] == 'j' && strcmp(name, "jmp") != 0;
    bool arm = strncmp(name, "b.", 2) == 0 || strncmp(name, "cb", 2) == 0 || strncmp(name, "tb", 2) == 0;
    const char *last = strrchr(text + end, ',');
    return x86 || arm ? strtoul(last != NULL ? last + 1 : text + end, NULL, 16) : 0;
}

/* %rbp may be an ordinary register; as a frame pointer it has negative offsets, which no loop here uses
 * otherwise. */
static bool is_stack_operand(const char *text) {
    const char *frame = strstr(text, "(%rbp)");
    while (frame != NULL && frame > text && strchr("0123456789abcdefx", frame[-1]) != NULL) {
        frame--;
    }
    return strstr(text, "(%rsp") != NULL || strstr(text, "[sp") != NULL || strstr(text, "[x29") != NULL ||
           (frame != NULL && frame > text && frame[-1] == '-');
}

static bool is_return(const char *text) {
    char name[32];
    return sscanf(text, " %31s", name) == 1 && strcmp(name, "ret") == 0;
}

/* Checks every innermost loop (backward jump with none in between) of at least 8 instructions; returns their
 * number. */
static int check_loops(const char *path) {
    int count = disassemble(path), loops = 0, last_loop_end = -1;
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
        if (first <= last_loop_end || i - first < 8) {
            last_loop_end = i;
            continue;
        }
        last_loop_end = i;
        loops++;
        for (int j = first; j <= i; j++) {
            if (is_stack_operand(lines[j].text)) {
                fail_msg("%s: the loop at %lx uses the stack:%s", path, target, lines[j].text);
            }
        }
    }
    return loops;
}

static int check_files(const char *pattern) {
    const char *kernels = getenv("KERNELS");
    char path[512];
    glob_t found;
    int loops = 0;
    snprintf(path, sizeof path, "%s/obj/%s", kernels != NULL ? kernels : "../../build/kernels", pattern);
    assert_int_equal(glob(path, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int in_file = check_loops(found.gl_pathv[i]);
        assert_true(in_file > 0); /* else this test would have looked at nothing */
        loops += in_file;
    }
    globfree(&found);
    return loops;
}

static void skip_if_instrumented(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(INSTRUMENTED)
    skip(); /* sanitizers put checks and stack slots everywhere */
#endif
    if (system("objdump --version >/dev/null 2>&1") != 0) {
        print_message("objdump is not installed\n");
        skip();
    }
}

static void compute_kernels_keep_registers(void **state) {
    (void)state;
    skip_if_instrumented();
    assert_true(check_files("cpu/kernels_*.o") >= 12);
}

static void sweeps_keep_registers(void **state) {
    (void)state;
    skip_if_instrumented();
    assert_true(check_files("memory/sweep_*.o") >= 6);
}

/* Registers beyond SSE2 in a file that runs on any CPU would end the program there with an illegal
 * instruction. */
static void wide_registers_only_in_their_files(void **state) {
    (void)state;
    const char *kernels = getenv("KERNELS");
    char path[512];
    glob_t found;
    skip_if_instrumented();
    snprintf(path, sizeof path, "%s/obj/*/*.o", kernels != NULL ? kernels : "../../build/kernels");
    assert_int_equal(glob(path, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (strstr(found.gl_pathv[i], "avx") != NULL) {
            continue;
        }
        int count = disassemble(found.gl_pathv[i]);
        for (int j = 0; j < count; j++) {
            if (strstr(lines[j].text, "%ymm") != NULL || strstr(lines[j].text, "%zmm") != NULL) {
                fail_msg("%s holds%s", found.gl_pathv[i], lines[j].text);
            }
        }
    }
    globfree(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compute_kernels_keep_registers),
        cmocka_unit_test(sweeps_keep_registers),
        cmocka_unit_test(wide_registers_only_in_their_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
