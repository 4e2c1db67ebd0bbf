/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes messages in the wire format of Protocol Buffers. A generated writer such as protobuf-c's needs a message and all
 * below it in memory as structures. */
#ifndef ALLOCPROF_PROTOBUF_H
#define ALLOCPROF_PROTOBUF_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* A message. Zeroed it is empty. The caller releases it. */
struct protobuf {
	unsigned char *bytes;
	size_t size, room;
	bool failed; /* there was no memory; the bytes must not be used */
};

/* Adds the field @number of any integer type but sint and fixed. A @value of 0 is the default and takes no
 * bytes; nor does the @number 0, which no field has. */
void protobuf__add(struct protobuf *message, unsigned int number, __u64 value);
void protobuf__add_fixed64(struct protobuf *message, unsigned int number, __u64 value);
/* Adds a field of type bytes or string, also if it is empty. */
void protobuf__add_bytes(struct protobuf *message, unsigned int number, const void *bytes,
			 size_t size);
/* Adds the message @inner, and empties @inner. */
void protobuf__add_message(struct protobuf *message, unsigned int number, struct protobuf *inner);
/* Adds all fields of the message @fields, and empties it. */
void protobuf__move(struct protobuf *message, struct protobuf *fields);
/* Appends an element to a packed list, which is added like a message. */
void protobuf__append(struct protobuf *packed, __u64 value);
void protobuf__release(struct protobuf *message);

#endif
