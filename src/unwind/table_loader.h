/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Builds unwind tables and loads them into the BPF maps, in a thread of its own, so that events
 * are read meanwhile. Each file's table is built once. Tables for which a probe waits come first,
 * then files with a hit, then others.
 */
#ifndef ALLOCPROF_TABLE_LOADER_H
#define ALLOCPROF_TABLE_LOADER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "unwind_tables.h"

struct parser;
struct table_cache;
struct table_loader;

struct table_loader_options {
	struct unwind_tables *tables; /* taken over; NULL: the caller had no memory for them */
	/* Number of a module for whose table a probe waits, written by the programs; or NULL. */
	const __u32 *awaited;
	struct table_cache *cache; /* taken over; NULL: none */
	struct parser *parser;	   /* compiles the tables; taken over; NULL: there will be none */
};

/* A file. The caller owns all fields, which must outlive the loader. */
struct table_file {
	int fd; /* -1: could not be opened, so there is no table */
	const char *path;
	const char *build_id;	   /* "" if it has none */
	bool has_entry;		   /* has an entry point */
	__u64 entry, entry_offset; /* vaddr and file offset of the entry point */
};

/* Returns NULL if there is no memory. Takes over the options' objects even then. */
struct table_loader *table_loader__new(const struct table_loader_options *options);

/* Waits only for the current job. Accepts NULL. */
void table_loader__free(struct table_loader *loader);

/* Registers a file, whose table is built when it is needed. *@number identifies it in the other
 * calls. Returns 0 or -ENOMEM. */
int table_loader__add(struct table_loader *loader, const struct table_file *file, size_t *number);

/*
 * Assigns the file's table to @module when it is built. @hit: a probe in the file was hit. Returns
 * 0 or -ENOMEM.
 */
int table_loader__assign(struct table_loader *loader, size_t number, __u32 module, bool hit);

/* Returns when all requested tables are loaded. */
void table_loader__wait(struct table_loader *loader);

/* Returns whether the loader is idle, or has finished a job since the last call. */
bool table_loader__progresses(struct table_loader *loader);

/* To be called when no program runs any more: from now on only table_loader__find() builds tables. */
void table_loader__finish(struct table_loader *loader);

/* Waits for the file's table and stores where it is. Fails with -EAGAIN in a forked child if that
 * was not known at the fork. */
int table_loader__find(struct table_loader *loader, size_t number, struct loaded_table *loaded);

#endif
