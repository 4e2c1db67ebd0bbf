// SPDX-License-Identifier: GPL-3.0-or-later
#include "wire.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

/* The size of a text that is NULL. */
#define NO_TEXT UINT32_MAX

void wire__release(struct wire_writer *writer)
{
	free(writer->bytes);
	*writer = (struct wire_writer){ 0 };
}

void wire__put_bytes(struct wire_writer *writer, const void *bytes, size_t size)
{
	if (writer->has_failed ||
	    array__reserve(&writer->bytes, &writer->room, writer->size + size, 1)) {
		writer->has_failed = true;
		return;
	}
	if (size)
		memcpy(writer->bytes + writer->size, bytes, size);
	writer->size += size;
}

void wire__put_u32(struct wire_writer *writer, __u32 value)
{
	wire__put_bytes(writer, &value, sizeof(value));
}

void wire__put_u64(struct wire_writer *writer, __u64 value)
{
	wire__put_bytes(writer, &value, sizeof(value));
}

void wire__put_string(struct wire_writer *writer, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;

	if (!text || size >= NO_TEXT) {
		wire__put_u32(writer, NO_TEXT);
		return;
	}
	wire__put_u32(writer, size);
	wire__put_bytes(writer, text, size);
}

struct wire_reader wire__reader(const void *bytes, size_t size)
{
	return (struct wire_reader){ .at = bytes, .left = size };
}

void wire__refuse(struct wire_reader *reader)
{
	reader->is_bad = true;
	reader->left = 0;
}

const void *wire__get_bytes(struct wire_reader *reader, size_t size)
{
	const char *bytes = reader->at;

	if (reader->is_bad || size > reader->left) {
		wire__refuse(reader);
		return NULL;
	}
	reader->at += size;
	reader->left -= size;
	return bytes;
}

__u32 wire__get_u32(struct wire_reader *reader)
{
	const void *bytes = wire__get_bytes(reader, sizeof(__u32));
	__u32 value = 0;

	if (bytes)
		memcpy(&value, bytes, sizeof(value));
	return value;
}

__u64 wire__get_u64(struct wire_reader *reader)
{
	const void *bytes = wire__get_bytes(reader, sizeof(__u64));
	__u64 value = 0;

	if (bytes)
		memcpy(&value, bytes, sizeof(value));
	return value;
}

size_t wire__get_count(struct wire_reader *reader, size_t least_bytes)
{
	__u64 n = wire__get_u64(reader);

	if (n <= reader->left / least_bytes)
		return n;
	wire__refuse(reader);
	return 0;
}

const char *wire__get_string(struct wire_reader *reader, size_t max)
{
	__u32 size = wire__get_u32(reader);
	const char *text;

	if (reader->is_bad || size == NO_TEXT)
		return NULL;
	text = size <= max ? wire__get_bytes(reader, size) : NULL;
	if (text && size && memchr(text, '\0', size) == text + size - 1)
		return text;
	wire__refuse(reader);
	return NULL;
}

bool wire__is_read(const struct wire_reader *reader)
{
	return !reader->is_bad && !reader->left;
}
