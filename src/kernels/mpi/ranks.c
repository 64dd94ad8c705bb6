#include "mpi/ranks.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/status.h"

/* Seconds by which the timeout of the first rank comes before that of the others: one sentence is
 * enough, and then the launcher ends the rest. */
#define FIRST_BY_S 2

/* Seconds that the library may take to end. MPICH 4.0 with UCX hangs there at times, more often if
 * some ranks come later. */
#define FINISH_S 5

void ranks_abort(const char *format, ...) {
    va_list arguments;
    fputs("mpibench: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
    _exit(STATUS_FAILED);
}

/* Ends this process alone, as a signal handler may not call MPI: the launcher ends the others. */
static void give_up(int signal_number) {
    static const char text[] = "mpibench: the ranks have not finished within the timeout: one of "
                               "them hangs, or messages do not arrive\n";
    (void)signal_number;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(STATUS_FAILED);
}

static void report_error(MPI_Comm *communicator, int *code, ...) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, rank = 0;
    MPI_Comm_rank(*communicator, &rank);
    MPI_Error_string(*code, text, &length);
    ranks_abort("rank %d: the MPI library reports: %s", rank, text);
}

static void finish(void) {
    MPI_Finalize();
}

/* Ends a process that has succeeded, although the library has not ended. */
static void leave(int signal_number) {
    (void)signal_number;
    _exit(STATUS_OK);
}

void ranks_succeed(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    fflush(stdout);
    signal(SIGALRM, leave);
    alarm(FINISH_S);
}

void ranks_start(struct ranks *ranks, double timeout) {
    MPI_Errhandler handler;
    signal(SIGALRM, give_up);
    alarm((unsigned)ceil(timeout));
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS) {
        fail_measurement("the MPI library does not start");
    }
    atexit(finish);
    MPI_Comm_create_errhandler(report_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks->rank, MPI_INFO_NULL,
                        &ranks->node);
    if (ranks->rank != 0) {
        alarm(alarm(0) + FIRST_BY_S);
    }
}

void ranks_pin(const struct ranks *ranks, const struct cpu_list *cpus) {
    int index;
    MPI_Comm_rank(ranks->node, &index);
    const int cpu = cpus->cpu[index % cpus->count];
    const int error = place_pin(cpu);
    if (error != 0) {
        ranks_abort("rank %d cannot run on CPU %d: %s", ranks->rank, cpu, strerror(error));
    }
}

/* Number of CPUs that at least one rank of the node may use. */
static int count_cpus(const struct cpu_list *allowed, MPI_Comm node) {
    static unsigned char mine[CPU_LIST_MAX], all[CPU_LIST_MAX];
    int count = 0;
    for (int i = 0; i < allowed->count; i++) {
        mine[allowed->cpu[i]] = 1;
    }
    MPI_Allreduce(mine, all, CPU_LIST_MAX, MPI_UNSIGNED_CHAR, MPI_MAX, node);
    for (int cpu = 0; cpu < CPU_LIST_MAX; cpu++) {
        count += all[cpu];
    }
    return count;
}

void ranks_locate(const struct ranks *ranks, struct rank_place *places) {
    static struct cpu_list allowed;
    struct rank_place place = {.cpu = sched_getcpu()};
    int of_node;
    gethostname(place.host, sizeof place.host - 1);
    if (!place_allowed(&allowed)) {
        ranks_abort("rank %d on %s cannot read which CPUs it may use", ranks->rank, place.host);
    }
    place.cpus = allowed.count;
    MPI_Comm_size(ranks->node, &of_node);
    place.oversubscribed = of_node > count_cpus(&allowed, ranks->node);
    MPI_Gather(&place, sizeof place, MPI_BYTE, places, sizeof place, MPI_BYTE, 0, MPI_COMM_WORLD);
}
