/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Address spaces and programs of a run with --live, by the programs' numbers. */
#ifndef ALLOCPROF_LIVE_SPACES_H
#define ALLOCPROF_LIVE_SPACES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "record_abi.h"

struct live_space {
	enum {
		SPACE_USED,
		SPACE_LEFT,	 /* ended by an exit: its live blocks count as leaked */
		SPACE_DISCARDED, /* ended by an exec: its live blocks are discarded */
	} state;
	__u64 end_ns;	  /* CLOCK_MONOTONIC */
	__u64 generation; /* generation of the peak at the end */
};

struct live_program {
	__u32 pid;
	__u32 space;
	/* CLOCK_MONOTONIC; 0: the program runs, or its process has executed another one. */
	__u64 end_ns;
};

struct live_spaces {
	struct live_space *spaces;
	size_t n_spaces;
	struct live_program *programs;
	size_t n_programs;
	__u32 *running; /* ids of programs */
	size_t n_running, running_room;
};

void live_spaces__release(struct live_spaces *spaces);

/* Handles a process record; sets *@ended if an address space ended. Fails with -ENOMEM. */
int live_spaces__handle(struct live_spaces *spaces, const struct ap_process_record *record,
			bool *ended);

/* Handles the end of a space that an exit had left before. Fails with -ENOMEM. */
int live_spaces__leave(struct live_spaces *spaces, const struct ap_space_record *record);

/* Returns the space. An unknown space counts as in use. */
const struct live_space *live_spaces__get(const struct live_spaces *spaces, __u32 number);
const struct live_space *live_spaces__of_program(const struct live_spaces *spaces, __u32 program);

/* Returns the address space of the process @pid, or of the last one with that id; 0: it is unknown. */
__u32 live_spaces__of_process(const struct live_spaces *spaces, pid_t pid);

/* Returns when the process @pid ended, by CLOCK_MONOTONIC; UINT64_MAX while it runs. */
__u64 live_spaces__end_ns(const struct live_spaces *spaces, __u32 pid);

/* Returns the sum of the resident anonymous memory of all running processes, in bytes. */
__u64 live_spaces__rss_bytes(const struct live_spaces *spaces);

#endif
