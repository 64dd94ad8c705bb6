#include "net/plan.h"

#include <inttypes.h>
#include <stdio.h>

#include "net/datagram.h"
#include "net/fields.h"

/* A time of more than two weeks is no plan: the command line takes a week at most. */
#define LONGEST_NS (UINT64_C(14) * 24 * 3600 * 1000000000)

static uint64_t nanoseconds(double seconds) {
    return (uint64_t)(seconds * 1e9 + 0.5);
}

void plan_write(const struct net_plan *plan, char *line, size_t capacity) {
    snprintf(line, capacity, "PLAN %d %d %d %d %" PRIu64 " %d %" PRIu64 " %" PRIu64 " %" PRIu64,
             plan->latency, plan->udp, plan->offload, plan->busy_poll, plan->message, plan->streams,
             nanoseconds(plan->warmup), nanoseconds(plan->seconds), plan->total);
}

bool plan_read(const char *line, struct net_plan *plan) {
    struct net_plan read = {.run = plan->run};
    struct fields fields = fields_begin(line, "PLAN");
    read.latency = fields_next(&fields, 0, 1) != 0;
    read.udp = fields_next(&fields, 0, 1) != 0;
    read.offload = fields_next(&fields, 0, 1) != 0;
    read.busy_poll = fields_next(&fields, 0, 1) != 0;
    uint64_t smallest = read.udp && !read.latency ? sizeof(struct datagram) : 1;
    uint64_t largest = read.udp ? UDP_PAYLOAD_MAX : TCP_MESSAGE_MAX;
    read.message = fields_next(&fields, smallest, largest);
    read.streams = (int)fields_next(&fields, 1, STREAMS_MAX);
    read.warmup = (double)fields_next(&fields, 0, LONGEST_NS) / 1e9;
    read.seconds = (double)fields_next(&fields, 0, LONGEST_NS) / 1e9;
    read.total = fields_next(&fields, 0, UINT64_MAX);
    if (!fields_end(&fields)) {
        return false;
    }
    *plan = read;
    return true;
}
