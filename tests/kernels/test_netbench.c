/*
 * netbench as two processes over real sockets on 127.0.0.1: counts, strangers, and the death of
 * either side.
 */
#include "process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "common/place.h"
#include "common/report.h"
#include "net/listener.h"

#define KEY "NETBENCH_KEY=a secret of the tests"

static char port[16]; /* of the server that was started last */

/*
 * A server on a free port of this address, listening when this returns; NULL when this machine
 * lacks the address.
 */
static struct process *serve(const char *address) {
    struct process *server = process_start(
        KEY, ARGV("netbench", "serve", "--address", address, "--port", "0", "--deadline", "40"));
    if (!process_listen(server, "\n")) {
        process_wait(server);
        process_free(server);
        return NULL;
    }
    const char *text = strstr(server->error, "listening on port ");
    assert_non_null(text);
    snprintf(port, sizeof port, "%d", atoi(text + strlen("listening on port ")));
    return server;
}

static void end_well(struct process *server) {
    process_wait(server);
    process_expect(server, 0, NULL);
}

static void tcp_counts_every_byte(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    struct process *client =
        process_run(KEY, ARGV("netbench", "TCP", "--message", "1000", "--streams", "3", "--total",
                              "4001000", "--warmup", "0.05", "--port", port, "127.0.0.1"));
    end_well(server);
    assert_int_equal(client->status, 0);
    assert_true(json_number(client, "work") == 4001000);
    assert_true(json_number(client, "received") == 4001);
    assert_true(json_number(client, "lost") == 0);
    assert_true(json_number(client, "threads") == 3);
    double bits = json_number(client, "work") * 8, rate = json_number(client, "value");
    assert_true(rate * json_number(client, "seconds") > 0.999 * bits);
    assert_true(rate * json_number(client, "seconds") < 1.001 * bits);
    assert_true(json_number(client, "sndbuf") > 0 && json_number(client, "rcvbuf") > 0);
    assert_true(json_number(client, "retransmits") >= 0);
    process_free(client);
}

/* As the kernel names the one it gives to every new socket. */
static void tcp_names_the_congestion_control(void **state) {
    (void)state;
    char name[64] = "", expected[96];
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_congestion_control", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%63s", name), 1);
    fclose(file);
    snprintf(expected, sizeof expected, "\"congestion_control\": \"%s\"", name);
    const char *const modes[] = {"TCP", "latency"};
    for (int i = 0; i < 2; i++) {
        struct process *server = serve("127.0.0.1");
        struct process *client =
            process_run(KEY, ARGV("netbench", modes[i], "--seconds", "0.05", "--warmup", "0.01",
                                  "--port", port, "127.0.0.1"));
        end_well(server);
        assert_int_equal(client->status, 0);
        assert_non_null(strstr(client->output, expected));
        process_free(client);
    }
}

/* Over loopback a segment has 64 KiB. */
static void tcp_messages_are_joined_over_loopback(void **state) {
    (void)state;
    const char *const messages[] = {"1KiB", "32KiB", "1MiB"};
    for (int i = 0; i < 3; i++) {
        struct process *server = serve("127.0.0.1");
        struct process *client =
            process_run(KEY, ARGV("netbench", "TCP", "--message", messages[i], "--total", "1MiB",
                                  "--warmup", "0", "--port", port, "127.0.0.1"));
        end_well(server);
        assert_int_equal(client->status, 0);
        assert_non_null(strstr(client->output, "\"joined\": true"));
        process_free(client);
    }
}

/* The CPUs of the server, of a run over loopback with these options of both sides. */
static void expect_server_cpus(const char *mode, int streams, const char *cpus,
                               const char *expected) {
    char count[16];
    snprintf(count, sizeof count, "%d", streams);
    struct process *server =
        process_start(KEY, ARGV("netbench", "serve", "--address", "127.0.0.1", "--port", "0",
                                "--deadline", "40", cpus != NULL ? "--cpus" : NULL, cpus));
    assert_true(process_listen(server, "\n"));
    const char *text = strstr(server->error, "listening on port ");
    assert_non_null(text);
    snprintf(port, sizeof port, "%d", atoi(text + strlen("listening on port ")));
    struct process *client =
        process_run(KEY, ARGV("netbench", mode, "--streams", count, "--seconds", "0.05", "--warmup",
                              "0.01", "--port", port, "127.0.0.1"));
    process_wait(server);
    process_expect(client, 0, NULL);
    if (strncmp(json_at(server, "cpus"), expected, strlen(expected)) != 0) {
        fail_msg("%s x%d of CPUs %s: not %s but %s", mode, streams, cpus != NULL ? cpus : "all",
                 expected, server->output);
    }
    process_expect(server, 0, NULL);
}

