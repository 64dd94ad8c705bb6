/*
 * The numbers of a line of the control connection: a keyword, then decimal numbers, one space
 * before each.
 *
 *     struct fields fields = fields_begin(line, "PORT");
 *     int stream = (int)fields_next(&fields, 0, streams - 1);
 *     int port = (int)fields_next(&fields, 1, 65535);
 *     if (!fields_end(&fields)) ...
 */
#ifndef PEAKMARK_NET_FIELDS_H
#define PEAKMARK_NET_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

struct fields {
    const char *at; /* NULL: the line is not as expected */
};

struct fields fields_begin(const char *line, const char *keyword);

/* The next number; `minimum` where there is none or it is out of range, and fields_end is then
 * false. */
uint64_t fields_next(struct fields *fields, uint64_t minimum, uint64_t maximum);

/* True when the keyword and all numbers were as expected and nothing follows them. */
bool fields_end(const struct fields *fields);

#endif
