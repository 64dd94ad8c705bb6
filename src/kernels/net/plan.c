#include "net/plan.h"

#include <inttypes.h>
#include <stdio.h>

void plan_write(const struct net_plan *plan, char *line, size_t capacity) {
    snprintf(line, capacity, "PLAN %d %d %d %d %" PRIu64 " %d %.9f %.9f %" PRIu64, plan->latency, plan->udp,
             plan->offload, plan->busy_poll, plan->message, plan->streams, plan->warmup, plan->seconds,
             plan->total);
}

bool plan_read(const char *line, struct net_plan *plan) {
    int latency, udp, offload, busy_poll;
    if (sscanf(line, "PLAN %d %d %d %d %" SCNu64 " %d %lf %lf %" SCNu64, &latency, &udp, &offload, &busy_poll,
               &plan->message, &plan->streams, &plan->warmup, &plan->seconds, &plan->total) != 9) {
        return false;
    }
    plan->latency = latency != 0;
    plan->udp = udp != 0;
    plan->offload = offload != 0;
    plan->busy_poll = busy_poll != 0;
    uint64_t smallest = plan->udp && !plan->latency ? sizeof(struct datagram) : 1;
    uint64_t largest = plan->udp ? UDP_PAYLOAD_MAX : TCP_MESSAGE_MAX;
    return plan->message >= smallest && plan->message <= largest && plan->streams >= 1 &&
           plan->streams <= STREAMS_MAX && plan->warmup >= 0 && plan->seconds >= 0 && plan->warmup < 1e6 &&
           plan->seconds < 1e6;
}