static void both_ends_share_a_cpu_where_there_is_none_for_each(void **state) {
    (void)state;
    static struct cpu_list allowed, ordered;
    struct warnings warnings = {.count = 0};
    assert_true(place_allowed(&allowed));
    if (allowed.count < 2) {
        skip_because("two CPUs are needed");
    }
    place_choose(&(struct cpu_list){.count = 0}, allowed.count, &ordered, &warnings);
    char all[64], one[64], named[32];
    int half = allowed.count / 2;
    snprintf(all, sizeof all, "[%d, %d", ordered.cpu[0], ordered.cpu[1]);
    snprintf(one, sizeof one, "[%d", ordered.cpu[half]);
    snprintf(named, sizeof named, "%d,%d", ordered.cpu[1], ordered.cpu[0]);
    expect_server_cpus("TCP", allowed.count, NULL, all);
    expect_server_cpus("TCP", half, NULL, one);
    snprintf(one, sizeof one, "[%d", ordered.cpu[1]);
    expect_server_cpus("TCP", 1, named, one); /* exactly the CPUs that are named */
}

static void tcp_runs_for_the_time_set(void **state) {
    (void)state;
    struct process *server = serve("localhost");
    uint64_t began = clock_now();
    struct process *client =
        process_run(KEY, ARGV("netbench", "TCP", "--seconds", "0.3", "--warmup", "0.1", "--threads",
                              "2", "--port", port, "localhost"));
    end_well(server);
    assert_int_equal(client->status, 0);
    process_lasted(client, began, 0.1 + 0.3);
    assert_true(json_number(client, "streams") == 2);
    process_free(client);
}

static void assert_udp_adds_up(struct process *client) {
    assert_int_equal(client->status, 0);
    double received = json_number(client, "received");
    assert_true(received > 0);
    assert_true(json_number(client, "sent") == received + json_number(client, "lost"));
    assert_true(json_number(client, "duplicated") == 0);
    process_free(client);
}

static void udp_adds_up(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    struct process *client =
        process_run(KEY, ARGV("netbench", "UDP", "--message", "1KiB", "--streams", "2", "--seconds",
                              "0.05", "--warmup", "0.01", "--port", port, "127.0.0.1"));
    end_well(server);
    assert_udp_adds_up(client);
}

static void udp_total_is_what_arrived(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    struct process *client =
        process_run(KEY, ARGV("netbench", "UDP", "--message", "1000", "--total", "3000000",
                              "--warmup", "0", "--port", port, "127.0.0.1"));
    end_well(server);
    assert_int_equal(client->status, 0);
    assert_true(json_number(client, "work") == 3000000);
    assert_udp_adds_up(client);
}

static void udp_with_offload(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    struct process *client =
        process_run(KEY, ARGV("netbench", "UDP", "--gso", "--message", "1KiB", "--seconds", "0.05",
                              "--warmup", "0.01", "--port", port, "127.0.0.1"));
    process_wait(server);
    if (client->status == 77 || strstr(client->error, "UDP_GRO") != NULL) {
        process_free(client);
        process_free(server);
        skip_because("this kernel has no UDP_SEGMENT or UDP_GRO");
        return;
    }
    process_expect(server, 0, NULL);
    assert_udp_adds_up(client);
}

static void check_latency(const char *protocol, const char *workload, const char *extra) {
    struct process *server = serve("127.0.0.1");
    struct process *client = process_run(
        KEY, ARGV("netbench", "latency", "--protocol", protocol, "--streams", "2", "--round-trips",
                  "1001", "--warmup", "0.02", "--port", port, "127.0.0.1", extra));
    end_well(server);
    assert_int_equal(client->status, 0);
    assert_memory_equal(json_at(client, "workload"), workload, strlen(workload));
    assert_true(json_number(client, "round_trips") == 1001);
    assert_true(json_number(client, "half_rtt") == json_number(client, "value") / 2);
    assert_true(json_number(client, "min") <= json_number(client, "value"));
    assert_true(json_number(client, "value") <= json_number(client, "max"));
    assert_true(json_number(client, "message") == 1);
    assert_percentiles(client);
    process_free(client);
}

