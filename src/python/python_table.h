/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the table of locations that code objects of CPython have since 3.11, and writes the interpreter's strings as UTF-8. */
#ifndef ALLOCPROF_PYTHON_TABLE_H
#define ALLOCPROF_PYTHON_TABLE_H

#include <linux/types.h>
#include <stdbool.h>

struct python_table {
	/* Reads the word at an aligned address. Returns false if it cannot be read. */
	bool (*load)(const void *context, __u64 address, __u64 *word);
	const void *context;
	__u64 address;
	__u32 n_bytes;
};

/* Finds the line at a position, which is 2 behind the offset of an instruction; 0: of the def. Stores how many bytes of the table decide
 * about it: those up to the first of the entries that follow one another with this line. Returns 0 if there is no line. */
__u32 python_table__line(const struct python_table *table, __u32 first_line, __u32 position,
			 __u32 *prefix);

/* Appends a character in UTF-8. Returns the number of bytes; 0: there is no room. */
__u32 python_text__put(__u32 character, char *out, __u32 room);

#endif
