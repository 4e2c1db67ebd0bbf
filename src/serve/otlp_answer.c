// SPDX-License-Identifier: GPL-3.0-or-later
/* Decodes a collector's answer, which may be anything. */
#include "otlp_answer.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "text.h"

enum {
	WIRE_VARINT = 0,
	WIRE_64_BITS = 1,
	WIRE_LENGTH = 2,
	WIRE_32_BITS = 5,
	RESPONSE_PARTIAL_SUCCESS = 1,
	PARTIAL_REJECTED_PROFILES = 1,
	PARTIAL_ERROR_MESSAGE = 2,
	STATUS_MESSAGE = 2,
};

/* The rest of a message. */
struct reader {
	const unsigned char *at, *end;
};

struct field {
	__u64 number;
	__u64 value;	     /* WIRE_VARINT */
	struct reader bytes; /* WIRE_LENGTH; else empty */
};

static bool read_varint(struct reader *reader, __u64 *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
		unsigned char byte = *reader->at++;

		*value |= (__u64)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool skip(struct reader *reader, __u64 n)
{
	if (n > (__u64)(reader->end - reader->at))
		return false;
	reader->at += n;
	return true;
}

/* Returns false at the end, and where the message makes no sense. */
static bool next_field(struct reader *reader, struct field *field)
{
	__u64 key, size;

	*field = (struct field){ 0 };
	if (!read_varint(reader, &key))
		return false;
	field->number = key >> 3;
	switch (key & 7) {
	case WIRE_VARINT:
		return read_varint(reader, &field->value);
	case WIRE_64_BITS:
		return skip(reader, 8);
	case WIRE_32_BITS:
		return skip(reader, 4);
	case WIRE_LENGTH:
		if (!read_varint(reader, &size))
			return false;
		field->bytes.at = reader->at;
		if (!skip(reader, size))
			return false;
		field->bytes.end = reader->at;
		return true;
	default:
		return false;
	}
}

static void read_text(const struct reader *from, struct otlp_answer *answer)
{
	size_t n = from->end - from->at;

	if (n >= sizeof(answer->text))
		n = sizeof(answer->text) - 1;
	if (n)
		memcpy(answer->text, from->at, n);
	answer->text[n] = '\0';
	utf8__clean(answer->text);
}

void otlp_answer__read(const unsigned char *bytes, size_t size, struct otlp_answer *answer)
{
	struct reader reader = { bytes, bytes + size };
	struct field field, inner;

	*answer = (struct otlp_answer){ 0 };
	while (next_field(&reader, &field)) {
		if (field.number != RESPONSE_PARTIAL_SUCCESS)
			continue;
		while (next_field(&field.bytes, &inner)) {
			if (inner.number == PARTIAL_REJECTED_PROFILES)
				answer->rejected = inner.value <= INT64_MAX ? inner.value : 0;
			else if (inner.number == PARTIAL_ERROR_MESSAGE)
				read_text(&inner.bytes, answer);
		}
	}
}

void otlp_answer__read_status(const unsigned char *bytes, size_t size, struct otlp_answer *answer)
{
	struct reader reader = { bytes, bytes + size };
	struct field field;

	*answer = (struct otlp_answer){ 0 };
	while (next_field(&reader, &field))
		if (field.number == STATUS_MESSAGE)
			read_text(&field.bytes, answer);
}