static void latency_has_percentiles(void **state) {
    (void)state;
    check_latency("TCP", "\"LAT-TCP\"", NULL);
    check_latency("UDP", "\"LAT-UDP\"", NULL);
    check_latency("TCP", "\"LAT-TCP\"", "--busy-poll");
    check_latency("UDP", "\"LAT-UDP\"", "--busy-poll");
}

static void ipv6(void **state) {
    (void)state;
    struct process *server = serve("::1");
    if (server == NULL) {
        skip_because("no IPv6 on the loopback interface");
        return;
    }
    struct process *client = process_run(KEY, ARGV("netbench", "UDP", "--seconds", "0.05",
                                                   "--warmup", "0.01", "--port", port, "::1"));
    end_well(server);
    assert_udp_adds_up(client);
}

/* -1 where no server listens any more. */
static int try_to_connect(void) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(port)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(stranger, (struct sockaddr *)&address, sizeof address) != 0) {
        close(stranger);
        return -1;
    }
    return stranger;
}

static int connect_as_stranger(void) {
    int stranger = try_to_connect();
    assert_true(stranger >= 0);
    return stranger;
}

/* A wrong key, a connection that says nothing and one that talks nonsense: none of them ends the
 * serve. */
static void strangers_are_turned_away(void **state) {
    (void)state;
    char byte, nonsense[400];
    struct process *server = serve("127.0.0.1");
    int silent = connect_as_stranger(), loud = connect_as_stranger();
    memset(nonsense, 'x', sizeof nonsense);
    assert_int_equal(send(loud, nonsense, sizeof nonsense, 0), (int)sizeof nonsense);
    assert_true(recv(loud, &byte, 1, 0) <= 0); /* hung up on, without an answer */
    process_expect(
        process_run("NETBENCH_KEY=another secret of the tests",
                    ARGV("netbench", "TCP", "--seconds", "0.1", "--port", port, "127.0.0.1")),
        1, "NETBENCH_KEY and the version must be the same");
    struct process *client = process_run(KEY, ARGV("netbench", "latency", "--round-trips", "10",
                                                   "--warmup", "0", "--port", port, "127.0.0.1"));
    process_expect(client, 0, NULL);
    end_well(server);
    close(silent);
    close(loud);
}

/* A client of another version is sent the reason; one of the same version comes after it. */
static void another_version_is_refused(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    struct greeting greeting = {.magic = {'p', 'e', 'a', 'k', 'm', 'a', 'r', 'k'},
                                .version = htole32(77)};
    char answer[256] = "";
    int client = connect_as_stranger();
    assert_int_equal(send(client, &greeting, sizeof greeting, 0), (int)sizeof greeting);
    assert_true(recv(client, answer, sizeof answer - 1, 0) > 0);
    assert_memory_equal(answer, "FAILED ", 7);
    assert_non_null(strstr(answer, "version 77"));
    process_expect(process_run(KEY, ARGV("netbench", "latency", "--round-trips", "10", "--warmup",
                                         "0", "--port", port, "127.0.0.1")),
                   0, NULL);
    process_wait(server);
    process_expect(server, 0, "version 77");
    close(client);
}

/* Receives exactly so many bytes; false at the end of the connection. */
static bool receive_all(int socket, void *data, size_t size) {
    return recv(socket, data, size, MSG_WAITALL) == (ssize_t)size;
}

/* Greets the server as a client does, and receives its challenge, a line of 75 bytes. */
static int greet_as_client(char line[76]) {
    int client = connect_as_stranger();
    assert_true(greeting_send(client));
    assert_true(receive_all(client, line, 75));
    assert_int_equal(line[74], '\n');
    line[74] = '\0';
    return client;
}

