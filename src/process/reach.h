/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keeps which blocks of processes could be reached at a moment when they stood still (record
 * --reachable). */
#ifndef ALLOCPROF_REACH_H
#define ALLOCPROF_REACH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "reach_blocks.h"
#include "reach_roots.h"
#include "reach_scan.h"

/* The blocks of one process, and their classes. */
struct reach_process {
	pid_t pid;
	const void *owner; /* what knows the blocks: a live_collector */
	__u32 space;	   /* number of the address space there */
	struct reach_blocks blocks;
	struct reach_ranges own; /* memory of allocprof's in the process */
	__u8 *classes;
	struct reach_figures figures;
	char why[128]; /* why nothing is known of it; "" if something is */
};

struct reach {
	struct reach_process *processes;
	size_t n, room;
};

/* Returns NULL if there is no memory. */
struct reach *reach__new(void);
void reach__free(struct reach *reach);
/* Forgets all processes. */
void reach__clear(struct reach *reach);

void reach_process__release(struct reach_process *process);

/*
 * Searches the memory of @process->pid, all threads of which are stopped and traced by this process
 * (@tids), for what reaches @process->blocks, in a worker. Takes the process over. If the search
 * fails the process is kept without blocks. Returns 0 or -ENOMEM.
 */
int reach__search(struct reach *reach, struct reach_process *process, const pid_t *tids,
		  size_t n_tids);
/* Adds a process that cannot be searched. Returns 0 or -ENOMEM. */
int reach__refuse(struct reach *reach, pid_t pid, const char *why);

/* Returns whether the process was searched, or refused. */
bool reach__has(const struct reach *reach, pid_t pid);

/* Returns the class of the block at @address. */
enum reach_class reach__class(const struct reach *reach, const void *owner, __u32 space,
			      __u64 address);

#endif
