#include "common/json.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

void json_init(struct json *json, FILE *out) {
    *json = (struct json){.out = out};
}

/* Length of the well-formed UTF-8 sequence at text, 0 if there is none (overlong, surrogate, stray
 * byte). */
static size_t utf8_length(const unsigned char *text) {
    if (text[0] < 0x80) {
        return 1;
    }
    size_t length = text[0] >= 0xf0 && text[0] <= 0xf4   ? 4
                    : text[0] >= 0xe0 && text[0] <= 0xef ? 3
                    : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
                                                         : 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f)) {
        return 0;
    }
    return length;
}

static void write_string(FILE *out, const char *value) {
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)value; *at != '\0';) {
        size_t length = utf8_length(at);
        if (length == 0) {
            fputs("\\ufffd", out);
            at++;
        } else if (*at == '"' || *at == '\\') {
            fprintf(out, "\\%c", *at++);
        } else if (*at < 0x20 || *at == 0x7f) {
            fprintf(out, "\\u%04x", *at++);
        } else {
            fwrite(at, 1, length, out);
            at += length;
        }
    }
    fputc('"', out);
}

static void begin_member(struct json *json, const char *key) {
    if (json->comma) {
        fputs(", ", json->out);
    }
    if (key != NULL) {
        write_string(json->out, key);
        fputs(": ", json->out);
    }
    json->comma = true;
}

static void open_with(struct json *json, const char *key, char bracket) {
    begin_member(json, key);
    fputc(bracket, json->out);
    json->comma = false;
    json->depth++;
}

static void close_with(struct json *json, char bracket) {
    fputc(bracket, json->out);
    json->comma = true;
    json->depth--;
}

void json_begin_object(struct json *json, const char *key) {
    open_with(json, key, '{');
}

void json_end_object(struct json *json) {
    close_with(json, '}');
}

void json_begin_array(struct json *json, const char *key) {
    open_with(json, key, '[');
}

void json_end_array(struct json *json) {
    close_with(json, ']');
}

void json_string(struct json *json, const char *key, const char *value) {
    if (value == NULL) {
        json_null(json, key);
        return;
    }
    begin_member(json, key);
    write_string(json->out, value);
}

void json_double(struct json *json, const char *key, double value) {
    if (!isfinite(value)) {
        json_null(json, key);
        return;
    }
    begin_member(json, key);
    fprintf(json->out, "%.17g", value);
}

void json_integer(struct json *json, const char *key, int64_t value) {
    begin_member(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void json_unsigned(struct json *json, const char *key, uint64_t value) {
    begin_member(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void json_bool(struct json *json, const char *key, bool value) {
    begin_member(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key) {
    begin_member(json, key);
    fputs("null", json->out);
}

bool json_finish(struct json *json) {
    fputc('\n', json->out);
    return fflush(json->out) == 0 && !ferror(json->out) && json->depth == 0;
}
