/*
 * The files that are measured: peakmark-0, peakmark-1, ... in a private directory peakmark-XXXXXX
 * (0700) below that of --directory. They are removed however the program ends: exit, SIGINT,
 * SIGTERM, SIGHUP (only SIGKILL leaves them).
 */
#ifndef PEAKMARK_DISK_SCRATCH_H
#define PEAKMARK_DISK_SCRATCH_H

#include <stdbool.h>

/* Makes the private directory and takes care of its removal. Ends the program when it can't be
 * made. */
void scratch_create(const char *directory);

/* The private directory, for asking about its filesystem. */
int scratch_directory(void);

/*
 * Creates file `index` (0, 1, 2, ... in this order), 0600, never through a link, for reading and
 * writing. *direct asks for O_DIRECT and becomes false when the filesystem refuses it. Ends the
 * program when it can't be created.
 */
int scratch_open(int index, bool *direct);

/*
 * Opens a file that other processes share, and creates it if it is not there. Its caller removes
 * it. Otherwise as scratch_open.
 */
int scratch_open_shared(const char *path, bool *direct);

/*
 * Makes folders peakmark-0, peakmark-1, ... in the directory, for tests that create and unlink
 * files 0 .. files - 1 of each with the functions below. Ends the program when one can't be made.
 */
void scratch_make_folders(int folders, int files);

/* Creates an empty file, 0600, that must not exist. False, with errno set, when it fails. */
bool scratch_create_empty(int folder, int index);

/* Asks for the file's status, and a network filesystem asks its server: is it an empty file? EIO
 * when it is something else. */
bool scratch_is_empty(int folder, int index);
bool scratch_unlink(int folder, int index);

/* Removes files and directory now; also called at exit. */
void scratch_remove(void);

#endif
