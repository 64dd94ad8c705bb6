/* netbench: throughput and latency between two nodes, over TCP and UDP. */
#include <string.h>
#include <sys/resource.h>

#include "common/options.h"
#include "common/status.h"
#include "net/client.h"
#include "net/datagram.h"
#include "net/serve.h"

static const struct program program = {
    .name = "netbench",
    .synopsis = "serve --address A --port P [options]\n"
                "       netbench TCP|UDP --message SIZE --streams N --port P [options] HOST\n"
                "       netbench latency --protocol TCP|UDP --streams N --port P [options] HOST",
    .summary =
        "Measures a network. TCP and UDP: bit/s of payload, counted at the receiver; a UDP "
        "datagram "
        "carries its\n"
        "number, so that loss, reordering and duplicates are counted (sent = received + lost, in "
        "the "
        "measured\n"
        "time). latency: seconds of a round trip of a small message, with percentiles; half_rtt is "
        "the half of\n"
        "the mean, not a measured way. The server takes one client, then ends. Both sides need the "
        "same secret\n"
        "in the environment variable NETBENCH_KEY; others are refused.",
    .example = "NETBENCH_KEY=... netbench UDP --message 1KiB --streams 2 --seconds 5 --port 20123 "
               "10.0.0.2",
};

struct net_options {
    struct common_options common;
    const char *address, *protocol;
    int port, streams;
    bool message_set, streams_set, total_set, trips_set, port_set, address_set, deadline_set;
    bool gso, busy_poll;
    uint64_t message, total, round_trips;
    double deadline;
};

static int parse(struct net_options *options, int argc, char **argv) {
    static const char *const protocols[] = {"TCP", "UDP", NULL};
    const struct option_spec specs[] = {
        {"port", OPTION_INTEGER, &options->port, "P",
         .help = "TCP port of the server (serve: 0 takes a free one and says which on stderr)",
         .minimum = 0, .maximum = 65535, .is_set = &options->port_set},
        {"address", OPTION_TEXT, &options->address, "A", .help = "serve: address to listen on",
         .is_set = &options->address_set},
        {"deadline", OPTION_SECONDS, &options->deadline, "S",
         .help = "serve: end when no client has come after S seconds (default 120)",
         .is_set = &options->deadline_set},
        {"message", OPTION_SIZE, &options->message, "SIZE",
         .help = "bytes of one send or datagram (default 32KiB TCP, 1KiB UDP, 1 latency)",
         .is_set = &options->message_set},
        {"streams", OPTION_INTEGER, &options->streams, "N",
         .help = "connections at once, a thread each; the same as --threads", .minimum = 1,
         .maximum = STREAMS_MAX, .is_set = &options->streams_set},
        {"protocol", OPTION_CHOICE, &options->protocol, "PROTO", .help = "of latency (default TCP)",
         .choices = protocols},
        {"total", OPTION_SIZE, &options->total, "SIZE",
         .help = "TCP, UDP: receive SIZE bytes instead of --seconds",
         .is_set = &options->total_set},
        {"round-trips", OPTION_COUNT, &options->round_trips, "N",
         .help = "latency: do N round trips, shared by the streams, instead of --seconds",
         .is_set = &options->trips_set},
        {"gso", OPTION_FLAG, &options->gso, NULL,
         .help = "UDP: let the kernel cut and join datagrams (UDP_SEGMENT, UDP_GRO)"},
        {"busy-poll", OPTION_FLAG, &options->busy_poll, NULL,
         .help = "latency: wait for messages spinning, on both sides"},
        COMMON_OPTIONS(&options->common),
        END_OF_OPTIONS,
    };
    return options_parse(&program, specs, argc, argv);
}

static void run_server(const struct net_options *options) {
    if (!options->address_set || !options->port_set) {
        fail_usage("serve needs --address and --port: the server listens on that address only");
    }
    if (options->deadline <= 0) {
        fail_usage("--deadline 0 waits for nobody: name a time above 0");
    }
    serve(&(struct serve_options){.address = options->address,
                                  .port = options->port,
                                  .deadline = options->deadline,
                                  .cpus = &options->common.cpus});
}

