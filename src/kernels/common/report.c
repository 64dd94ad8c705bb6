#include "common/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/status.h"

void warnings_add(struct warnings *warnings, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (int i = 0; i < warnings->count; i++) {
        if (strcmp(warnings->text[i], text) == 0) {
            return;
        }
    }
    char *copy = warnings->count < WARNINGS_MAX ? strdup(text) : NULL;
    if (copy != NULL) {
        warnings->text[warnings->count++] = copy;
    }
}

void warnings_free(struct warnings *warnings) {
    for (int i = 0; i < warnings->count; i++) {
        free(warnings->text[i]);
    }
    warnings->count = 0;
}

void report_begin(struct json *json, const struct report *report) {
    const struct team *team = report->team;
    if (!isfinite(report->value) || report->value <= 0) {
        fail_measurement("the result %g %s is no measurement: the run was too short or did no work",
                         report->value, report->unit);
    }
    json_init(json, stdout);
    json_begin_object(json, NULL);
    json_string(json, "instrument", report->instrument);
    json_string(json, "version", PEAKMARK_VERSION);
    json_string(json, "workload", report->workload);
    json_integer(json, "threads", team->threads);
    json_double(json, "value", report->value);
    json_string(json, "unit", report->unit);
    json_double(json, "seconds", team->seconds);
    json_unsigned(json, "work", team->work);
    json_string(json, "work_unit", report->work_unit);
    json_string(json, "isa", report->isa);
    json_begin_array(json, "per_thread");
    for (int i = 0; i < team->threads; i++) {
        const struct team_member *member = &team->members[i];
        json_begin_object(json, NULL);
        json_integer(json, "cpu", member->cpu);
        json_double(json, "start", (double)(member->start_ns - team->first_start_ns) * 1e-9);
        json_double(json, "stop", (double)(member->stop_ns - team->first_start_ns) * 1e-9);
        json_unsigned(json, "work", member->work);
        json_end_object(json);
    }
    json_end_array(json);
    if (team->energy.names[0] != '\0') {
        json_string(json, "energy_of", team->energy.names);
    }
    if (team->energy.joules > 0) {
        json_double(json, "joules", team->energy.joules);
        json_double(json, "watts", team->energy.watts);
    }
}

void report_failure(const struct team *team) {
    struct json json;
    bool any = false;
    for (int i = 0; i < team->threads; i++) {
        if (!team->members[i].wrong) {
            continue;
        }
        if (!any) {
            json_init(&json, stdout);
            json_begin_object(&json, NULL);
            json_begin_array(&json, "wrong_cpus");
        }
        any = true;
        json_integer(&json, NULL, team->members[i].cpu);
    }
    if (any) {
        json_end_array(&json);
        json_end_object(&json);
        json_finish(&json);
    }
    fail_measurement("%s", team->error);
}

static void clock_or_null(struct json *json, const char *key, double hz) {
    if (hz > 0) {
        json_double(json, key, hz);
    } else {
        json_null(json, key);
    }
}

void report_clock(struct json *json, const struct team *team) {
    clock_or_null(json, "clock_hz_before", team->clock_hz_before);
    clock_or_null(json, "clock_hz_after", team->clock_hz_after);
    json_double(json, "cpu_share", team->cpu_share);
    if (team->core_to_core_before > 0 && team->core_to_core_after > 0) {
        json_double(json, "core_to_core_before", team->core_to_core_before);
        json_double(json, "core_to_core_after", team->core_to_core_after);
    }
}

void report_clock_loaded(struct json *json, const struct team *team) {
    clock_or_null(json, "clock_hz_loaded", team->clock_hz_loaded);
    json_integer(json, "held_up", team->held_up);
}

void report_percentiles(struct json *json, const struct histogram *latency) {
    json_double(json, "p50", histogram_percentile(latency, 0.5) * 1e-9);
    json_double(json, "p90", histogram_percentile(latency, 0.9) * 1e-9);
    json_double(json, "p99", histogram_percentile(latency, 0.99) * 1e-9);
    json_double(json, "p999", histogram_percentile(latency, 0.999) * 1e-9);
    json_double(json, "max", (double)latency->maximum * 1e-9);
    char *text = histogram_text(latency);
    if (text == NULL) {
        fail_measurement("no memory for the text of a histogram");
    }
    json_string(json, "histogram", text);
    free(text);
}

void report_row_begin(struct json *json, const char *variant, double value) {
    json_begin_object(json, NULL);
    json_string(json, "variant", variant);
    json_double(json, "value", value);
}

void report_points(struct json *json, const double *points, int count, int width) {
    json_begin_array(json, "points");
    for (int i = 0; i < count; i++) {
        json_begin_array(json, NULL);
        for (int j = 0; j < width; j++) {
            json_double(json, NULL, points[i * width + j]);
        }
        json_end_array(json);
    }
    json_end_array(json);
}

void report_end(struct json *json, const struct report *report) {
    json_begin_array(json, "warnings");
    for (int i = 0; i < report->warnings->count; i++) {
        json_string(json, NULL, report->warnings->text[i]);
    }
    json_end_array(json);
    json_end_object(json);
    if (!json_finish(json)) {
        fail_measurement("the result could not be written to standard output");
    }
}
