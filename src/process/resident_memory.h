/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keeps which pages processes had at a moment when they stood still (record --resident). */
#ifndef ALLOCPROF_RESIDENT_MEMORY_H
#define ALLOCPROF_RESIDENT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "resident_pages.h"

struct resident_process {
	pid_t pid;
	struct resident_pages before; /* at the beginning of its recording; empty if not read */
	struct resident_pages now;    /* empty if not read */
	bool is_accounted;	      /* the profile has it */
};

struct resident_memory {
	struct resident_process *processes;
	size_t n, room;
};

/* Returns NULL if there is no memory. */
struct resident_memory *resident_memory__new(void);
void resident_memory__free(struct resident_memory *memory);

/* Reads the memory of the process @pid before its recording begins: what it has then is not
 * ascribed to what is recorded. Fails with the errors of resident_pages__read(). */
int resident_memory__read_before(struct resident_memory *memory, pid_t pid);
/* Reads its memory now; an earlier reading of it is replaced. Fails with the same errors. */
int resident_memory__read(struct resident_memory *memory, pid_t pid);

/* Returns whether the memory of the process was read. */
bool resident_memory__has(const struct resident_memory *memory, pid_t pid);

#endif
