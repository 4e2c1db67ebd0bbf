/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Builds messages of Protocol Buffers: https://protobuf.dev/programming-guides/encoding/. A message is
 * its fields in any order, so a long one can be written in pieces, of which only one is in memory.
 */
#ifndef ALLOCPROF_PROTOBUF_H
#define ALLOCPROF_PROTOBUF_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Zeroed is an empty message. To be released. */
struct protobuf {
	unsigned char *bytes;
	size_t size, room;
	bool failed; /* no memory; the bytes are not to be used */
};

/* Adds the field @number, of any of the integer types but sint; @value 0 is its default and takes no
 * bytes. */
void protobuf__add(struct protobuf *message, unsigned int number, __u64 value);
/* Adds a field of type bytes or string, also if it is empty. */
void protobuf__add_bytes(struct protobuf *message, unsigned int number, const void *bytes,
			 size_t size);
/* Adds the message @inner, and empties it. */
void protobuf__add_message(struct protobuf *message, unsigned int number, struct protobuf *inner);
/* Appends an element to a packed list, which is added as a message is. */
void protobuf__append(struct protobuf *packed, __u64 value);
void protobuf__release(struct protobuf *message);

#endif
