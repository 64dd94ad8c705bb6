#include "net/fields.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fields fields_begin(const char *line, const char *keyword) {
    size_t length = strlen(keyword);
    bool matches = strncmp(line, keyword, length) == 0;
    return (struct fields){.at = matches ? line + length : NULL};
}

uint64_t fields_next(struct fields *fields, uint64_t minimum, uint64_t maximum) {
    const char *at = fields->at;
    fields->at = NULL;
    if (at == NULL || at[0] != ' ' || !isdigit((unsigned char)at[1])) {
        return minimum;
    }
    char *end;
    errno = 0;
    unsigned long long number = strtoull(at + 1, &end, 10);
    if (errno != 0 || number < minimum || number > maximum) {
        return minimum;
    }
    fields->at = end;
    return number;
}

bool fields_end(const struct fields *fields) {
    return fields->at != NULL && *fields->at == '\0';
}
