/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes the unwind tables of files and brings them to the programs, on a thread of its own, so that events are
 * read meanwhile. No file's is made twice; what hits wait for comes first, then what was hit, then the others.
 */
#ifndef ALLOCPROF_TABLE_LOADER_H
#define ALLOCPROF_TABLE_LOADER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "unwind_tables.h"

struct table_cache;
struct table_loader;

struct table_loader_options {
	struct unwind_tables *tables; /* taken over; NULL where there was no memory */
	const __u32
		*awaited; /* module whose table a hit waits for, as the programs tell; or NULL */
	struct table_cache *cache; /* taken over; NULL: none */
};

/* A file; all of it is the caller's and stays until the loader is freed. */
struct table_file {
	int fd; /* -1: it could not be opened, so there is no table */
	const char *path;
	const char *build_id;	   /* "" where it has none */
	bool has_entry;		   /* it has an entry point: */
	__u64 entry, entry_offset; /* its vaddr, and where that is in the file */
};

/* NULL without memory. What is taken over is so in any case. */
struct table_loader *table_loader__new(const struct table_loader_options *options);

/* Waits for no more than what is in the making. Accepts NULL. */
void table_loader__free(struct table_loader *loader);

/* Its table is made when it is needed. *@number is what the others know it by. 0 or -ENOMEM. */
int table_loader__add(struct table_loader *loader, const struct table_file *file, size_t *number);

/* Lets the programs use the file's table for @module, as soon as there is one. @hit: a hit was seen in it. 0 or
 * -ENOMEM. */
int table_loader__assign(struct table_loader *loader, size_t number, __u32 module, bool hit);

/* Returns when all that was asked for so far is there. */
void table_loader__wait(struct table_loader *loader);

/* Whether there is nothing to do, or something was done since the last call. */
bool table_loader__progresses(struct table_loader *loader);

/* No program runs any more: only what table_loader__place() asks for is made from now on. */
void table_loader__finish(struct table_loader *loader);

/* Where the file's tables are; waits for it. -EAGAIN in a child of the process that made @loader, where it was
 * not known at the fork. */
int table_loader__place(struct table_loader *loader, size_t number, struct unwind_place *place);

#endif
