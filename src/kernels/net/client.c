#include "net/client.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/report.h"
#include "common/status.h"
#include "net/control.h"
#include "net/endpoint.h"
#include "net/fields.h"
#include "net/gather.h"
#include "net/listener.h"
#include "net/ping.h"
#include "net/send.h"

/* A slower network than this (bit/s) is taken for a dead one when a total is to be moved. */
#define SLOWEST 1e6

/* What the server reports about the streams. */
struct outcome {
    struct team team;
    bool reported[STREAMS_MAX];
    uint64_t overrun; /* lost at the server's sockets, whose buffers were full */
    uint64_t sent, received, lost, reordered, duplicated, stale;
    int receive_buffer;
};

struct session {
    struct control control;
    struct cpu_list cpus;
    struct warnings warnings;
    struct endpoint server;
    bool same_host;
    int sockets[STREAMS_MAX];
};

/* Ends the program when the server reports in this line that it has failed. */
static void check_failure(const char *line) {
    const char *failure = control_failure(line);
    if (failure != NULL) {
        fail_measurement("the server reports: %s", failure);
    }
}

/* The next line. Ends the program when the server has failed, or sends no line. */
static void receive_line(struct session *session, char line[LINE_BYTES], uint64_t deadline,
                         const char *when) {
    enum receipt receipt = control_receive(&session->control, line, deadline);
    if (receipt != RECEIPT_LINE) {
        fail_measurement("the server %s %s",
                         receipt == RECEIPT_CLOSED ? "closed the connection" : "gave no answer",
                         when);
    }
    check_failure(line);
}

/* The server's answer to the greeting or the plan. Ends the program without one. */
static void receive_answer(struct control *control, char line[LINE_BYTES]) {
    enum receipt receipt = control_receive(control, line, deadline_in(ANSWER_SECONDS));
    if (receipt == RECEIPT_CLOSED) {
        fail_measurement("the server closed the connection: NETBENCH_KEY and the version must be "
                         "the same on both sides, and a server takes one client");
    }
    if (receipt == RECEIPT_TIMEOUT) {
        fail_measurement("the server gave no answer within %.0f s: is it busy with another client?",
                         ANSWER_SECONDS);
    }
    check_failure(line);
}

/* Proves the key to the server and sends it the plan; it answers with the number of the run. */
static void send_plan(struct session *session, struct client_options *options,
                      const struct key *key) {
    char line[LINE_BYTES];
    struct control *control = &session->control;
    /* A server that refuses the client closes the connection, perhaps before all is sent: what it
     * has said counts, so only the first send must succeed. */
    if (!greeting_send(control->socket)) {
        fail_measurement("nothing can be sent to the server: %s", strerror(errno));
    }
    receive_answer(control, line);
    if (!greeting_answer(control->socket, line, key, 0, STREAM_CONTROL) && errno == EPROTO) {
        fail_measurement("the server's answer is not understood: '%s'", line);
    }
    plan_write(&options->plan, line, sizeof line);
    control_send(control, "%s", line);
    receive_answer(control, line);
    struct fields fields = fields_begin(line, "RUN");
    options->plan.run = fields_next(&fields, 0, UINT64_MAX);
    if (!fields_end(&fields)) {
        fail_measurement("the server's answer is not understood: '%s'", line);
    }
}

