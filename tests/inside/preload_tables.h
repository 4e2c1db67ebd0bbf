/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compiles the unwind tables that processes wait for, on a thread of its own. */
#ifndef ALLOCPROF_PRELOAD_TABLES_H
#define ALLOCPROF_PRELOAD_TABLES_H

#include <linux/types.h>
#include <stddef.h>

struct preload;
struct preload_tables;

/* Begins. The caller ends it by preload_tables__free(), before @preload is freed. */
int preload_tables__new(struct preload *preload, struct preload_tables **out);

/* Has the tables of @library and of the command's program compiled, before it is executed. Other libraries are
 * compiled when they are met. */
void preload_tables__announce_command(struct preload_tables *tables, char *const *argv,
				      const char *library);

/* Lets the thread begin, and later ends it. Between the two @preload is the thread's. */
int preload_tables__start(struct preload_tables *tables);
void preload_tables__stop(struct preload_tables *tables);

/* A module's file: its path, and where @offset of the file is in its address space. NULL if it could not be
 * opened. */
const char *preload_tables__path(const struct preload_tables *tables, __u32 module);
__u64 preload_tables__vaddr(const struct preload_tables *tables, __u32 module, __u64 offset);

/* Accepts NULL. */
void preload_tables__free(struct preload_tables *tables);

#endif
