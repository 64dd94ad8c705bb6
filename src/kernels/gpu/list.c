#include "gpu/list.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/status.h"
#include "gpu/gpu.h"

/* The number in a file of the PCI device, e.g. 32 of "32.0 GT/s PCIe"; NaN where it is not known.
 * "/.." is the port that the device is connected to. */
static double read_number(const char *pci, const char *file) {
    char path[160];
    double number = NAN;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", pci, file);
    FILE *stream = fopen(path, "re");
    if (stream != NULL) {
        if (fscanf(stream, "%lf", &number) != 1) {
            number = NAN;
        }
        fclose(stream);
    }
    return number;
}

/* Of a link in GT/s, of which an idle GPU has the lowest: what device and port can do. */
static int link_generation(const char *pci) {
    static const double speeds[] = {2.5, 5, 8, 16, 32, 64};
    const double both =
        fmin(read_number(pci, "max_link_speed"), read_number(pci, "../max_link_speed"));
    for (int i = 0; i < 6; i++) {
        if (both == speeds[i]) {
            return i + 1;
        }
    }
    return 0;
}

static void print_link(struct json *json, const char *pci) {
    const int generation = link_generation(pci);
    const double width = read_number(pci, "current_link_width");
    if (generation > 0 && width > 0) {
        json_begin_object(json, "link");
        json_integer(json, "generation", generation);
        json_integer(json, "width", (int64_t)width);
        json_end_object(json);
    }
}

static void print_uuid(struct json *json, int device) {
    unsigned char bytes[16];
    char text[48] = "GPU-";
    if (cu.DeviceGetUuid(bytes, device) != 0) {
        json_null(json, "uuid");
        return;
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%02x", dash, bytes[i]);
    }
    json_string(json, "uuid", text);
}

static void print_gpu(struct json *json, int index) {
    struct gpu gpu = {0};
    char compute[16];
    gpu_describe(&gpu, index);
    for (char *at = gpu.pci; *at != '\0'; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    const double node = read_number(gpu.pci, "numa_node");
    snprintf(compute, sizeof compute, "%d.%d", gpu.compute / 10, gpu.compute % 10);
    json_begin_object(json, NULL);
    json_integer(json, "index", index);
    json_string(json, "name", gpu.name);
    print_uuid(json, gpu.device);
    json_string(json, "pci", gpu.pci);
    json_double(json, "numa_node", node >= 0 ? node : NAN);
    json_integer(json, "sms", gpu.sms);
    json_double(json, "clock_hz", 1e3 * driver_attribute(gpu.device, ATTRIBUTE_CLOCK_KHZ));
    json_double(json, "memory_clock_hz", 1e3 * driver_attribute(gpu.device, ATTRIBUTE_MEMORY_KHZ));
    json_integer(json, "bus_bits", driver_attribute(gpu.device, ATTRIBUTE_BUS_BITS));
    json_unsigned(json, "l2_bytes", gpu.l2);
    json_string(json, "compute", compute);
    json_unsigned(json, "memory_bytes", gpu.memory);
    json_bool(json, "ecc", driver_attribute(gpu.device, ATTRIBUTE_ECC) != 0);
    json_bool(json, "mig", gpu_is_mig(&gpu));
    print_link(json, gpu.pci);
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
