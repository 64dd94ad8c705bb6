/*
 * Loaded before the user-mode kernel, between it and the machine's ptrace. It keeps the vector registers of a
 * process in 2,696 bytes, which is all there was before AMX. A kernel with more state than that takes nothing
 * but the whole, in the standard format of XSAVE: what comes first there is what it has always been. So the
 * rest is read from the process and given back as it was. No process in the guest uses it: Linux wants to be
 * asked before.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STATE_BYTES = 1 << 16 };

static long ask(long request, long process, void *address, void *data) {
    return syscall(SYS_ptrace, request, process, address, data);
}

static long vector_state(long request, long process, struct iovec *wanted) {
    /* The user-mode kernel has one thread that traces. */
    static _Alignas(64) unsigned char state[STATE_BYTES];
    struct iovec whole = {state, sizeof state};
    void *kind = (void *)(uintptr_t)NT_X86_XSTATE;
    long result = ask(PTRACE_GETREGSET, process, kind, &whole);
    if (result < 0) {
        return result;
    }
    size_t part = wanted->iov_len < whole.iov_len ? wanted->iov_len : whole.iov_len;
    if (request == PTRACE_SETREGSET) {
        memcpy(state, wanted->iov_base, part);
        return ask(PTRACE_SETREGSET, process, kind, &whole);
    }
    memcpy(wanted->iov_base, state, part);
    wanted->iov_len = part;
    return result;
}

/* In place of the C library's. */
long ptrace(enum __ptrace_request request, ...) {
    va_list arguments;
    va_start(arguments, request);
    long process = va_arg(arguments, int);
    void *address = va_arg(arguments, void *), *data = va_arg(arguments, void *);
    va_end(arguments);
    if ((request == PTRACE_GETREGSET || request == PTRACE_SETREGSET) && (uintptr_t)address == NT_X86_XSTATE) {
        return vector_state(request, process, data);
    }
    if (request != PTRACE_PEEKTEXT && request != PTRACE_PEEKDATA && request != PTRACE_PEEKUSER) {
        return ask(request, process, address, data);
    }
    /* The system call writes what the function returns. */
    long word, result = ask(request, process, address, &word);
    if (result < 0) {
        return result;
    }
    errno = 0;
    return word;
}