/* What somebody has overheard of one connection opens no other. */
static void an_overheard_answer_is_refused(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    struct key key = {"a secret of the tests"};
    struct answer answer;
    char first[76], second[76], byte;
    int client = greet_as_client(first), pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_true(greeting_answer(pair[0], first, &key, 0, STREAM_CONTROL));
    assert_true(receive_all(pair[1], &answer, sizeof answer));
    int stranger = greet_as_client(second);
    assert_true(strcmp(first, second) != 0);
    assert_int_equal(send(stranger, &answer, sizeof answer, 0), (int)sizeof answer);
    assert_true(recv(stranger, &byte, 1, 0) <= 0);
    answer.run ^= 1; /* nor does a part of it that was changed on its way */
    assert_int_equal(send(client, &answer, sizeof answer, 0), (int)sizeof answer);
    assert_true(recv(client, &byte, 1, 0) <= 0);
    process_expect(process_run(KEY, ARGV("netbench", "latency", "--round-trips", "10", "--warmup",
                                         "0", "--port", port, "127.0.0.1")),
                   0, NULL);
    end_well(server);
    close(client);
    close(stranger);
    close(pair[0]);
    close(pair[1]);
}

/* A server at its limit of open files says so at once, and uses no CPU until a deadline. */
static void a_limit_of_open_files_is_named(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    struct rlimit few = {.rlim_cur = 30, .rlim_max = 30};
    assert_int_equal(prlimit(server->pid, RLIMIT_NOFILE, &few, NULL), 0);
    uint64_t began = clock_now();
    struct process *client =
        process_run(KEY, ARGV("netbench", "TCP", "--streams", "64", "--seconds", "0.1", "--port",
                              port, "127.0.0.1"));
    process_wait(server);
    assert_true(clock_now() - began < UINT64_C(8000000000));
    process_expect(client, 1, "the server reports: the server cannot accept");
    process_expect(server, 1, "limit of open files");
}

/* The same while nobody has come yet. */
static void a_limit_of_open_files_is_named_before_the_client(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    int strangers[40];
    struct rlimit few = {.rlim_cur = 10, .rlim_max = 10};
    assert_int_equal(prlimit(server->pid, RLIMIT_NOFILE, &few, NULL), 0);
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        strangers[i] = try_to_connect(); /* the server ends before the last ones come */
    }
    process_wait(server);
    process_expect(server, 1, "limit of open files");
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        if (strangers[i] >= 0) {
            close(strangers[i]);
        }
    }
}

#define CHALLENGE "CHALLENGE 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"

static char heard[1024]; /* by the server of client_of, zeros included */
static size_t heard_bytes;

/* A client whose server sends this instead of an answer. */
static struct process *client_of(const char *answer) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    snprintf(port, sizeof port, "%d", ntohs(address.sin_port));
    struct process *client = process_start(
        KEY, ARGV("netbench", "UDP", "--seconds", "0.1", "--port", port, "127.0.0.1"));
    int connection = accept(listener, NULL, NULL);
    assert_true(connection >= 0);
    assert_int_equal(send(connection, answer, strlen(answer), 0), (int)strlen(answer));
    process_wait(client);
    ssize_t count = recv(connection, heard, sizeof heard, MSG_DONTWAIT);
    heard_bytes = count > 0 ? (size_t)count : 0;
    close(connection);
    close(listener);
    return client;
}

/* Not even to a server that only says it is one. */
static void the_key_crosses_no_network(void **state) {
    (void)state;
    static const char key[] = "a secret of the tests";
    process_expect(client_of(CHALLENGE "FAILED for the test\n"), 1, "for the test");
    assert_true(heard_bytes >= sizeof(struct greeting) + sizeof(struct answer));
    assert_null(memmem(heard, heard_bytes, key, strlen(key)));
}

static void text_of_the_server_is_escaped(void **state) {
    (void)state;
    static const char *const answers[] = {
        "FAILED \x1b]0;title\a\n", "\x1b[2J\n", CHALLENGE "RUN \x1b[2J\n",
        CHALLENGE "RUN 1\nFAILED \x1b[2J\n", CHALLENGE "RUN 1\nPORT \x1b[2J\n"};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct process *client = client_of(answers[i]);
        assert_null(strchr(client->error, '\x1b'));
        process_expect(client, 1, "\\x1b");
    }
}

/* A server that measures nothing, and sends this result. */
static struct process *client_with_result(const char *result) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char answer[4096];
    int sink = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(sink, (struct sockaddr *)&address, length), 0);
    assert_int_equal(getsockname(sink, (struct sockaddr *)&address, &length), 0);
    snprintf(answer, sizeof answer, CHALLENGE "RUN 1\nPORT 0 %d\nCONNECT\nGO\nSTOP\n%s",
             ntohs(address.sin_port), result);
    struct process *client = client_of(answer);
    close(sink);
    return client;
}

