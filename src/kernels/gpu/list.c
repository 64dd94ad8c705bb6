#include "gpu/list.h"

#include <stdio.h>

#include "common/json.h"
#include "common/status.h"
#include "gpu/gpu.h"

static void print_gpu(struct json *json, int index) {
    struct gpu gpu = {0};
    char compute[16];
    gpu_describe(&gpu, index);
    snprintf(compute, sizeof compute, "%d.%d", gpu.compute / 10, gpu.compute % 10);
    json_begin_object(json, NULL);
    json_integer(json, "index", index);
    json_string(json, "name", gpu.name);
    json_string(json, "pci", gpu.pci);
    json_integer(json, "sms", gpu.sms);
    json_double(json, "clock_hz", 1e3 * driver_attribute(gpu.device, ATTRIBUTE_CLOCK_KHZ));
    json_double(json, "memory_clock_hz", 1e3 * driver_attribute(gpu.device, ATTRIBUTE_MEMORY_KHZ));
    json_integer(json, "bus_bits", driver_attribute(gpu.device, ATTRIBUTE_BUS_BITS));
    json_unsigned(json, "l2_bytes", gpu.l2);
    json_string(json, "compute", compute);
    json_unsigned(json, "memory_bytes", gpu.memory);
    json_bool(json, "ecc", driver_attribute(gpu.device, ATTRIBUTE_ECC) != 0);
    json_bool(json, "mig", gpu_is_mig(&gpu));
    json_end_object(json);
}

void list_gpus(int count) {
    struct json json;
    json_init(&json, stdout);
    json_begin_object(&json, NULL);
    json_integer(&json, "driver", driver_version());
    json_begin_array(&json, "gpus");
    for (int i = 0; i < count; i++) {
        print_gpu(&json, i);
    }
    json_end_array(&json);
    json_end_object(&json);
    if (!json_finish(&json)) {
        fail_measurement("the list could not be written to standard output");
    }
}
