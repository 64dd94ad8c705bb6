/*
 * Starts a kernel as a real process and reads its output; no shell. For the tests of the programs.
 */
#ifndef PEAKMARK_TEST_PROCESS_H
#define PEAKMARK_TEST_PROCESS_H

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

enum { OUTPUT_BYTES = 1 << 16, PROCESS_DEADLINE_S = 60 };

struct process {
    pid_t pid;
    int out, err;
    int status; /* exit code, or minus the signal that ended it */
    size_t out_have, err_have;
    char output[OUTPUT_BYTES], error[OUTPUT_BYTES];
};

/* Becomes the program at `path`; $RUNNER is the emulator that programs of another architecture
 * need. */
_Noreturn static inline void process_become(const char *path, const char *const *argv) {
    const char *runner = getenv("RUNNER");
    const char *words[64] = {runner, path};
    size_t count = 2;
    if (runner == NULL || runner[0] == '\0') {
        execv(path, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    while (argv[count - 1] != NULL && count < sizeof words / sizeof words[0] - 1) {
        words[count] = argv[count - 1];
        count++;
    }
    execvp(runner, (char *const *)(uintptr_t)words);
    _exit(127);
}

/* A system call that the kernel answers with this errno, or with 0, without doing anything. */
struct disabled_call {
    int number, error;
};

/* Disables a system call in this process and in the program it becomes, for good. False where the
 * kernel allows no such filter. */
static inline bool process_disable(const struct disabled_call *call) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call->number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)call->error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof code / sizeof code[0], .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* Disabled in the programs started from now on; NULL: none. */
static const struct disabled_call *process_disabled_call = NULL;
enum { PROCESS_NOT_DISABLED = 126 };

/* argv[0] is the name of a program in $KERNELS, or a path from /; variable may be NULL or
 * "NAME=value". */
static inline struct process *process_start(const char *variable, const char *const *argv) {
    const char *kernels = getenv("KERNELS");
    struct process *process = calloc(1, sizeof *process);
    char path[4096];
    int out[2], err[2];
    assert_non_null(process);
    snprintf(path, sizeof path, "%s/%s", kernels != NULL ? kernels : "../../build/kernels",
             argv[0]);
    if (argv[0][0] == '/') {
        snprintf(path, sizeof path, "%s", argv[0]);
    }
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        unsetenv("NETBENCH_KEY");
        if (variable != NULL) {
            putenv((char *)(uintptr_t)variable);
        }
        if (process_disabled_call != NULL && !process_disable(process_disabled_call)) {
            _exit(PROCESS_NOT_DISABLED);
        }
        process_become(path, argv);
    }
    close(out[1]);
    close(err[1]);
    process->out = out[0];
    process->err = err[0];
    return process;
}

static inline void process_read(int *from, char *into, size_t *have) {
    ssize_t count = read(*from, into + *have, OUTPUT_BYTES - 1 - *have);
    if (count <= 0) {
        close(*from);
        *from = -1;
        return;
    }
    *have += (size_t)count;
    into[*have] = '\0';
}

/* Reads until `until` is in stderr (NULL: until both streams end). False at the deadline or the
 * end. */
static inline bool process_listen(struct process *process, const char *until) {
    uint64_t deadline = clock_now() + PROCESS_DEADLINE_S * UINT64_C(1000000000);
    while (until == NULL || strstr(process->error, until) == NULL) {
        struct pollfd wait[2] = {{.fd = process->out, .events = POLLIN},
                                 {.fd = process->err, .events = POLLIN}};
        if (process->out < 0 && process->err < 0) {
            return until == NULL;
        }
        if (clock_now() > deadline) {
            return false;
        }
        poll(wait, 2, 100);
        if (process->out >= 0 && wait[0].revents != 0) {
            process_read(&process->out, process->output, &process->out_have);
        }
        if (process->err >= 0 && wait[1].revents != 0) {
            process_read(&process->err, process->error, &process->err_have);
        }
    }
    return true;
}

/* Waits for the end; a process that does not end is killed, and the test fails. Returns
 * process->status. */
static inline int process_wait(struct process *process) {
    bool ended = process_listen(process, NULL);
    int status = 0;
    if (!ended) {
        kill(process->pid, SIGKILL);
    }
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR) {
    }
    process->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    if (!ended) {
        fail_msg("process %d did not end: %s", (int)process->pid, process->error);
    }
    return process->status;
}

static inline struct process *process_run(const char *variable, const char *const *argv) {
    struct process *process = process_start(variable, argv);
    process_wait(process);
    return process;
}

/* The program with a disabled system call; skips the test where that is not possible. */
static inline struct process *process_run_without(struct disabled_call call, const char *variable,
                                                  const char *const *argv) {
    const char *runner = getenv("RUNNER");
    if (runner != NULL && runner[0] != '\0') {
        skip_because("the emulator's system calls have other numbers");
    }
    process_disabled_call = &call;
    struct process *process = process_run(variable, argv);
    process_disabled_call = NULL;
    if (process->status == PROCESS_NOT_DISABLED) {
        skip_because("seccomp is not available");
    }
    return process;
}

static inline void process_free(struct process *process) {
    if (process->out >= 0) {
        close(process->out);
    }
    if (process->err >= 0) {
        close(process->err);
    }
    free(process);
}

/*
 * Asserts that a program ended with this code and, unless NULL, this text on stderr; then frees it.
 */
static inline void process_expect(struct process *process, int status, const char *text) {
    if (process->status != status || (text != NULL && strstr(process->error, text) == NULL)) {
        fail_msg("expected exit %d with '%s', got %d: %s%s", status, text != NULL ? text : "",
                 process->status, process->error, process->output);
    }
    process_free(process);
}

/* The value of a key of the printed JSON object, at its first occurrence; fails the test when it is
 * not there. */
static inline const char *json_at(const struct process *process, const char *key) {
    char pattern[80];
    snprintf(pattern, sizeof pattern, "\"%s\": ", key);
    const char *at = strstr(process->output, pattern);
    if (at == NULL) {
        fail_msg("no key %s in: %s%s", key, process->output, process->error);
        return "";
    }
    return at + strlen(pattern);
}

static inline double json_number(const struct process *process, const char *key) {
    char *end;
    const char *at = json_at(process, key);
    double number = strtod(at, &end);
    assert_ptr_not_equal(end, at);
    return number;
}

/* Percentiles are printed, above zero and in order. */
static inline void assert_percentiles(const struct process *process) {
    static const char *const keys[] = {"p50", "p90", "p99", "p999", "max"};
    double before = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        double now = json_number(process, keys[i]);
        assert_true(now > 0 && now >= before);
        before = now;
    }
}

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Asserts that a program has run for this time at least, and measured for some of it: on a busy
 * machine its threads may have begun long after the time did. */
static inline void process_lasted(const struct process *process, uint64_t began, double seconds) {
    double lasted = (double)(clock_now() - began) * 1e-9,
           measured = json_number(process, "seconds");
    assert_true(lasted >= seconds);
    assert_true(measured > 0 && measured <= lasted);
}

/* What a process that runs `job` printed, and its exit code. */
static inline struct process *process_run_job(void (*job)(void)) {
    struct process *process = calloc(1, sizeof *process);
    int out[2], err[2];
    assert_non_null(process);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        job();
        _exit(0);
    }
    close(out[1]);
    close(err[1]);
    process->out = out[0];
    process->err = err[0];
    process_wait(process);
    return process;
}

#endif
