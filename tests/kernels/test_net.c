/*
 * Parts of netbench: the accounting of datagrams, from crafted numbers and over a real socket;
 * keys; plans.
 */
#include "process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "net/control.h"
#include "net/datagram.h"
#include "net/echo.h"
#include "net/endpoint.h"
#include "net/fields.h"
#include "net/hmac.h"
#include "net/lines.h"
#include "net/listener.h"
#include "net/ping.h"
#include "net/plan.h"
#include "net/receive.h"
#include "net/send.h"
#include "net/sequence.h"

static void arrive(struct sequence *sequence, const uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sequence_arrived(sequence, numbers[i]);
    }
}

#define ARRIVE(sequence, ...)                                                                      \
    arrive(sequence, (const uint64_t[]){__VA_ARGS__},                                              \
           sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void everything_arrived(void **state) {
    (void)state;
    static struct sequence sequence;
    sequence_init(&sequence);
    ARRIVE(&sequence, 0, 1, 2);
    sequence_open(&sequence);
    ARRIVE(&sequence, 3, 4, 5, 6);
    sequence_close(&sequence);
    ARRIVE(&sequence, 7, 8);
    assert_int_equal(sequence_sent(&sequence), 4);
    assert_int_equal(sequence.received, 4);
    assert_int_equal(
        sequence_lost(&sequence) + sequence.reordered + sequence.duplicated + sequence.stale, 0);
}

static void loss_reordering_and_duplicates_are_told_apart(void **state) {
    (void)state;
    static struct sequence sequence;
    sequence_init(&sequence);
    sequence_open(&sequence);
    ARRIVE(&sequence, 0, 1, 4, 3, 3, 4, 9, 9, 9, 5);
    sequence_close(&sequence);
    assert_int_equal(sequence_sent(&sequence), 10);
    assert_int_equal(sequence.received, 6); /* 0 1 3 4 5 9 */
    assert_int_equal(sequence_lost(&sequence), 4);
    assert_int_equal(sequence.reordered, 2); /* 3 and 5 */
    assert_int_equal(sequence.duplicated, 4);
    ARRIVE(&sequence, 2); /* late, after the window was closed: not lost after all */
    assert_int_equal(sequence_lost(&sequence), 3);
    assert_int_equal(sequence.reordered, 3);
}

static void what_is_outside_the_window_does_not_count(void **state) {
    (void)state;
    static struct sequence sequence;
    sequence_init(&sequence);
    ARRIVE(&sequence, 0, 1, 5); /* 2, 3, 4 are lost in the warm-up */
    sequence_open(&sequence);
    ARRIVE(&sequence, 3, 5, 6, 7);
    sequence_close(&sequence);
    ARRIVE(&sequence, 8, 20, 7);
    assert_int_equal(sequence_sent(&sequence), 2);
    assert_int_equal(sequence.received, 2);
    assert_int_equal(sequence.reordered, 0);
    assert_int_equal(sequence.duplicated, 1); /* 7 */
}

/* A gap longer than what is remembered; then numbers from before it, of which nobody knows any
 * more. */
static void long_gaps(void **state) {
    (void)state;
    static struct sequence sequence;
    sequence_init(&sequence);
    sequence_open(&sequence);
    ARRIVE(&sequence, 0, 1);
    uint64_t far = 3 * (uint64_t)SEQUENCE_SPAN;
    ARRIVE(&sequence, far, far - SEQUENCE_SPAN + 1, far - SEQUENCE_SPAN, 1);
    sequence_close(&sequence);
    assert_int_equal(sequence.received, 4);
    assert_int_equal(sequence.reordered, 1);
    assert_int_equal(sequence.stale, 2);
    assert_int_equal(sequence_lost(&sequence), far + 1 - 4);
}

static void an_empty_window_lost_nothing(void **state) {
    (void)state;
    static struct sequence sequence;
    sequence_init(&sequence);
    sequence_open(&sequence);
    sequence_close(&sequence);
    assert_int_equal(sequence_sent(&sequence), 0);
    assert_int_equal(sequence_lost(&sequence), 0);
}

/* Two connected UDP sockets on 127.0.0.1; the first receives. */
static void make_pair(int sockets[2]) {
    struct sockaddr_in address[2];
    socklen_t length = sizeof address[0];
    for (int i = 0; i < 2; i++) {
        address[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
        assert_int_equal(bind(sockets[i], (struct sockaddr *)&address[i], length), 0);
        assert_int_equal(getsockname(sockets[i], (struct sockaddr *)&address[i], &length), 0);
    }
    assert_int_equal(connect(sockets[0], (struct sockaddr *)&address[1], length), 0);
    assert_int_equal(connect(sockets[1], (struct sockaddr *)&address[0], length), 0);
}

static void post(int socket, uint64_t run, uint64_t number, int stream, size_t size) {
    unsigned char data[2048] = {0};
    struct datagram header = datagram_make(run, number, stream, DATAGRAM_DATA);
    assert_in_range(size, sizeof header, sizeof data);
    memcpy(data, &header, sizeof header);
    assert_int_equal(send(socket, data, size, 0), (int)size);
}

/* The receiver's threads and system calls over a real socket: only whole, new datagrams of this run
 * are counted. */
static void receiver_counts_its_own_datagrams(void **state) {
    (void)state;
    struct net_plan plan = {.udp = true, .message = 100, .streams = 1, .run = 77};
    int sockets[2];
    make_pair(sockets);
    static const uint64_t numbers[] = {0, 1, 2, 5, 4, 4, 7};
    post(sockets[1], 76, 3, 0, 100); /* another run */
    post(sockets[1], 77, 3, 1, 100); /* another stream */
    post(sockets[1], 77, 3, 0, 99);  /* too short */
    post(sockets[1], 77, 3, 0, 101); /* too long */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        post(sockets[1], 77, numbers[i], 0, 100);
    }
    struct receiver receiver = {.socket = sockets[0]};
    struct receiving receiving = {.plan = &plan, .receivers = &receiver, .control = -1};
    struct team_plan team_plan = {.work = 600, .grain = 100};
    struct cpu_list cpus;
    struct team team;
    assert_true(place_allowed(&cpus));
    cpus.count = 1;
    assert_true(team_run(&team, &cpus, &team_plan, &receive_job, &receiving));
    assert_int_equal(team.work, 600);
    assert_int_equal(receiver.sequence.received, 6);
    assert_int_equal(sequence_sent(&receiver.sequence), 8);
    assert_int_equal(sequence_lost(&receiver.sequence), 2);
    assert_int_equal(receiver.sequence.reordered, 1);
    assert_int_equal(receiver.sequence.duplicated, 1);
    post(sockets[1], 77, 6, 0, 100); /* still on its way when the clock stopped */
    assert_int_equal(receive_rest(&plan, &receiver, deadline_in(10)), -1);
    assert_int_equal(sequence_lost(&receiver.sequence), 1);
    assert_int_equal(receiver.sequence.reordered, 2);
    receive_free(&receiver);
    close(sockets[1]);
    team_free(&team);
}

struct tardy {
    pthread_t sender;
    struct team *team;
    int socket;
};

static struct tardy tardy;

/* Sends nothing before the time to measure is over, and then waits for longer than one receive
 * does. */
static void *late_sender(void *argument) {
    (void)argument;
    while (!atomic_load(&tardy.team->stop)) {
        sched_yield();
    }
    clock_sleep_until(deadline_in(0.3));
    post(tardy.socket, 77, 0, 0, 100);
    return NULL;
}

static void prepare_with_late_sender(struct team_member *member) {
    receive_job.prepare(member);
    tardy.team = member->team;
    assert_int_equal(pthread_create(&tardy.sender, NULL, late_sender, NULL), 0);
}

/* The rate is then of what came, in the time that took; it is not 0. */
static void a_sender_later_than_the_run_is_long_is_waited_for(void **state) {
    (void)state;
    struct net_plan plan = {.udp = true, .message = 100, .streams = 1, .run = 77};
    int sockets[2];
    make_pair(sockets);
    tardy.socket = sockets[1];
    struct receiver receiver = {.socket = sockets[0]};
    struct receiving receiving = {.plan = &plan, .receivers = &receiver, .control = -1};
    struct team_plan team_plan = {.seconds = 0.01, .grain = 100};
    struct team_job job = receive_job;
    job.prepare = prepare_with_late_sender;
    struct cpu_list cpus;
    struct team team;
    assert_true(place_allowed(&cpus));
    cpus.count = 1;
    assert_true(team_run(&team, &cpus, &team_plan, &job, &receiving));
    pthread_join(tardy.sender, NULL);
    assert_int_equal(team.work, 100);
    assert_true(team.seconds > 0.29);
    receive_free(&receiver);
    close(sockets[1]);
    team_free(&team);
}

/* Answers 1-byte pings, but not the fifth; its answer comes late, before that to the sixth. */
static void *forgetful_echo(void *argument) {
    int socket = *(int *)argument;
    unsigned char byte, late;
    for (int ping = 1; recv(socket, &byte, 1, 0) == 1; ping++) {
        if (ping == 5) {
            late = byte;
            continue;
        }
        if (ping == 6) {
            send(socket, &late, 1, 0);
        }
        send(socket, &byte, 1, 0);
    }
    return NULL;
}

/* A lost datagram is counted, costs a timeout and no more; a late answer is not taken for the one
 * awaited. */
static void a_lost_ping_is_no_hang(void **state) {
    (void)state;
    static struct ping ping;
    struct net_plan plan = {.latency = true, .udp = true, .message = 1, .streams = 1};
    struct pinging pinging = {.plan = &plan, .pings = &ping};
    struct team_plan team_plan = {.work = 20};
    struct cpu_list cpus;
    struct team team;
    int sockets[2];
    pthread_t echo;
    make_pair(sockets);
    ping = (struct ping){.socket = sockets[0]};
    assert_int_equal(pthread_create(&echo, NULL, forgetful_echo, &sockets[1]), 0);
    assert_true(place_allowed(&cpus));
    cpus.count = 1;
    assert_true(team_run(&team, &cpus, &team_plan, &ping_job, &pinging));
    assert_int_equal(team.work, 20);
    assert_int_equal(ping.latency.count, 20);
    assert_int_equal(ping.lost, 1);
    assert_int_equal(ping.number, 21);
    shutdown(sockets[1], SHUT_RDWR);
    pthread_join(echo, NULL);
    close(sockets[0]);
    close(sockets[1]);
    team_free(&team);
}

/* Nobody answers at all: the run ends with a sentence. */
static void a_silent_peer_ends_the_run(void **state) {
    (void)state;
    static struct ping ping;
    struct net_plan plan = {.latency = true, .udp = true, .message = 1, .streams = 1};
    struct pinging pinging = {.plan = &plan, .pings = &ping};
    struct team_plan team_plan = {.seconds = 1000};
    struct cpu_list cpus;
    struct team team;
    int sockets[2];
    make_pair(sockets);
    ping = (struct ping){.socket = sockets[0]};
    assert_true(place_allowed(&cpus));
    cpus.count = 1;
    assert_false(team_run(&team, &cpus, &team_plan, &ping_job, &pinging));
    assert_non_null(strstr(team.error, "no answer"));
    close(sockets[0]);
    close(sockets[1]);
    team_free(&team);
}

/* RFC 4231, test cases 1, 2, 6 and 7: keys and data shorter and longer than a block. */
static void hmac_is_that_of_the_rfc(void **state) {
    (void)state;
    static const struct {
        const char *key, *data;
        unsigned char fill;
        size_t key_bytes;
        const unsigned char digest[HMAC_BYTES + 1];
    } cases[] = {
        {NULL, "Hi There", 0x0b, 20,
         "\xb0\x34\x4c\x61\xd8\xdb\x38\x53\x5c\xa8\xaf\xce\xaf\x0b\xf1\x2b"
         "\x88\x1d\xc2\x00\xc9\x83\x3d\xa7\x26\xe9\x37\x6c\x2e\x32\xcf\xf7"},
        {"Jefe", "what do ya want for nothing?", 0, 4,
         "\x5b\xdc\xc1\x46\xbf\x60\x75\x4e\x6a\x04\x24\x26\x08\x95\x75\xc7"
         "\x5a\x00\x3f\x08\x9d\x27\x39\x83\x9d\xec\x58\xb9\x64\xec\x38\x43"},
        {NULL, "Test Using Larger Than Block-Size Key - Hash Key First", 0xaa, 131,
         "\x60\xe4\x31\x59\x1e\xe0\xb6\x7f\x0d\x8a\x26\xaa\xcb\xf5\xb7\x7f"
         "\x8e\x0b\xc6\x21\x37\x28\xc5\x14\x05\x46\x04\x0f\x0e\xe3\x7f\x54"},
        {NULL,
         "This is a test using a larger than block-size key and a larger than block-size data. "
         "The key needs to be hashed before being used by the HMAC algorithm.",
         0xaa, 131,
         "\x9b\x09\xff\xa7\x1b\x94\x2f\xcb\x27\x63\x5f\xbc\xd5\xb0\xe9\x44"
         "\xbf\xdc\x63\x64\x4f\x07\x13\x93\x8a\x7f\x51\x53\x5c\x3a\x35\xe2"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char key[131], digest[HMAC_BYTES];
        memset(key, cases[i].fill, sizeof key);
        const void *given = cases[i].key != NULL ? (const void *)cases[i].key : key;
        hmac_sha256(given, cases[i].key_bytes, cases[i].data, strlen(cases[i].data), digest);
        assert_memory_equal(digest, cases[i].digest, HMAC_BYTES);
    }
}

static void digests_are_compared_whole(void **state) {
    (void)state;
    unsigned char left[HMAC_BYTES] = {7}, right[HMAC_BYTES] = {7};
    assert_true(hmac_equal(left, right));
    for (int i = 0; i < HMAC_BYTES; i++) {
        right[i] ^= 0x80;
        assert_false(hmac_equal(left, right));
        right[i] ^= 0x80;
    }
}

static void plans_survive_the_line(void **state) {
    (void)state;
    struct net_plan plan = {.latency = false,
                            .udp = true,
                            .offload = true,
                            .message = 1024,
                            .streams = 8,
                            .warmup = 0.25,
                            .seconds = 12.5,
                            .total = UINT64_C(1) << 40},
                    read = {.run = 5};
    char line[LINE_BYTES];
    plan_write(&plan, line, sizeof line);
    assert_true(plan_read(line, &read));
    assert_true(read.udp && read.offload && !read.latency && !read.busy_poll);
    assert_int_equal(read.message, 1024);
    assert_int_equal(read.streams, 8);
    assert_true(read.warmup == 0.25 && read.seconds == 12.5 && read.total == UINT64_C(1) << 40);
    assert_int_equal(read.run, 5);
    assert_true(plan_read("PLAN 0 0 0 0 1024 1 0 1 0", &read));
}

static void wrong_plans_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        "PLAN",
        "PLANS 0 0 0 0 1024 1 0 1 0",
        "PLAN 0 0 0 0 1024 1 0 1",
        "PLAN 0 0 0 0 1024 1 0 1 0 0",        /* more than a plan */
        "PLAN  0 0 0 0 1024 1 0 1 0",         /* two spaces */
        "PLAN 2 0 0 0 1024 1 0 1 0",          /* a flag that is none */
        "PLAN 0 0 0 0 1024 0 0 1 0",          /* no streams, or too many */
        "PLAN 0 0 0 0 1024 100000 0 1 0",     /* ... */
        "PLAN 0 0 0 0 1024 4294967297 0 1 0", /* 1 as an int */
        "PLAN 0 1 0 0 8 1 0 1 0",             /* messages too small, too large, below zero */
        "PLAN 0 1 0 0 70000 1 0 1 0",         /* ... */
        "PLAN 0 0 0 0 -18446744073709550592 1 0 1 0", /* 1024 as an unsigned number */
        "PLAN 0 0 0 0 1024 1 nan 1 0",                /* times */
        "PLAN 0 0 0 0 1024 1 0 -1 0",                 /* ... */
        "PLAN 0 0 0 0 1024 1 0 9999999999999999 0",   /* ... */
        "PLAN 0 0 0 0 1024 1 0 1 18446744073709551616"};
    struct net_plan plan = {.run = 5, .message = 3};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (plan_read(wrong[i], &plan)) {
            fail_msg("'%s' was taken for a plan", wrong[i]);
        }
    }
    assert_true(plan.run == 5 && plan.message == 3);
}

