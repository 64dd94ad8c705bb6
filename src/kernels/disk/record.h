/*
 * What a record holds on disk: incompressible bytes, and a stamp in each 4 KiB that says which
 * record this is.
 *
 * The stamp makes two things sure: that data read back was really written by this run, and that no
 * two blocks on the device are equal, so that a device that removes duplicates gains nothing.
 */
#ifndef PEAKMARK_DISK_RECORD_H
#define PEAKMARK_DISK_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_PART = 4096, RECORD_MINIMUM = 32 };

/* Stamps every part of the record. `file` names file and run; `generation` counts the writes of a
 * file. */
void record_stamp(void *data, size_t size, uint64_t file, uint64_t index, uint64_t generation);

/* True when every part carries a stamp of this file and record, all of one generation, which is
 * returned. */
bool record_check(const void *data, size_t size, uint64_t file, uint64_t index,
                  uint64_t *generation);

#endif