#define STREAM "STREAM 0 0 0 1000 1024 1 1 0 0 0 0\n"
#define WARNINGS_4 "WARNING 1\nWARNING 2\nWARNING 3\nWARNING 4\n"
#define WARNINGS_20 WARNINGS_4 WARNINGS_4 WARNINGS_4 WARNINGS_4 WARNINGS_4

static void a_result_is_whole_and_ends(void **state) {
    (void)state;
    process_expect(client_with_result(STREAM "WARNING 1\nBUFFER 1 0\nEND\n"), 0, NULL);
    process_expect(client_with_result(WARNINGS_20), 1, "more than a result");
    process_expect(client_with_result(STREAM WARNINGS_20 "END\n"), 1, "more than a result");
    process_expect(client_with_result(STREAM STREAM "END\n"), 1, "not understood");
    process_expect(client_with_result("BUFFER 1 0\nEND\n"), 1, "lacks stream 0");
}

static void numbers_of_the_server_out_of_range_are_refused(void **state) {
    (void)state;
    static const char *const answers[] = {
        CHALLENGE "RUN -1\n",                       /* 2^64 - 1 as an unsigned number */
        CHALLENGE "RUN 18446744073709551616\n",     /* 2^64 */
        CHALLENGE "RUN 1 and more\n",               /* ... */
        CHALLENGE "RUN 1\nPORT 0 65537\nCONNECT\n", /* 1 as a port */
        CHALLENGE "RUN 1\nPORT 1 5000\nCONNECT\n",  /* of a stream that does not exist */
        CHALLENGE "RUN 1\nPORT 4294967296 5000\nCONNECT\n",
        CHALLENGE "RUN 1\nPORT 0 5000\nPORT 0 5000\n", /* and so on for ever */
        "RUN 1\n",                                     /* no challenge */
        "CHALLENGE 00\n"};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        process_expect(client_of(answers[i]), 1, "not understood");
    }
}

/* No socket at hand takes 0 bytes of a send, but a driver may. */
static void a_send_of_nothing_ends_the_client(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    struct process *client = process_run_without(
        (struct disabled_call){SYS_sendto, 0}, KEY,
        ARGV("netbench", "TCP", "--seconds", "0.1", "--port", port, "127.0.0.1"));
    kill(server->pid, SIGTERM);
    process_wait(server);
    process_free(server);
    process_expect(client, 1, strerror(EIO));
}

static void a_port_in_use_is_named(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    process_expect(
        process_run(KEY, ARGV("netbench", "serve", "--address", "127.0.0.1", "--port", port)), 1,
        "name another --port");
    kill(server->pid, SIGTERM);
    process_wait(server);
    process_free(server);
}

static void nobody_comes(void **state) {
    (void)state;
    process_expect(process_run(KEY, ARGV("netbench", "serve", "--address", "127.0.0.1", "--port",
                                         "0", "--deadline", "0.1")),
                   1, "no client");
}

static void nobody_serves(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1"); /* to know a port that is free a moment later */
    kill(server->pid, SIGTERM);
    process_wait(server);
    process_free(server);
    process_expect(process_run(KEY, ARGV("netbench", "TCP", "--port", port, "127.0.0.1")), 1,
                   "no connection");
}

/* Waits until a process has a second thread: its test is under way. */
static void wait_for_threads(const struct process *process) {
    char path[64];
    uint64_t deadline = clock_now() + UINT64_C(20000000000);
    snprintf(path, sizeof path, "/proc/%d/task", (int)process->pid);
    for (int threads = 0; threads < 2;) {
        DIR *tasks = opendir(path);
        assert_non_null(tasks);
        threads = -2; /* . and .. */
        while (readdir(tasks) != NULL) {
            threads++;
        }
        closedir(tasks);
        assert_true(clock_now() < deadline);
    }
}

/* One side is killed in the middle of a long test: the other ends by itself, soon, and says what
 * happened. */
static void kill_one(const char *mode, const char *protocol, bool kill_server) {
    struct process *server = serve("127.0.0.1");
    bool latency = strcmp(mode, "latency") == 0;
    struct process *client =
        process_start(KEY, ARGV("netbench", mode, "--seconds", "1000", "--warmup", "0", "--port",
                                port, "127.0.0.1", latency ? "--protocol" : NULL, protocol));
    wait_for_threads(server);
    wait_for_threads(client);
    struct process *victim = kill_server ? server : client, *other = kill_server ? client : server;
    kill(victim->pid, SIGKILL);
    process_wait(victim);
    process_free(victim);
    process_wait(other);
    process_expect(other, 1, kill_server ? "server" : "client");
}

