/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The functions of a Go program as Go's own runtime knows them, from the section .gopclntab, which `strip` and
 * -ldflags=-s leave in: names, and how far sp lies below the caller's frame at each address. The format is that of
 * Go 1.18 and of 1.20 and later, runtime/symtab.go.
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
	__u64 text_start;		/* vaddr that functions' addresses count from */
	__u64 names, depths, functions; /* where these parts begin in the section */
	__u32 count;			/* of functions */
	bool has_start_line;		/* Go 1.20 and later */
};

struct go_function {
	__u64 lo, hi;	  /* vaddr; hi is where the next function begins */
	const char *name; /* borrowed from the Elf, not ended by its size */
	size_t name_size;
	const __u8 *depths; /* to be read by go_depths__next(); NULL: there are none */
	const __u8 *depths_end;
	bool outermost; /* nothing called it, as runtime.goexit */
};

/* Whether the file is a Go program or library, of any version. */
bool go_table__is_go(Elf *elf);

/* -ENOENT: the file has no such table, or one of another format. @elf is to outlive the table. */
int go_table__open(Elf *elf, struct go_table *out);

/* The @index-th function by address. False where the table is damaged there. */
bool go_table__function(const struct go_table *table, __u32 index, struct go_function *out);

/* Addresses [@lo, @hi) of a function and how many bytes it has pushed there. */
struct go_depths {
	const __u8 *at, *end;
	__u64 lo, hi;
	__s64 depth_bytes;
	bool began;
};

struct go_depths go_depths__begin(const struct go_function *function);

/* Sets the next addresses and their depth. False at the end, and where the table is damaged. */
bool go_depths__next(struct go_depths *depths);

#endif
