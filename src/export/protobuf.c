// SPDX-License-Identifier: GPL-3.0-or-later
/* Encodes messages of protocol buffers, field by field. */
#include "protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_64_BITS = 1,
	WIRE_LENGTH = 2,
};

static void append(struct protobuf *message, const void *bytes, size_t size)
{
	if (!size)
		return;
	if (message->failed ||
	    array__reserve(&message->bytes, &message->room, message->size + size, 1)) {
		message->failed = true;
		return;
	}
	memcpy(message->bytes + message->size, bytes, size);
	message->size += size;
}

void protobuf__append(struct protobuf *packed, __u64 value)
{
	unsigned char bytes[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[n++] = 0x80 | (value & 0x7f);
	bytes[n++] = value;
	append(packed, bytes, n);
}

static void append_key(struct protobuf *message, unsigned int number, enum wire_type type)
{
	protobuf__append(message, number << 3 | type);
}

void protobuf__add(struct protobuf *message, unsigned int number, __u64 value)
{
	if (!value || !number)
		return;
	append_key(message, number, WIRE_VARINT);
	protobuf__append(message, value);
}

void protobuf__add_bytes(struct protobuf *message, unsigned int number, const void *bytes,
			 size_t size)
{
	append_key(message, number, WIRE_LENGTH);
	protobuf__append(message, size);
	append(message, bytes, size);
}

void protobuf__add_fixed64(struct protobuf *message, unsigned int number, __u64 value)
{
	unsigned char bytes[8];

	if (!value)
		return;
	append_key(message, number, WIRE_64_BITS);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = value >> 8 * i;
	append(message, bytes, sizeof(bytes));
}

void protobuf__add_message(struct protobuf *message, unsigned int number, struct protobuf *inner)
{
	message->failed |= inner->failed;
	protobuf__add_bytes(message, number, inner->bytes, inner->size);
	inner->size = 0;
}

void protobuf__move(struct protobuf *message, struct protobuf *fields)
{
	message->failed |= fields->failed;
	append(message, fields->bytes, fields->size);
	fields->size = 0;
}

void protobuf__release(struct protobuf *message)
{
	free(message->bytes);
}
