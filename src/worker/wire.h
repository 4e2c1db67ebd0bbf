/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes values and structs as bytes, which workers and their parent send each other, and reads them again.
 */
#ifndef ALLOCPROF_WIRE_H
#define ALLOCPROF_WIRE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* A reader trusts nothing that it reads. */

/* Zeroed it is empty. After memory ran out all further values are ignored. */
struct wire_writer {
	char *bytes;
	size_t size, room;
	bool has_failed;
};

void wire__release(struct wire_writer *writer);
void wire__put_u32(struct wire_writer *writer, __u32 value);
void wire__put_u64(struct wire_writer *writer, __u64 value);
void wire__put_bytes(struct wire_writer *writer, const void *bytes, size_t size);
/* Writes @text, which may be NULL; a reader can tell that from "". */
void wire__put_string(struct wire_writer *writer, const char *text);

/* Once something is missing or wrong, @is_bad is set, and each further read returns 0 or NULL. */
struct wire_reader {
	const char *at;
	size_t left;
	bool is_bad;
};

struct wire_reader wire__reader(const void *bytes, size_t size);
__u32 wire__get_u32(struct wire_reader *reader);
__u64 wire__get_u64(struct wire_reader *reader);
/* Reads a number of elements, and checks that as many of at least @least_bytes each can follow. */
size_t wire__get_count(struct wire_reader *reader, size_t least_bytes);
/* Returns the next @size bytes, which belong to the reader's memory and are not aligned. */
const void *wire__get_bytes(struct wire_reader *reader, size_t size);
/* Returns the next text, which has less than @max bytes and no NUL inside, and belongs to the
 * reader's memory. Returns NULL if NULL was written, or the text is bad. */
const char *wire__get_string(struct wire_reader *reader, size_t max);
/* Sets @is_bad, for a caller that finds a value wrong. */
void wire__refuse(struct wire_reader *reader);
/* Returns whether nothing was missing or wrong, and all bytes have been read. */
bool wire__is_read(const struct wire_reader *reader);

/* Says how a field of a struct is sent. The struct owns the memory that its pointers refer to; a
 * reader allocates it with malloc(3). */
enum wire_kind {
	WIRE_END,
	WIRE_FIELD_NUMBER, /* a number that may have any value */
	WIRE_FIELD_FLAG,   /* a bool */
	WIRE_FIELD_TEXT,   /* an array of characters with a text that fits into it */
	WIRE_FIELD_STRING, /* a pointer to a text of less than @max bytes */
	/* A pointer to an array of numbers, with their count in another field. */
	WIRE_FIELD_ARRAY,
	/* A pointer to an array of structs, with their count in another field. */
	WIRE_FIELD_STRUCTS,
};

struct wire_field {
	enum wire_kind kind;
	bool may_be_null; /* for a pointer to a text; a pointer to no elements always is NULL */
	size_t at, size;  /* offset in the struct; size of the field, or of one element */
	size_t max;	  /* largest size of a text with its NUL, in bytes, or number of elements */
	size_t count_at, count_size;
	const struct wire_struct *of; /* type of the elements */
};

/* The fields by which a struct is written and read. A field that is not listed stays zero in the
 * reader. The functions below get the caller's @context. */
struct wire_struct {
	/* Write and read values that follow the fields; NULL: there are none. */
	void (*put)(struct wire_writer *writer, const void *object, const void *context);
	int (*get)(struct wire_reader *reader, void *object, const void *context);
	/* Returns whether the values that were read can be true; NULL: any can. */
	bool (*is_sound)(const void *object, const void *context);
	struct wire_field fields[24];
};

#define WIRE_SIZE(type, member) sizeof(((type *)0)->member)
#define WIRE_FIELD(field_kind, type, member, bytes)                                                \
	.kind = WIRE_FIELD_##field_kind, .at = offsetof(type, member), .size = (bytes)
#define WIRE_ELEMENTS(field_kind, type, member, count, most)                                       \
	WIRE_FIELD(field_kind, type, member, WIRE_SIZE(type, member[0])),                          \
		.max = (most), .count_at = offsetof(type, count),                                  \
		.count_size = WIRE_SIZE(type, count)

/* For the table of fields: { WIRE_NUMBER(struct site, names) }. */
#define WIRE_NUMBER(type, member)	      WIRE_FIELD(NUMBER, type, member, WIRE_SIZE(type, member))
#define WIRE_FLAG(type, member)		      WIRE_FIELD(FLAG, type, member, WIRE_SIZE(type, member))
#define WIRE_TEXT(type, member)		      WIRE_FIELD(TEXT, type, member, 0), .max = WIRE_SIZE(type, member)
#define WIRE_STRING(type, member, bytes)      WIRE_FIELD(STRING, type, member, 0), .max = (bytes)
#define WIRE_OPTIONAL(type, member, bytes)    WIRE_STRING(type, member, bytes), .may_be_null = true
#define WIRE_ARRAY(type, member, count, most) WIRE_ELEMENTS(ARRAY, type, member, count, most)
#define WIRE_STRUCTS(type, member, count, most, element)                                           \
	WIRE_ELEMENTS(STRUCTS, type, member, count, most), .of = (element)
/* Type of an element that is a pointer to a text. */
#define WIRE_STRING_ELEMENT(bytes)                                                                 \
	{                                                                                          \
		.fields = { { .kind = WIRE_FIELD_STRING, .max = (bytes) } }                        \
	}

void wire__put_struct(struct wire_writer *writer, const struct wire_struct *type,
		      const void *object, const void *context);
/* Reads a struct of @type into @object, which is zeroed and which the caller releases, also after
 * an error. Returns 0, -EPROTO or -ENOMEM. */
int wire__get_struct(struct wire_reader *reader, const struct wire_struct *type, void *object,
		     const void *context);

#endif
