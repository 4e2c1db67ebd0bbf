/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads the programs' ring buffer. Its records are handled by the caller's thread, in their order. While that thread
 * does something that takes long, another one takes the records out of the buffer and keeps them, so that the
 * buffer does not run full.
 */
#ifndef ALLOCPROF_RING_READER_H
#define ALLOCPROF_RING_READER_H

#include <stdbool.h>
#include <stddef.h>

struct ring_reader;

/* Handles one record; what is not 0 ends the reading, and is returned if it is negative. */
typedef int ring_reader_handle(void *context, void *record, size_t size);

/* A negative errno where the buffer of the map @ring_fd cannot be mapped. */
int ring_reader__new(int ring_fd, ring_reader_handle *handle, void *context,
		     struct ring_reader **out);
void ring_reader__free(struct ring_reader *reader);

/* Readable when the buffer has records. The reader's. */
int ring_reader__fd(const struct ring_reader *reader);

/* Handles all records that have been kept or are in the buffer. Their number, -ENOMEM where one could not be kept, or
 * what the handler returned. */
int ring_reader__read(struct ring_reader *reader);

/* From now on the other thread reads the buffer, until ring_reader__resume(). */
void ring_reader__step_back(struct ring_reader *reader);
void ring_reader__resume(struct ring_reader *reader);

/* Whether records are kept, of which ring_reader__fd() says nothing. */
bool ring_reader__has_kept(const struct ring_reader *reader);

#endif
