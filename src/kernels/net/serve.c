#include "net/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/report.h"
#include "common/status.h"
#include "net/control.h"
#include "net/echo.h"
#include "net/endpoint.h"
#include "net/fields.h"
#include "net/gather.h"
#include "net/listener.h"
#include "net/receive.h"

/* The one test of this process. */
struct session {
    struct control control;
    struct net_plan plan;
    struct cpu_list cpus;
    struct warnings warnings;
    int sockets[STREAMS_MAX];
};

/* Sends the client the reason, and ends the program with it. */
static _Noreturn void fail_both(struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static _Noreturn void fail_both(struct session *session, const char *format, ...) {
    char sentence[LINE_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    control_send(&session->control, "FAILED %s", sentence);
    fail_measurement("%s", sentence);
}

/*
 * Where both ends run on one machine, the two threads of a stream that work at the same time must
 * not be pinned to one CPU: the server then starts where the client's CPUs end, unless its CPUs are
 * named. In a ping-pong that sleeps the two take turns, and waking each other is cheapest on one
 * CPU, which is also where the scheduler would put them. So is it for TCP streams that have no CPU
 * for each end: 2 streams on 2 CPUs move 1.3 to 2.4 times as much when each has one of its own.
 */
static bool on_client_cpus(const struct net_plan *plan, int cpus) {
    if (plan->latency) {
        return !plan->busy_poll;
    }
    return !plan->udp && 2 * plan->streams > cpus;
}

static void choose_cpus(struct session *session, const struct cpu_list *wanted) {
    int streams = session->plan.streams;
    place_choose(wanted, streams, &session->cpus, &session->warnings);
    struct endpoint local = endpoint_local(session->control.socket),
                    peer = endpoint_peer(session->control.socket);
    static struct cpu_list allowed, ordered;
    if (wanted->count > 0 || !endpoint_same_address(&local, &peer) || !place_allowed(&allowed) ||
        on_client_cpus(&session->plan, allowed.count)) {
        return;
    }
    struct warnings ignored = {.count = 0};
    place_choose(wanted, allowed.count, &ordered, &ignored);
    warnings_free(&ignored);
    int shift = streams % ordered.count != 0 ? streams % ordered.count : ordered.count / 2;
    for (int i = 0; i < streams; i++) {
        session->cpus.cpu[i] = ordered.cpu[(i + shift) % ordered.count];
    }
}

/* The first connection that greets with the key and as a control connection. */
static void wait_for_client(struct session *session, struct listener *listener, double seconds) {
    uint64_t deadline = deadline_in(seconds), run;
    for (;;) {
        int stream, socket = listener_accept(listener, deadline, &run, &stream);
        if (socket < 0 && errno != ETIMEDOUT) {
            fail_measurement("the server cannot accept a connection: %s", endpoint_reason(errno));
        }
        if (socket < 0) {
            fail_measurement("no client with the right NETBENCH_KEY connected within %g s",
                             seconds);
        }
        if (stream == STREAM_CONTROL) {
            session->control.socket = socket;
            endpoint_keepalive(socket);
            return;
        }
        close(socket);
    }
}

static void receive_plan(struct session *session) {
    char line[LINE_BYTES];
    if (control_receive(&session->control, line, deadline_in(ANSWER_SECONDS)) != RECEIPT_LINE) {
        fail_measurement("the client connected but sent no plan");
    }
    if (!plan_read(line, &session->plan)) {
        fail_both(session, "the client's plan is not understood: '%s'", line);
    }
    if (getrandom(&session->plan.run, sizeof session->plan.run, 0) !=
        (ssize_t)sizeof session->plan.run) {
        fail_both(session, "the server has no random numbers: %s", strerror(errno));
    }
    control_send(&session->control, "RUN %" PRIu64, session->plan.run);
}

static void send_stream(struct session *session, const struct team *team, int stream,
                        const struct sequence *sequence) {
    const struct team_member *member = &team->members[stream];
    uint64_t messages = member->work / session->plan.message;
    uint64_t sent = sequence == NULL ? messages : sequence_sent(sequence);
    uint64_t received = sequence == NULL ? messages : sequence->received;
    control_send(&session->control,
                 "STREAM %d %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                 stream, member->cpu, member->start_ns - team->first_start_ns,
                 member->stop_ns - team->first_start_ns, member->work, sent, received,
                 sent - received, sequence == NULL ? 0 : sequence->reordered,
                 sequence == NULL ? 0 : sequence->duplicated,
                 sequence == NULL ? 0 : sequence->stale);
}

static void send_end(struct session *session, int buffer, uint64_t overrun) {
    char line[LINE_BYTES];
    for (int i = 0; i < session->warnings.count; i++) {
        control_send(&session->control, "WARNING server: %s", session->warnings.text[i]);
    }
    control_send(&session->control, "BUFFER %d %" PRIu64, buffer, overrun);
    control_send(&session->control, "END");
    /* The client closes the connection when it has read everything. */
    control_receive(&session->control, line, deadline_in(ANSWER_SECONDS));
}

/* How much each sender has sent: bytes over TCP, datagrams over UDP. */
static void receive_sent(struct session *session, uint64_t *sent) {
    char line[LINE_BYTES];
    for (int i = 0; i < session->plan.streams; i++) {
        if (control_receive(&session->control, line, deadline_in(ANSWER_SECONDS)) != RECEIPT_LINE) {
            fail_measurement(
                "the client closed the connection before it reported what it had sent");
        }
        struct fields fields = fields_begin(line, "SENT");
        int stream = (int)fields_next(&fields, 0, (uint64_t)session->plan.streams - 1);
        uint64_t count = fields_next(&fields, 0, UINT64_MAX);
        if (!fields_end(&fields)) {
            fail_both(session, "the client's report is not understood: '%s'", line);
        }
        sent[stream] = count;
    }
}

/* After the clock: stops the senders, reads what is still under way, and compares what was sent
 * with what arrived. */
static void end_streams(struct session *session, struct receiver *receivers, uint64_t *sent) {
    const struct net_plan *plan = &session->plan;
    control_send(&session->control, "STOP");
    uint64_t deadline = deadline_in(ANSWER_SECONDS);
    if (plan->udp) {
        receive_sent(session, sent);
    }
    int endless = receive_rest(plan, receivers, deadline);
    if (endless >= 0) {
        fail_both(session, "stream %d did not end after the test", endless);
    }
    if (plan->udp) {
        return;
    }
    receive_sent(session, sent);
    for (int i = 0; i < plan->streams; i++) {
        if (sent[i] != receivers[i].all) {
            fail_both(session, "stream %d: %" PRIu64 " bytes were sent but %" PRIu64 " received", i,
                      sent[i], receivers[i].all);
        }
    }
}

static void throughput(struct session *session) {
    const struct net_plan *plan = &session->plan;
    struct receiver *receivers = calloc((size_t)plan->streams, sizeof *receivers);
    uint64_t *sent = calloc((size_t)plan->streams, sizeof *sent);
    if (receivers == NULL || sent == NULL) {
        fail_both(session, "the server has no memory for %d streams", plan->streams);
    }
    for (int i = 0; i < plan->streams; i++) {
        receivers[i].socket = session->sockets[i];
    }
    struct receiving receiving = {
        .plan = plan, .receivers = receivers, .control = session->control.socket};
    struct team_plan team_plan = {.warmup = plan->warmup,
                                  .seconds = plan->seconds,
                                  .work = plan->total / plan->message * plan->message,
                                  .grain = plan->message};
    struct team team;
    if (!team_run(&team, &session->cpus, &team_plan, &receive_job, &receiving)) {
        fail_both(session, "%s", team.error);
    }
    int buffer = endpoint_buffer(receivers[0].socket, SO_RCVBUF);
    uint64_t overrun = 0;
    end_streams(session, receivers, sent);
    for (int i = 0; plan->udp && i < plan->streams; i++) {
        overrun += endpoint_drops(receivers[i].socket);
    }
    for (int i = 0; i < plan->streams; i++) {
        send_stream(session, &team, i, plan->udp ? &receivers[i].sequence : NULL);
    }
    send_end(session, buffer, overrun);
    for (int i = 0; i < plan->streams; i++) {
        receive_free(&receivers[i]);
    }
    free(receivers);
    free(sent);
    team_free(&team);
}

/* Answers pings until the client reports that it is done. */
static void latency(struct session *session) {
    const struct net_plan *plan = &session->plan;
    atomic_bool stop = false;
    struct echo *echoes = lines_allocate((size_t)plan->streams, sizeof *echoes);
    if (echoes == NULL) {
        fail_both(session, "the server has no memory for %d streams", plan->streams);
    }
    for (int i = 0; i < plan->streams; i++) {
        echoes[i].socket = session->sockets[i];
    }
    if (!echo_start(plan, echoes, &session->cpus, &stop)) {
        fail_both(session, "the server cannot start %d threads: %s", plan->streams,
                  strerror(errno));
    }
    control_send(&session->control, "GO");
    char line[LINE_BYTES];
    enum receipt receipt;
    uint64_t before = UINT64_MAX, answered = 0;
    int error = 0;
    do {
        before = answered;
        answered = 0;
        receipt = control_receive(&session->control, line, deadline_in(STALL_SECONDS));
        for (int i = 0; i < plan->streams; i++) {
            answered += atomic_load_explicit(&echoes[i].answered, memory_order_relaxed);
            error = error != 0 ? error : atomic_load(&echoes[i].error);
        }
    } while (receipt == RECEIPT_TIMEOUT && answered > before && error == 0);
    atomic_store(&stop, true);
    echo_join(plan, echoes);
    if (receipt != RECEIPT_LINE || strcmp(line, "DONE") != 0) {
        bool silent = receipt == RECEIPT_TIMEOUT && error == 0;
        fail_both(session, "the client %s during the test%s%s",
                  silent ? "sent nothing for some time" : "closed the connection",
                  error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
    }
    send_end(session, endpoint_buffer(session->sockets[0], SO_RCVBUF), 0);
    for (int i = 0; i < plan->streams; i++) {
        close(session->sockets[i]);
    }
    free(echoes);
}

static void print(const struct session *session) {
    struct json json;
    json_init(&json, stdout);
    json_begin_object(&json, NULL);
    json_string(&json, "instrument", "netbench");
    json_string(&json, "version", PEAKMARK_VERSION);
    json_string(&json, "workload", "serve");
    json_string(&json, "protocol", session->plan.udp ? "UDP" : "TCP");
    json_bool(&json, "latency", session->plan.latency);
    json_integer(&json, "threads", session->plan.streams);
    json_begin_array(&json, "cpus");
    for (int i = 0; i < session->plan.streams; i++) {
        json_integer(&json, NULL, session->cpus.cpu[i]);
    }
    json_end_array(&json);
    json_end_object(&json);
    if (!json_finish(&json)) {
        fail_measurement("the result could not be written to standard output");
    }
}

void serve(const struct serve_options *options) {
    static struct session session;
    struct key key = key_from_environment();
    /* A wrong list is refused before anyone waits. */
    place_choose(options->cpus, 1, &session.cpus, &session.warnings);
    int socket = endpoint_listen(options->address, options->port);
    struct endpoint local = endpoint_local(socket);
    fprintf(stderr, "netbench: listening on port %d\n", endpoint_port(&local));
    struct listener *listener = listener_open(socket, &key);
    char error[256];
    wait_for_client(&session, listener, options->deadline);
    receive_plan(&session);
    choose_cpus(&session, options->cpus);
    memset(session.sockets, -1, sizeof session.sockets);
    if (!gather_server(&session.plan, &session.control, listener, session.sockets, error,
                       sizeof error)) {
        fail_both(&session, "%s", error);
    }
    listener_close(listener);
    close(socket);
    if (session.plan.latency) {
        latency(&session);
    } else {
        control_send(&session.control, "GO");
        throughput(&session);
    }
    close(session.control.socket);
    print(&session);
    warnings_free(&session.warnings);
}