static void add_stream(struct outcome *outcome, const char *line) {
    struct fields fields = fields_begin(line, "STREAM");
    int stream = (int)fields_next(&fields, 0, (uint64_t)outcome->team.threads - 1);
    int cpu = (int)fields_next(&fields, 0, CPU_LIST_MAX - 1);
    uint64_t start = fields_next(&fields, 0, UINT64_MAX);
    uint64_t stop = fields_next(&fields, start, UINT64_MAX);
    uint64_t work = fields_next(&fields, 0, UINT64_MAX);
    uint64_t sent = fields_next(&fields, 0, UINT64_MAX);
    uint64_t received = fields_next(&fields, 0, sent);
    uint64_t lost = fields_next(&fields, 0, sent);
    uint64_t reordered = fields_next(&fields, 0, UINT64_MAX);
    uint64_t duplicated = fields_next(&fields, 0, UINT64_MAX);
    uint64_t stale = fields_next(&fields, 0, UINT64_MAX);
    if (!fields_end(&fields) || outcome->team.threads == 0 || outcome->reported[stream]) {
        fail_measurement("the server's result is not understood: '%s'", line);
    }
    outcome->reported[stream] = true;
    outcome->team.members[stream] = (struct team_member){
        .index = stream, .cpu = cpu, .start_ns = start, .stop_ns = stop, .work = work};
    outcome->team.work += work;
    double end = (double)stop * 1e-9;
    outcome->team.seconds = end > outcome->team.seconds ? end : outcome->team.seconds;
    outcome->sent += sent;
    outcome->received += received;
    outcome->lost += lost;
    outcome->reordered += reordered;
    outcome->duplicated += duplicated;
    outcome->stale += stale;
}

static void read_buffer(struct outcome *outcome, const char *line) {
    struct fields fields = fields_begin(line, "BUFFER");
    outcome->receive_buffer = (int)fields_next(&fields, 0, INT_MAX);
    outcome->overrun = fields_next(&fields, 0, UINT64_MAX);
    if (!fields_end(&fields)) {
        fail_measurement("the server's result is not understood: '%s'", line);
    }
}

/* Everything up to END; times are relative to the first start of all streams, on the server's
 * clock. */
static void receive_result(struct session *session, struct outcome *outcome) {
    char line[LINE_BYTES];
    int others = 0; /* warnings and buffers */
    uint64_t deadline = deadline_in(2 * ANSWER_SECONDS);
    while (others <= WARNINGS_MAX + 1) {
        receive_line(session, line, deadline, "before it sent the result");
        if (strcmp(line, "END") == 0) {
            return;
        }
        if (strncmp(line, "WARNING ", 8) == 0) {
            warnings_add(&session->warnings, "%s", line + 8);
            others++;
        } else if (strncmp(line, "BUFFER ", 7) == 0) {
            read_buffer(outcome, line);
            others++;
        } else {
            add_stream(outcome, line);
        }
    }
    fail_measurement("the server sends more than a result and %d warnings", WARNINGS_MAX);
}

/* Ends the program when the result lacks a stream. */
static void check_streams(const struct outcome *outcome) {
    for (int i = 0; i < outcome->team.threads; i++) {
        if (!outcome->reported[i]) {
            fail_measurement("the server's result lacks stream %d", i);
        }
    }
}

static double longest(const struct net_plan *plan) {
    double time = plan->total > 0 ? (double)plan->total * 8 / SLOWEST : plan->seconds;
    return plan->warmup + time + 3 * STALL_SECONDS;
}

/* Ends the program because of a sender: with the server's reason if it sends one. */
static _Noreturn void sender_failed(struct session *session, const struct net_plan *plan,
                                    int error) {
    char line[LINE_BYTES];
    if (plan->offload &&
        (error == EINVAL || error == ENOPROTOOPT || error == EMSGSIZE || error == EIO)) {
        fail_impossible("UDP_SEGMENT with messages of %" PRIu64
                        " bytes is not possible on this way: %s; use a --message "
                        "that fits the MTU, or leave --gso out",
                        plan->message, strerror(error));
    }
    receive_line(session, line, deadline_in(1), "during the test");
    fail_measurement("a stream could not send: %s", strerror(error));
}

enum ending { ENDED_WELL, ENDED_BY_SENDER, ENDED_BY_SERVER, ENDED_SILENT };

/* Waits until the server has measured, and watches the senders; `line` is the server's last one. */
static enum ending wait_for_stop(struct session *session, const struct net_plan *plan,
                                 const struct sending *sending, char line[LINE_BYTES]) {
    uint64_t deadline = deadline_in(longest(plan)), before = 0, moved = clock_now();
    for (;;) {
        enum receipt receipt = control_receive(&session->control, line, deadline_in(0.2));
        if (receipt == RECEIPT_LINE) {
            return strcmp(line, "STOP") == 0 ? ENDED_WELL : ENDED_BY_SERVER;
        }
        line[0] = '\0';
        if (receipt == RECEIPT_CLOSED) {
            return ENDED_BY_SERVER;
        }
        if (send_error(sending) != 0) {
            return ENDED_BY_SENDER;
        }
        uint64_t now = clock_now(), progress = send_progress(sending);
        moved = progress != before ? now : moved;
        before = progress;
        if (now >= deadline || (double)(now - moved) > 1.5 * STALL_SECONDS * 1e9) {
            return ENDED_SILENT;
        }
    }
}

