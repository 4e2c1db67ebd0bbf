/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes values and structs as bytes, which workers and their parent send each other, and reads them again.
 */
#ifndef ALLOCPROF_WIRE_H
#define ALLOCPROF_WIRE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* A reader trusts nothing. */

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

/* How a field of a struct is sent. What pointers point to is the struct's own; a reader makes copies with malloc(3). */
enum wire_kind {
	WIRE_END,
	WIRE_FIELD_NUMBER,  /* its bytes, which may have any value */
	WIRE_FIELD_FLAG,    /* a bool */
	WIRE_FIELD_TEXT,    /* an array of characters: a text that fits */
	WIRE_FIELD_STRING,  /* a pointer to a text of less than max bytes */
	WIRE_FIELD_ARRAY,   /* a pointer to numbers, and their count */
	WIRE_FIELD_STRUCTS, /* a pointer to structs, and their count */
};

struct wire_field {
	enum wire_kind kind;
	bool may_be_null; /* a pointer to a text; that to no elements is NULL */
	size_t at, size;  /* in the struct; of elements: of one */
	size_t max;	  /* bytes of a text with its NUL, or elements */
	size_t count_at, count_size;
	const struct wire_struct *of; /* the elements */
};

/* The fields by which a struct is written and read; a field that is not listed stays zero in the reader. @context: the argument of
 * the functions below. */
struct wire_struct {
	/* put() and get() write and read what follows the fields; NULL: there is nothing. */
	void (*put)(struct wire_writer *writer, const void *object, const void *context);
	int (*get)(struct wire_reader *reader, void *object, const void *context);
	/* Whether what was read can be true; NULL: it can. */
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

/* For the table: { WIRE_NUMBER(struct site, names) }. */
#define WIRE_NUMBER(type, member)	      WIRE_FIELD(NUMBER, type, member, WIRE_SIZE(type, member))
#define WIRE_FLAG(type, member)		      WIRE_FIELD(FLAG, type, member, WIRE_SIZE(type, member))
#define WIRE_TEXT(type, member)		      WIRE_FIELD(TEXT, type, member, 0), .max = WIRE_SIZE(type, member)
#define WIRE_STRING(type, member, bytes)      WIRE_FIELD(STRING, type, member, 0), .max = (bytes)
#define WIRE_OPTIONAL(type, member, bytes)    WIRE_STRING(type, member, bytes), .may_be_null = true
#define WIRE_ARRAY(type, member, count, most) WIRE_ELEMENTS(ARRAY, type, member, count, most)
#define WIRE_STRUCTS(type, member, count, most, element)                                           \
	WIRE_ELEMENTS(STRUCTS, type, member, count, most), .of = (element)
/* An element that is a pointer to a text. */
#define WIRE_STRING_ELEMENT(bytes)                                                                 \
	{                                                                                          \
		.fields = { { .kind = WIRE_FIELD_STRING, .max = (bytes) } }                        \
	}

void wire__put_struct(struct wire_writer *writer, const struct wire_struct *type,
		      const void *object, const void *context);
/* Fills @object, which is zeroed, and to be released also after an error: -EPROTO, or -ENOMEM. */
int wire__get_struct(struct wire_reader *reader, const struct wire_struct *type, void *object,
		     const void *context);

#endif
