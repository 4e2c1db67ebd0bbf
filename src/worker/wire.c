// SPDX-License-Identifier: GPL-3.0-or-later
#include "wire.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

/* Stands for the size of a text that is NULL. */
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

/* A struct that is written or read. */
struct passage {
	struct wire_writer *to; /* NULL: the struct is read */
	struct wire_reader *from;
	const void *context;
};

static int pass_struct(const struct passage *passage, const struct wire_struct *type, char *object);

static int pass_bytes(const struct passage *passage, char *bytes, size_t size)
{
	const void *from;

	if (passage->to) {
		wire__put_bytes(passage->to, bytes, size);
		return 0;
	}
	from = wire__get_bytes(passage->from, size);
	if (from && size)
		memcpy(bytes, from, size);
	return from ? 0 : -EPROTO;
}

static int pass_flag(const struct passage *passage, char *at)
{
	int err = pass_bytes(passage, at, sizeof(bool));

	if (err || passage->to || (unsigned char)*at <= 1)
		return err;
	*at = 0;
	return -EPROTO;
}

static int pass_text(const struct passage *passage, const struct wire_field *field, char *at)
{
	char *string = at;
	const char *text;

	if (passage->to) {
		if (field->kind == WIRE_FIELD_STRING)
			memcpy(&string, at, sizeof(string));
		wire__put_string(passage->to, string);
		return 0;
	}
	text = wire__get_string(passage->from, field->max);
	if (!text)
		return field->may_be_null && !passage->from->is_bad ? 0 : -EPROTO;
	if (field->kind == WIRE_FIELD_TEXT) {
		strcpy(at, text);
		return 0;
	}
	string = strdup(text);
	memcpy(at, &string, sizeof(string));
	return string ? 0 : -ENOMEM;
}

/* Writes the number of elements, or reads it and makes room for the elements in @object. */
static int pass_count(const struct passage *passage, const struct wire_field *field, char *object,
		      size_t *n)
{
	char *array;

	/* This works for smaller counts, too, since the lowest byte comes first (little-endian). */
	memcpy(n, object + field->count_at, field->count_size);
	if (passage->to) {
		wire__put_u64(passage->to, *n);
		return 0;
	}
	*n = wire__get_count(passage->from, field->kind == WIRE_FIELD_ARRAY ? field->size : 1);
	if (passage->from->is_bad || *n > field->max)
		return -EPROTO;
	array = *n ? calloc(*n, field->size) : NULL;
	if (*n && !array)
		return -ENOMEM;
	memcpy(object + field->at, &array, sizeof(array));
	memcpy(object + field->count_at, n, field->count_size);
	return 0;
}

static int pass_elements(const struct passage *passage, const struct wire_field *field,
			 char *object)
{
	size_t n = 0;
	int err = pass_count(passage, field, object, &n);
	char *array;

	memcpy(&array, object + field->at, sizeof(array));
	if (!err && field->kind == WIRE_FIELD_ARRAY)
		return pass_bytes(passage, array, n * field->size);
	for (size_t i = 0; i < n && !err; i++)
		err = pass_struct(passage, field->of, array + i * field->size);
	return err;
}

static int pass_field(const struct passage *passage, const struct wire_field *field, char *object)
{
	switch (field->kind) {
	case WIRE_FIELD_NUMBER:
		return pass_bytes(passage, object + field->at, field->size);
	case WIRE_FIELD_FLAG:
		return pass_flag(passage, object + field->at);
	case WIRE_FIELD_TEXT:
	case WIRE_FIELD_STRING:
		return pass_text(passage, field, object + field->at);
	default:
		return pass_elements(passage, field, object);
	}
}

static int pass_struct(const struct passage *passage, const struct wire_struct *type, char *object)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(type->fields) && type->fields[i].kind && !err; i++)
		err = pass_field(passage, &type->fields[i], object);
	if (passage->to && type->put)
		type->put(passage->to, object, passage->context);
	if (!passage->to && !err && type->get)
		err = type->get(passage->from, object, passage->context);
	if (!passage->to && !err && type->is_sound && !type->is_sound(object, passage->context))
		err = -EPROTO;
	return err;
}

void wire__put_struct(struct wire_writer *writer, const struct wire_struct *type,
		      const void *object, const void *context)
{
	const struct passage passage = { .to = writer, .context = context };

	/* The cast is safe: with passage.to set, pass_struct() only reads the object. */
	pass_struct(&passage, type, (char *)object);
}

int wire__get_struct(struct wire_reader *reader, const struct wire_struct *type, void *object,
		     const void *context)
{
	const struct passage passage = { .from = reader, .context = context };
	int err = pass_struct(&passage, type, object);

	if (err == -EPROTO)
		wire__refuse(reader);
	return err;
}
