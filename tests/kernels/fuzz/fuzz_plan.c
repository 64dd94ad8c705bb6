/* libFuzzer: whatever a client asks of netbench's server, it is refused or is a plan within the
 * server's means. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *line = malloc(size + 1);
    struct net_plan plan;
    memset(&plan, 0, sizeof plan);
    if (line == NULL) {
        abort();
    }
    memcpy(line, data, size);
    line[size] = '\0';
    if (plan_read(line, &plan)) {
        uint64_t largest = plan.udp ? UDP_PAYLOAD_MAX : TCP_MESSAGE_MAX;
        if (plan.streams < 1 || plan.streams > STREAMS_MAX || plan.message < 1 ||
            plan.message > largest || !(plan.seconds >= 0 && plan.seconds < 1e7) ||
            !(plan.warmup >= 0 && plan.warmup < 1e7)) {
            abort();
        }
    }
    free(line);
    return 0;
}
