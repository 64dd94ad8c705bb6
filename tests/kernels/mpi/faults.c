/*
 * Faults of an MPI library, for the tests of mpibench: loaded before it, and chosen by the variable
 * MPI_FAULT. The last rank of a run has the fault once it has made many calls.
 */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOUND_CALLS = 1000 };

/* Whether the call that asks has the fault `name`. */
static int has_fault(const char *name) {
    static long calls;
    const char *fault = getenv("MPI_FAULT");
    int rank = 0, size = 0;
    if (fault == NULL || strcmp(fault, name) != 0) {
        return 0;
    }
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    return rank == size - 1 && calls++ >= SOUND_CALLS;
}

int MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm communicator) {
    const int code = PMPI_Allreduce(out, in, count, type, op, communicator);
    if (op == MPI_SUM && has_fault("sum")) {
        ((double *)in)[count - 1] += 1;
    }
    return code;
}

int MPI_Recv(void *in, int count, MPI_Datatype type, int from, int tag, MPI_Comm communicator,
             MPI_Status *status) {
    if (has_fault("lost")) {
        raise(SIGKILL);
    }
    if (has_fault("hang")) {
        pause();
    }
    const int code = PMPI_Recv(in, count, type, from, tag, communicator, status);
    if (has_fault("message")) {
        ((unsigned char *)in)[count - 1] ^= 1;
    }
    return has_fault("error") ? PMPI_Comm_call_errhandler(communicator, MPI_ERR_OTHER) : code;
}
