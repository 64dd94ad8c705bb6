/* Writes one JSON object on one line. Output only; keys are literals of this program, values are
 * escaped. */
#ifndef PEAKMARK_JSON_H
#define PEAKMARK_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool comma; /* the next member needs one before it */
    int depth;
};

void json_init(struct json *json, FILE *out);

/* key is NULL at top level and inside arrays. */
void json_begin_object(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_begin_array(struct json *json, const char *key);
void json_end_array(struct json *json);
void json_string(struct json *json, const char *key,
                 const char *value); /* NULL becomes null; bytes that are no UTF-8, U+FFFD */
void json_double(struct json *json, const char *key,
                 double value); /* %.17g; NaN and infinities become null */
void json_integer(struct json *json, const char *key, int64_t value);
void json_unsigned(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

/* Ends the line and flushes. False when depth is not zero or the stream had an error (disk full,
 * closed pipe). */
bool json_finish(struct json *json);

#endif
