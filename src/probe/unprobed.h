/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs of a run that took memory from the kernel and called no function that is probed: that nothing was
 * counted does not mean that they allocated nothing. */
#ifndef ALLOCPROF_UNPROBED_H
#define ALLOCPROF_UNPROBED_H

#include <linux/types.h>
#include <stddef.h>

#include "record_abi.h"

/* Processes that ended as programs of one name. */
struct unprobed_program {
	char name[AP_COMM_LEN + 1]; /* as the kernel has it: cut, without control characters */
	__u32 pid;		    /* of the first */
	__u64 processes;
	__u64 size_bytes; /* that they took from the kernel and had not given back */
};

struct unprobed {
	struct unprobed_program *list; /* by their first process */
	size_t n, room;
};

/* 0 or -ENOMEM. */
int unprobed__add(struct unprobed *unprobed, const struct ap_unprobed_record *record);
void unprobed__release(struct unprobed *unprobed);

#endif
