/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Values one after the other in memory, as workers and their parent send them to each other. A reader trusts nothing. */
#ifndef ALLOCPROF_WIRE_H
#define ALLOCPROF_WIRE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Zeroed is empty. After a failure for want of memory all that follows is ignored. */
struct wire_writer {
	char *bytes;
	size_t size, room;
	bool has_failed;
};

void wire__release(struct wire_writer *writer);
void wire__put_u32(struct wire_writer *writer, __u32 value);
void wire__put_u64(struct wire_writer *writer, __u64 value);
void wire__put_bytes(struct wire_writer *writer, const void *bytes, size_t size);
/* @text may be NULL, which a reader tells from "". */
void wire__put_string(struct wire_writer *writer, const char *text);

/* Once something is missing or wrong, @is_bad is set and each further reading returns 0 or NULL. */
struct wire_reader {
	const char *at;
	size_t left;
	bool is_bad;
};

struct wire_reader wire__reader(const void *bytes, size_t size);
__u32 wire__get_u32(struct wire_reader *reader);
__u64 wire__get_u64(struct wire_reader *reader);
/* A number of elements of @least_bytes each at least, which are there. */
size_t wire__get_count(struct wire_reader *reader, size_t least_bytes);
/* Borrowed from the reader's memory, not aligned. */
const void *wire__get_bytes(struct wire_reader *reader, size_t size);
/* A text of less than @max bytes without a NUL inside, borrowed; NULL: that was written, or it is bad. */
const char *wire__get_string(struct wire_reader *reader, size_t max);
/* For what the caller finds wrong. */
void wire__refuse(struct wire_reader *reader);
/* Whether all was good, and nothing is left. */
bool wire__is_read(const struct wire_reader *reader);

#endif