/* Sends until the server has measured; ends the program when the test fails. */
static void send_and_wait(struct session *session, const struct net_plan *plan,
                          struct sending *sending) {
    char line[LINE_BYTES];
    enum ending ending = wait_for_stop(session, plan, sending, line);
    if (ending == ENDED_WELL) {
        send_stop(sending);
    } else {
        int error = send_error(sending); /* before our own shutdown makes errors */
        send_abandon(sending);
        if (ending == ENDED_BY_SENDER) {
            sender_failed(session, plan, error);
        }
        check_failure(line);
        fail_measurement("the server %s", ending == ENDED_SILENT
                                              ? "takes no more data and sends nothing"
                                              : "closed the connection during the test");
    }
    if (send_error(sending) != 0) {
        sender_failed(session, plan, send_error(sending));
    }
}

static void print_common(struct json *json, const struct session *session,
                         const struct net_plan *plan, const struct outcome *outcome,
                         int send_buffer) {
    char text[64];
    json_string(json, "protocol", plan->udp ? "UDP" : "TCP");
    json_unsigned(json, "message", plan->message);
    json_integer(json, "streams", plan->streams);
    json_string(json, "server", endpoint_text(&session->server, text, sizeof text));
    json_bool(json, "loopback", session->same_host);
    json_integer(json, "sndbuf", send_buffer);
    json_integer(json, "rcvbuf", outcome->receive_buffer);
    if (plan->udp) {
        return;
    }
    uint64_t retransmits = 0;
    for (int i = 0; i < plan->streams; i++) {
        retransmits += endpoint_retransmits(session->sockets[i]);
    }
    json_string(json, "congestion_control",
                endpoint_congestion_control(session->sockets[0], text, sizeof text));
    json_unsigned(json, "retransmits", retransmits);
}

static void print_throughput(const struct session *session, const struct client_options *options,
                             const struct outcome *outcome, bool joined) {
    struct report report = {.instrument = "netbench",
                            .workload = options->workload,
                            .value = team_rate(&outcome->team) * 8,
                            .unit = "bit/s",
                            .work_unit = "B",
                            .team = &outcome->team,
                            .warnings = &session->warnings};
    struct json json;
    report_begin(&json, &report);
    json_unsigned(&json, "sent", outcome->sent);
    json_unsigned(&json, "received", outcome->received);
    json_unsigned(&json, "lost", outcome->lost);
    json_unsigned(&json, "overrun", outcome->overrun);
    json_unsigned(&json, "reordered", outcome->reordered);
    json_unsigned(&json, "duplicated", outcome->duplicated);
    json_unsigned(&json, "stale", outcome->stale);
    json_bool(&json, "gso", options->plan.offload);
    json_bool(&json, "joined", joined);
    print_common(&json, session, &options->plan, outcome,
                 endpoint_buffer(session->sockets[0], SO_SNDBUF));
    report_end(&json, &report);
}

static void throughput(struct session *session, struct client_options *options) {
    struct net_plan *plan = &options->plan;
    struct sending sending = {.plan = plan,
                              .seed = options->seed,
                              .senders =
                                  lines_allocate((size_t)plan->streams, sizeof *sending.senders)};
    struct outcome outcome = {
        .team = {.threads = plan->streams,
                 .members = calloc((size_t)plan->streams, sizeof *outcome.team.members)}};
    if (sending.senders == NULL || outcome.team.members == NULL) {
        fail_measurement("no memory for %d streams", plan->streams);
    }
    bool joined = !plan->udp;
    for (int i = 0; i < plan->streams; i++) {
        sending.senders[i].socket = session->sockets[i];
        joined = joined && endpoint_join(session->sockets[i], plan->message);
    }
    if (!send_start(&sending, &session->cpus)) {
        fail_measurement("%d threads cannot be started: %s", plan->streams, strerror(errno));
    }
    send_and_wait(session, plan, &sending);
    for (int i = 0; i < plan->streams; i++) {
        control_send(&session->control, "SENT %d %" PRIu64, i, (uint64_t)sending.senders[i].sent);
    }
    receive_result(session, &outcome);
    check_streams(&outcome);
    print_throughput(session, options, &outcome, joined);
    free(sending.senders);
    team_free(&outcome.team);
}

