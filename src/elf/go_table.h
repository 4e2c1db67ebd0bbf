/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads .gopclntab, the table of functions that Go's runtime uses and that `strip` and -ldflags=-s
 * keep: names, and by pc how far sp is below the caller's frame. Formats of Go 1.18, and of 1.20
 * and later (runtime/symtab.go).
 */
#ifndef ALLOCPROF_GO_TABLE_H
#define ALLOCPROF_GO_TABLE_H

#include <gelf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct go_table {
	const __u8 *data; /* the section, borrowed from the Elf */
	size_t size;
	__u64 text_start;		/* vaddr; functions' addresses are relative to it */
	__u64 names, depths, functions; /* offsets of these parts in the section */
	__u32 count;			/* number of functions */
	bool has_start_line;		/* Go 1.20 and later */
};

struct go_function {
	__u64 lo, hi;	  /* vaddr; hi is the start of the next function */
	const char *name; /* borrowed from the Elf, NUL-terminated */
	size_t name_size;
	const __u8 *depths; /* for go_depths__next(); NULL: none */
	const __u8 *depths_end;
	bool outermost; /* has no caller, such as runtime.goexit */
};

/* Returns whether the file is a Go program or library, of any version. */
bool go_table__is_go(Elf *elf);

/* Opens the table of @elf, which must outlive it. Fails with -ENOENT if there is no such table, or
 * its format is unknown. */
int go_table__open(Elf *elf, struct go_table *out);

/* Stores the function number @index by address. Returns false if the table is damaged there. */
bool go_table__function(const struct go_table *table, __u32 index, struct go_function *out);

/* A range [@lo, @hi) of a function's code, and how many bytes it has pushed there. */
struct go_depths {
	const __u8 *at, *end;
	__u64 lo, hi;
	__s64 depth_bytes;
	bool began;
};

struct go_depths go_depths__begin(const struct go_function *function);

/* Moves on to the next range. Returns false at the end, and if the table is damaged. */
bool go_depths__next(struct go_depths *depths);

#endif
