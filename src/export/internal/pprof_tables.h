/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes the tables of a pprof profile, to which its samples refer, and those of OpenTelemetry's profiles, which come of
 * them. Numbers are given as samples come, so that samples can be written first, one by one, and then the tables that they
 * need.
 *
 * The field numbers are those of the formats, which
 * https://github.com/google/pprof/blob/main/proto/profile.proto and
 * https://github.com/open-telemetry/opentelemetry-proto (profiles/v1development) document.
 */
#ifndef ALLOCPROF_PPROF_TABLES_H
#define ALLOCPROF_PPROF_TABLES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "export_internal.h"
#include "hash_table.h"
#include "protobuf.h"

struct export_input;

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

/* Both formats say by these types what a number counts. */
struct pprof_value_type {
	const char *type, *unit;
};

#define PPROF_SAMPLE_TYPES 4
#define PPROF_WITHOUT_LIVE 2 /* so many of them have recordings without --live */
extern const struct pprof_value_type pprof_sample_types[PPROF_SAMPLE_TYPES], pprof_period_type;

struct pprof_tables;

/* The fields of a format; 0: it has no such field. */
struct pprof_fields {
	/* Tables. */
	unsigned int locations, functions, mappings, strings;
	bool has_null; /* the first element of each table stands for none; ids count from 1 all the same */
	/* Those of their elements. */
	unsigned int location_id, location_mapping, location_address, location_lines;
	unsigned int function_id, function_name, function_symbol, function_file;
	unsigned int mapping_id, mapping_start, mapping_limit, mapping_file;
	/* Adds what only this format has of a file. Returns 0 or -ENOMEM. */
	int (*add_to_mapping)(struct pprof_tables *tables, const struct profile_module *module,
			      const struct pprof_mapping *mapping, struct protobuf *message);
};

struct pprof_tables {
	const struct export_input *input;
	const struct pprof_fields *fields;
	void *context;		   /* the caller's, for add_to_mapping */
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
int pprof_tables__init(struct pprof_tables *tables, const struct export_input *input,
		       const struct pprof_fields *fields);
/* Stores pprof's number of @text, which must outlive the tables. Returns 0 or -ENOMEM. */
int pprof_tables__string(struct pprof_tables *tables, const char *text, __u64 *index);
/* Adds the type as the field @field of @message. Returns 0 or -ENOMEM. */
int pprof_tables__value_type(struct pprof_tables *tables, const struct pprof_value_type *type,
			     struct protobuf *message, unsigned int field);
/* Calls @each with the ids of the sample's locations, leaf first: a location stands for a frame, of which inlined ones
 * are lines. Returns 0, -ENOMEM or what @each does. */
int pprof_tables__each_location(struct pprof_tables *tables, const struct export_sample *sample,
				int (*each)(void *context, __u64 id), void *context);
/* Takes a message with fields of the format, and empties it. */
typedef int (*pprof_write_fn)(struct protobuf *piece, void *context);
/*
 * Calls @write with each location, function and mapping, or string, as a message with only this
 * field. Strings come last, since the others add some. Returns 0, -ENOMEM or the result of @write.
 */
int pprof_tables__write_places(struct pprof_tables *tables, pprof_write_fn write, void *context);
int pprof_tables__write_strings(struct pprof_tables *tables, pprof_write_fn write, void *context);
void pprof_tables__release(struct pprof_tables *tables);

#endif
