/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes the tables of a pprof profile, to which its samples refer. Numbers are given as samples
 * come, so that samples can be written first, one by one, and then the tables that they need.
 *
 * The field numbers are those of the format, which
 * https://github.com/google/pprof/blob/main/proto/profile.proto documents.
 */
#ifndef ALLOCPROF_PPROF_TABLES_H
#define ALLOCPROF_PPROF_TABLES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "export_internal.h"
#include "hash_table.h"

struct export_input;

/* A message. Zeroed it is empty. The caller releases it. */
struct protobuf {
	unsigned char *bytes;
	size_t size, room;
	bool failed; /* there was no memory; the bytes must not be used */
};

/* Adds the field @number of any integer type but sint. A @value of 0 is the default and takes no
 * bytes. */
void protobuf__add(struct protobuf *message, unsigned int number, __u64 value);
/* Adds the message @inner, and empties @inner. */
void protobuf__add_message(struct protobuf *message, unsigned int number, struct protobuf *inner);
/* Appends an element to a packed list, which is added like a message. */
void protobuf__append(struct protobuf *packed, __u64 value);
void protobuf__release(struct protobuf *message);

/* Fields of Profile. */
enum {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING_TABLE = 6,
	PPROF_TIME_NANOS = 9,
	PPROF_DURATION_NANOS = 10,
	PPROF_PERIOD_TYPE = 11,
	PPROF_PERIOD = 12,
	PPROF_COMMENT = 13,
	PPROF_DEFAULT_SAMPLE_TYPE = 14,
};

/* Neighbouring locations of one frame that a stack shows. */
struct pprof_location {
	__u32 first, n; /* both 0: no frame is known */
};

/* Numbers of strings. */
struct pprof_function {
	__u32 name, symbol, file;
};

/* A file in an address space in which each file has a range of its own. */
struct pprof_mapping {
	__u32 id; /* 1: the main program */
	__u64 start, limit;
	bool has_functions, has_files, has_lines, has_inlined;
};

struct pprof_tables {
	const struct export_input *input;
	struct string_ids strings; /* texts by number; 1 is pprof's string 0, "" */
	struct pprof_location *locations;
	size_t n_locations, locations_room;
	struct pprof_function *functions;
	size_t n_functions, functions_room;
	struct hash_table location_index, function_index;
	__u64 seed;
	struct pprof_mapping *mappings; /* mappings by module id - 1 */
	__u32 *by_mapping;		/* module ids, by mapping id - 1 */
};

/* Makes empty tables. Returns 0 or -ENOMEM; the caller releases them in either case. */
int pprof_tables__init(struct pprof_tables *tables, const struct export_input *input);
/* Stores pprof's number of @text, which must outlive the tables. Returns 0 or -ENOMEM. */
int pprof_tables__string(struct pprof_tables *tables, const char *text, __u64 *index);
/* Stores the id of the location that stands for the @n neighbouring locations at @first. Returns 0
 * or -ENOMEM. */
int pprof_tables__location(struct pprof_tables *tables, __u32 first, __u32 n, __u64 *id);
/*
 * Calls @write with each location, function, mapping and string, as a message with only this
 * field. Returns 0, -ENOMEM or the result of @write.
 */
int pprof_tables__write(struct pprof_tables *tables,
			int (*write)(struct protobuf *piece, void *context), void *context);
void pprof_tables__release(struct pprof_tables *tables);

#endif