static void fields_are_numbers_in_range(void **state) {
    (void)state;
    struct fields fields = fields_begin("PORT 7 65535", "PORT");
    assert_int_equal(fields_next(&fields, 0, 7), 7);
    assert_false(fields_end(&fields));
    assert_int_equal(fields_next(&fields, 1, 65535), 65535);
    assert_true(fields_end(&fields));
    fields = fields_begin("PORT 8 1", "PORT");
    assert_int_equal(fields_next(&fields, 3, 7), 3); /* in range whatever the line holds */
    assert_int_equal(fields_next(&fields, 0, 7), 0); /* nothing is read after what is wrong */
    assert_false(fields_end(&fields));
}

/* Greeting and answer byte by byte: the same on machines of other byte orders and compilers. The
 * proof was computed with Python's hmac. */
static void greetings_are_the_same_on_all_machines(void **state) {
    (void)state;
    struct key key = {"secret"};
    unsigned char bytes[sizeof(struct answer) + 1];
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_true(greeting_send(sockets[0]));
    assert_int_equal(recv(sockets[1], bytes, sizeof bytes, 0), 12);
    assert_memory_equal(bytes, "peakmark\3\0\0\0", 12);
    assert_true(greeting_answer(
        sockets[0], "CHALLENGE 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        &key, UINT64_C(0x0102030405060708), 0x0a0b));
    assert_int_equal(recv(sockets[1], bytes, sizeof bytes, 0), 48);
    assert_memory_equal(bytes,
                        "\xc3\x6d\x29\x29\x16\x7d\xa1\xa9\x52\xf1\x42\xb7\x73\xed\x9b\xd4"
                        "\xba\xa8\xa8\xc2\x78\x0d\x9e\xce\xdd\xb3\x98\x44\x42\x8e\xc6\x69",
                        HMAC_BYTES);
    assert_memory_equal(bytes + 32, "\x08\7\6\5\4\3\2\1\x0b\x0a\0\0\0\0\0\0", 16);
    close(sockets[0]);
    close(sockets[1]);
}

static void only_a_challenge_is_answered(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        "CHALLENGE ",
        "CHALLENGE 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e",
        "CHALLENGE 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f00",
        "CHALLENGE 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e-1",
        "challenge 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"};
    struct key key = {"secret"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(greeting_answer(-1, wrong[i], &key, 0, 0));
        assert_int_equal(errno, EPROTO);
    }
}

/* Lines that come in pieces, several at once, too long, or not at all. */
static void lines_are_received_whole(void **state) {
    (void)state;
    int sockets[2];
    char line[LINE_BYTES];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    struct control control = {.socket = sockets[0]}, other = {.socket = sockets[1]};
    assert_int_equal(send(sockets[1], "one\ntwo\nth", 10, 0), 10);
    assert_int_equal(control_receive(&control, line, deadline_in(5)), RECEIPT_LINE);
    assert_string_equal(line, "one");
    assert_int_equal(control_receive(&control, line, deadline_in(5)), RECEIPT_LINE);
    assert_string_equal(line, "two");
    assert_int_equal(control_receive(&control, line, deadline_in(0.01)), RECEIPT_TIMEOUT);
    assert_true(control_send(&other, "%s", "ree"));
    assert_int_equal(control_receive(&control, line, deadline_in(5)), RECEIPT_LINE);
    assert_string_equal(line, "three");
    char flood[LINE_BYTES];
    memset(flood, 'x', sizeof flood);
    assert_int_equal(send(sockets[1], flood, sizeof flood, 0), (int)sizeof flood);
    assert_int_equal(control_receive(&control, line, deadline_in(5)), RECEIPT_CLOSED);
    close(sockets[1]);
    control.have = 0;
    assert_int_equal(control_receive(&control, line, deadline_in(5)), RECEIPT_CLOSED);
    close(sockets[0]);
}

/* Nothing that the other side sends reaches a terminal as it is. */
static void lines_are_printable(void **state) {
    (void)state;
    int sockets[2];
    char line[LINE_BYTES], flood[LINE_BYTES - 1];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    struct control control = {.socket = sockets[0]};
    assert_int_equal(send(sockets[1], "a\x1b[2J\r\0\x7f\xc2\x9b~\n", 12, 0), 12);
    assert_int_equal(control_receive(&control, line, deadline_in(5)), RECEIPT_LINE);
    assert_string_equal(line, "a\\x1b[2J\\x0d\\x00\\x7f\\xc2\\x9b~");
    memset(flood, 7, sizeof flood - 1);
    flood[sizeof flood - 1] = '\n';
    assert_int_equal(send(sockets[1], flood, sizeof flood, 0), (int)sizeof flood);
    assert_int_equal(control_receive(&control, line, deadline_in(5)), RECEIPT_LINE);
    assert_in_range(strlen(line), LINE_BYTES - 8, LINE_BYTES - 1);
    close(sockets[0]);
    close(sockets[1]);
}

/* 8000 TiB at the slowest rate take 2000 years, in nanoseconds more than 64 bits. */
static void deadlines_lie_ahead(void **state) {
    (void)state;
    assert_true(deadline_in(7e10) > clock_now());
    assert_true(deadline_in(1e300) > clock_now());
}

/* Each thread writes in lines of its own. */
static void threads_share_no_cache_line(void **state) {
    (void)state;
    struct sender *senders = lines_allocate(3, sizeof *senders);
    struct echo *echoes = lines_allocate(3, sizeof *echoes);
    assert_true(senders != NULL && echoes != NULL);
    assert_int_equal((uintptr_t)&senders[2] % LINES_BYTES, 0);
    assert_int_equal((uintptr_t)&echoes[2] % LINES_BYTES, 0);
    assert_true(senders[2].sent == 0 && echoes[2].answered == 0);
    free(senders);
    free(echoes);
}

/* 1024 streams of the largest datagrams took 4 GiB. */
static void buffers_of_a_stream_are_bounded(void **state) {
    (void)state;
    static const uint64_t messages[] = {24, 1024, 16384, 16385, UDP_PAYLOAD_MAX};
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        assert_in_range(datagram_batch(messages[i]), 16, DATAGRAM_BATCH);
        assert_in_range(datagram_batch(messages[i]) * messages[i], 1, DATAGRAM_BATCH_BYTES);
    }
}