static void print_latency(const struct session *session, const struct client_options *options,
                          const struct outcome *outcome, const struct team *team,
                          const struct histogram *latency) {
    double mean = histogram_mean(latency) * 1e-9;
    struct report report = {.instrument = "netbench",
                            .workload = options->workload,
                            .value = mean,
                            .unit = "s",
                            .work_unit = "round trip",
                            .team = team,
                            .warnings = &session->warnings};
    struct json json;
    report_begin(&json, &report);
    json_double(&json, "half_rtt", mean / 2);
    json_double(&json, "min", (double)latency->minimum * 1e-9);
    report_percentiles(&json, latency);
    json_unsigned(&json, "round_trips", latency->count);
    json_unsigned(&json, "lost", outcome->lost);
    json_bool(&json, "busy_poll", options->plan.busy_poll);
    print_common(&json, session, &options->plan, outcome,
                 endpoint_buffer(session->sockets[0], SO_SNDBUF));
    report_end(&json, &report);
}

static void latency(struct session *session, struct client_options *options) {
    static struct histogram all;
    struct net_plan *plan = &options->plan;
    struct ping *pings = calloc((size_t)plan->streams, sizeof *pings);
    if (pings == NULL) {
        fail_measurement("no memory for %d streams", plan->streams);
    }
    for (int i = 0; i < plan->streams; i++) {
        pings[i].socket = session->sockets[i];
    }
    struct pinging pinging = {.plan = plan, .pings = pings};
    struct team_plan team_plan = {
        .warmup = plan->warmup, .seconds = plan->seconds, .work = options->round_trips};
    struct outcome outcome = {.receive_buffer = 0};
    struct team team;
    if (!ping_run(&team, &session->cpus, &team_plan, &pinging)) {
        char line[LINE_BYTES];
        if (control_receive(&session->control, line, deadline_in(0.5)) == RECEIPT_LINE) {
            check_failure(line);
        }
        fail_measurement("%s", team.error);
    }
    control_send(&session->control, "DONE");
    receive_result(session, &outcome);
    for (int i = 0; i < plan->streams; i++) {
        histogram_merge(&all, &pings[i].latency);
        outcome.lost += pings[i].lost;
    }
    print_latency(session, options, &outcome, &team, &all);
    free(pings);
    team_free(&team);
}

void client(struct client_options *options) {
    static struct session session;
    struct key key = key_from_environment();
    char error[512];
    memset(session.sockets, -1, sizeof session.sockets);
    place_choose(options->cpus, options->plan.streams, &session.cpus, &session.warnings);
    session.control.socket = endpoint_connect(options->host, options->port);
    endpoint_keepalive(session.control.socket);
    session.server = endpoint_peer(session.control.socket);
    struct endpoint local = endpoint_local(session.control.socket);
    session.same_host = endpoint_same_address(&local, &session.server);
    if (session.same_host) {
        warnings_add(&session.warnings,
                     "loopback: client and server run on the same machine, no network was crossed");
    }
    send_plan(&session, options, &key);
    if (!gather_client(&options->plan, &session.control, &key, session.sockets, error,
                       sizeof error)) {
        fail_measurement("%s", error);
    }
    if (options->plan.latency) {
        latency(&session, options);
    } else {
        throughput(&session, options);
    }
    for (int i = 0; i < options->plan.streams; i++) {
        close(session.sockets[i]);
    }
    close(session.control.socket);
    warnings_free(&session.warnings);
}
