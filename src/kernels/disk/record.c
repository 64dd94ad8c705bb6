#include "disk/record.h"

#include <string.h>

#include "common/random.h"

struct stamp {
    uint64_t file;
    uint64_t index;
    uint64_t generation;
    uint64_t sum; /* of the three above and the part's place: a torn or shifted part is noticed */
};

_Static_assert(sizeof(struct stamp) == RECORD_MINIMUM, "a record must have room for its stamp");

static uint64_t sum_of(uint64_t file, uint64_t index, uint64_t generation) {
    uint64_t state = file;
    state = splitmix64(&state) ^ index;
    state = splitmix64(&state) ^ generation;
    return splitmix64(&state);
}

/* The last part is shorter when the record is no multiple of 4 KiB; too short for a stamp, it has
 * none. */
static size_t parts_of(size_t size) {
    return (size + RECORD_PART - RECORD_MINIMUM) / RECORD_PART;
}

void record_stamp(void *data, size_t size, uint64_t file, uint64_t index, uint64_t generation) {
    unsigned char *bytes = data;
    uint64_t sum = sum_of(file, index, generation);
    for (size_t part = 0; part < parts_of(size); part++) {
        struct stamp stamp = {file, index, generation, sum ^ part};
        memcpy(bytes + part * RECORD_PART, &stamp, sizeof stamp);
    }
}

bool record_check(const void *data, size_t size, uint64_t file, uint64_t index,
                  uint64_t *generation) {
    const unsigned char *bytes = data;
    for (size_t part = 0; part < parts_of(size); part++) {
        struct stamp stamp;
        memcpy(&stamp, bytes + part * RECORD_PART, sizeof stamp);
        if (part == 0) {
            *generation = stamp.generation;
        }
        if (stamp.file != file || stamp.index != index || stamp.generation != *generation ||
            stamp.sum != (sum_of(file, index, *generation) ^ part)) {
            return false;
        }
    }
    return parts_of(size) > 0;
}