static void check_message(const struct net_plan *plan) {
    if (plan->udp && !plan->latency && plan->message < sizeof(struct datagram)) {
        fail_usage("--message: a datagram of a UDP throughput test has at least %zu bytes, which "
                   "its number needs; "
                   "smaller ones are possible for latency",
                   sizeof(struct datagram));
    }
    if (plan->udp && plan->message > UDP_PAYLOAD_MAX) {
        fail_usage("--message: a datagram has at most %d bytes", UDP_PAYLOAD_MAX);
    }
    if (plan->message > TCP_MESSAGE_MAX) {
        fail_usage("--message: a message has at most %d bytes", TCP_MESSAGE_MAX);
    }
}

static void check_client(const struct net_options *options, const struct net_plan *plan) {
    if (!options->port_set || options->port == 0) {
        fail_usage("--port is missing: name the port of the server");
    }
    if (options->address_set || options->deadline_set) {
        fail_usage("--address and --deadline are options of serve");
    }
    if (options->streams_set && options->common.threads != 1 &&
        options->streams != options->common.threads) {
        fail_usage("--streams %d and --threads %d differ: each stream has one thread",
                   options->streams, options->common.threads);
    }
    if (plan->streams > STREAMS_MAX) {
        fail_usage("--threads: at most %d streams are possible", STREAMS_MAX);
    }
    if (plan->latency ? options->total_set || options->gso
                      : options->trips_set || options->busy_poll) {
        fail_usage(plan->latency ? "--total and --gso are options of TCP and UDP"
                                 : "--round-trips and --busy-poll are options of latency");
    }
    if (options->gso && !plan->udp) {
        fail_usage("--gso is an option of UDP");
    }
    if ((options->total_set || options->trips_set) && options->common.seconds_set) {
        fail_usage("--seconds excludes --total and --round-trips: name one");
    }
    if (!options->total_set && !options->trips_set && options->common.seconds <= 0) {
        fail_usage("--seconds 0 measures nothing: name a time above 0");
    }
    check_message(plan);
    if (options->total_set && options->total / plan->message < (uint64_t)plan->streams) {
        fail_usage("--total is less than one message for each of %d streams", plan->streams);
    }
    if (options->trips_set && options->round_trips < (uint64_t)plan->streams) {
        fail_usage("--round-trips is less than one for each of %d streams", plan->streams);
    }
}

static void run_client(const struct net_options *options, const char *mode, const char *host) {
    bool latency = strcmp(mode, "latency") == 0;
    bool udp = strcmp(latency ? options->protocol : mode, "UDP") == 0;
    struct client_options client_options = {
        .host = host,
        .port = options->port,
        .seed = options->common.seed,
        .cpus = &options->common.cpus,
        .workload = latency ? (udp ? "LAT-UDP" : "LAT-TCP") : mode,
        .round_trips = options->round_trips,
        .plan = {.latency = latency,
                 .udp = udp,
                 .offload = options->gso,
                 .busy_poll = options->busy_poll,
                 .message = options->message_set ? options->message
                            : latency            ? 1
                            : udp                ? 1024
                                                 : 32768,
                 .streams = options->streams_set ? options->streams : options->common.threads,
                 .warmup = options->common.warmup,
                 .seconds = options->common.seconds,
                 .total = options->total}};
    check_client(options, &client_options.plan);
    client(&client_options);
}

/* A stream is a file descriptor, and the usual soft limit is 1024. */
static void allow_many_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv) {
    static struct net_options options = {
        .common = COMMON_DEFAULTS, .protocol = "TCP", .deadline = 120};
    int first = parse(&options, argc, argv), count = argc - first;
    const char *mode = count > 0 ? argv[first] : "";
    bool is_client =
        strcmp(mode, "TCP") == 0 || strcmp(mode, "UDP") == 0 || strcmp(mode, "latency") == 0;
    if (!is_client && strcmp(mode, "serve") != 0) {
        fail_usage("%s%s: write serve, TCP, UDP or latency first",
                   count > 0 ? "unknown mode " : "no mode is named", mode);
    }
    if (is_client && count < 2) {
        fail_usage("no host is named: write the server's name or address last");
    }
    options_no_more(argc, argv, first + (is_client ? 2 : 1));
    allow_many_files();
    if (is_client) {
        run_client(&options, mode, argv[first + 1]);
    } else {
        run_server(&options);
    }
    return STATUS_OK;
}
