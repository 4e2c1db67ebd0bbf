/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists programs of a run that took memory from the kernel without hitting a probe: for these a
 * count of 0 does not mean that they allocated nothing. */
#ifndef ALLOCPROF_UNPROBED_H
#define ALLOCPROF_UNPROBED_H

#include <linux/types.h>
#include <stddef.h>

#include "record_abi.h"

/* Processes that ended with the same program name. */
struct unprobed_program {
	char name[AP_COMM_LEN + 1]; /* the kernel's comm: truncated, control characters replaced */
	__u32 pid;		    /* number of the first of these processes */
	__u64 processes;
	__u64 size_bytes; /* taken from the kernel and not returned */
};

struct unprobed {
	struct unprobed_program *list; /* in order of the first process */
	size_t n, room;
};

/* Adds a process. Returns 0 or -ENOMEM. */
int unprobed__add(struct unprobed *unprobed, const struct ap_unprobed_record *record);
void unprobed__release(struct unprobed *unprobed);

#endif