static void the_server_dies(void **state) {
    (void)state;
    kill_one("TCP", NULL, true);
    kill_one("UDP", NULL, true);
    kill_one("latency", "TCP", true);
    kill_one("latency", "UDP", true);
}

static void the_client_dies(void **state) {
    (void)state;
    kill_one("TCP", NULL, false);
    kill_one("UDP", NULL, false);
    kill_one("latency", "TCP", false);
    kill_one("latency", "UDP", false);
}

/* At the slowest rate it takes 2000 years, in nanoseconds more than 64 bits. */
static void a_huge_total_is_waited_for(void **state) {
    (void)state;
    struct process *server = serve("127.0.0.1");
    struct process *client = process_start(KEY, ARGV("netbench", "TCP", "--total", "8000TiB",
                                                     "--warmup", "0", "--port", port, "127.0.0.1"));
    wait_for_threads(server);
    wait_for_threads(client);
    struct timespec pause = {.tv_nsec = 500000000};
    nanosleep(&pause, NULL);
    kill(server->pid, SIGKILL);
    process_wait(server);
    process_free(server);
    process_wait(client);
    process_expect(client, 1, "closed the connection");
}

static void wrong_command_lines_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *argv[8];
        const char *expected;
    } wrong[] = {
        {{"netbench"}, "serve, TCP, UDP or latency"},
        {{"netbench", "SCTP", "host"}, "unknown mode SCTP"},
        {{"netbench", "TCP", "--port", "1"}, "no host"},
        {{"netbench", "TCP", "host"}, "--port is missing"},
        {{"netbench", "TCP", "host", "more", "--port", "1"}, "more"},
        {{"netbench", "UDP", "host", "--port", "1", "--message", "8"}, "at least 24 bytes"},
        {{"netbench", "UDP", "host", "--port", "1", "--message", "64KiB"}, "at most 65507"},
        {{"netbench", "TCP", "host", "--port", "1", "--gso"}, "option of UDP"},
        {{"netbench", "TCP", "host", "--port", "1", "--busy-poll"}, "options of latency"},
        {{"netbench", "latency", "host", "--port", "1", "--total", "1MiB"},
         "options of TCP and UDP"},
        {{"netbench", "serve", "--port", "1"}, "needs --address"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        process_expect(process_run(KEY, wrong[i].argv), 2, wrong[i].expected);
    }
    process_expect(process_run(NULL, ARGV("netbench", "TCP", "--port", "1", "host")), 2,
                   "NETBENCH_KEY is not set");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_counts_every_byte),
        cmocka_unit_test(tcp_names_the_congestion_control),
        cmocka_unit_test(tcp_messages_are_joined_over_loopback),
        cmocka_unit_test(both_ends_share_a_cpu_where_there_is_none_for_each),
        cmocka_unit_test(tcp_runs_for_the_time_set),
        cmocka_unit_test(udp_adds_up),
        cmocka_unit_test(udp_total_is_what_arrived),
        cmocka_unit_test(udp_with_offload),
        cmocka_unit_test(latency_has_percentiles),
        cmocka_unit_test(ipv6),
        cmocka_unit_test(strangers_are_turned_away),
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(an_overheard_answer_is_refused),
        cmocka_unit_test(a_limit_of_open_files_is_named),
        cmocka_unit_test(a_limit_of_open_files_is_named_before_the_client),
        cmocka_unit_test(the_key_crosses_no_network),
        cmocka_unit_test(text_of_the_server_is_escaped),
        cmocka_unit_test(a_result_is_whole_and_ends),
        cmocka_unit_test(numbers_of_the_server_out_of_range_are_refused),
        cmocka_unit_test(a_send_of_nothing_ends_the_client),
        cmocka_unit_test(a_port_in_use_is_named),
        cmocka_unit_test(nobody_comes),
        cmocka_unit_test(nobody_serves),
        cmocka_unit_test(the_server_dies),
        cmocka_unit_test(the_client_dies),
        cmocka_unit_test(a_huge_total_is_waited_for),
        cmocka_unit_test(wrong_command_lines_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
