/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_TARGET_INHERITANCE_H
#define ALLOCPROF_TARGET_INHERITANCE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

struct target_user;

/* What a launched command inherits: signal mask and limits as they were before ours, its environment and its user. */
struct target_inheritance {
	sigset_t signal_mask;
	struct rlimit files;
	char **environment;		/* NULL: that of this process */
	const struct target_user *user; /* NULL: that of this process */
	bool isolates;			/* in a mount namespace of its own, with copies of files */
};

#endif