/* TCP over 127.0.0.1 with segments of this size at most; 0: as the kernel has them. */
static void connect_with_segment(int segment, int sockets[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), connected = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    if (segment > 0) {
        setsockopt(connected, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
    }
    assert_int_equal(connect(connected, (struct sockaddr *)&address, length), 0);
    sockets[0] = connected;
    sockets[1] = accept(listener, NULL, NULL);
    assert_true(sockets[1] >= 0);
    close(listener);
}

static void messages_are_joined_where_that_pays(void **state) {
    (void)state;
    int loopback[2], ethernet[2];
    connect_with_segment(0, loopback);
    connect_with_segment(1460, ethernet);
    assert_true(endpoint_join(loopback[0], 64) && endpoint_join(loopback[0], 32 << 10));
    assert_true(endpoint_join(loopback[0], 64 << 10) && endpoint_join(loopback[0], 1 << 20));
    assert_true(endpoint_join(ethernet[0], 64));
    assert_false(endpoint_join(ethernet[0], 1 << 10));
    assert_false(endpoint_join(ethernet[0], 32 << 10));
    for (int i = 0; i < 2; i++) {
        close(loopback[i]);
        close(ethernet[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_arrived),
        cmocka_unit_test(loss_reordering_and_duplicates_are_told_apart),
        cmocka_unit_test(what_is_outside_the_window_does_not_count),
        cmocka_unit_test(long_gaps),
        cmocka_unit_test(an_empty_window_lost_nothing),
        cmocka_unit_test(receiver_counts_its_own_datagrams),
        cmocka_unit_test(a_sender_later_than_the_run_is_long_is_waited_for),
        cmocka_unit_test(a_lost_ping_is_no_hang),
        cmocka_unit_test(a_silent_peer_ends_the_run),
        cmocka_unit_test(hmac_is_that_of_the_rfc),
        cmocka_unit_test(digests_are_compared_whole),
        cmocka_unit_test(plans_survive_the_line),
        cmocka_unit_test(wrong_plans_are_refused),
        cmocka_unit_test(fields_are_numbers_in_range),
        cmocka_unit_test(greetings_are_the_same_on_all_machines),
        cmocka_unit_test(only_a_challenge_is_answered),
        cmocka_unit_test(lines_are_received_whole),
        cmocka_unit_test(lines_are_printable),
        cmocka_unit_test(deadlines_lie_ahead),
        cmocka_unit_test(threads_share_no_cache_line),
        cmocka_unit_test(buffers_of_a_stream_are_bounded),
        cmocka_unit_test(messages_are_joined_where_that_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
