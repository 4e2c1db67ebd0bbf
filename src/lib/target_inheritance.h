/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_TARGET_INHERITANCE_H
#define ALLOCPROF_TARGET_INHERITANCE_H

#include <signal.h>
#include <sys/resource.h>

/* Signal mask and limits that a launched command inherits, as they were before ours. */
struct target_inheritance {
	sigset_t signal_mask;
	struct rlimit files;
};

#endif
