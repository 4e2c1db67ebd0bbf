/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads the programs' ring buffer. The caller's thread handles the records in order. While it does
 * something that takes long, another thread moves the records from the buffer into memory, so that
 * the buffer does not run full.
 */
#ifndef ALLOCPROF_RING_READER_H
#define ALLOCPROF_RING_READER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct ring_reader;

/* Handles one record. A negative errno ends the reading and is returned. */
typedef int ring_reader_handle(void *context, void *record, size_t size);

/* @memory_bytes: the machine's memory, of which records that are kept may take a share. Returns a
 * negative errno if the buffer of map @ring_fd cannot be mapped. */
int ring_reader__new(int ring_fd, __u64 memory_bytes, ring_reader_handle *handle, void *context,
		     struct ring_reader **out);
void ring_reader__free(struct ring_reader *reader);

/* Returns a descriptor that is readable when the buffer has records. It belongs to the reader. */
int ring_reader__fd(const struct ring_reader *reader);

/* Handles all records that were kept or are in the buffer. Returns how many, -ENOMEM if one could
 * not be kept, or the handler's error. */
int ring_reader__read(struct ring_reader *reader);

/* Lets the other thread read the buffer until ring_reader__resume(). */
void ring_reader__step_back(struct ring_reader *reader);
void ring_reader__resume(struct ring_reader *reader);

/* Returns whether records were kept, which do not make ring_reader__fd() readable. */
bool ring_reader__has_kept(const struct ring_reader *reader);

#endif
