/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks by probes, for a short while, whether calls of a process's allocator come to the engine that has redirected them. */
#ifndef ALLOCPROF_BYPASS_H
#define ALLOCPROF_BYPASS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bypass;
struct error;
struct inside_redirections;

struct bypass_result {
	__u64 n_calls; /* how many calls were checked */
	__u64 n_bypassed; /* how many of them came from objects other than the allocator's own, without the engine */
	/* Path of the file that made most of these; "[unknown]" if it is not known. It
	 * belongs to the caller, who frees it. */
	char *caller;
};

/* Sets the probes in process @pid, with @no_multi by a link each. The caller frees *@out. Returns -EPERM, -ENOENT if there is
 * nothing to check, or another negative errno. */
int bypass__new(pid_t pid, const struct inside_redirections *redirections, bool no_multi,
		struct bypass **out, struct error *error);

/* Returns whether enough calls were checked. */
bool bypass__has_enough(const struct bypass *bypass);

/* Stops checking. Returns -ENOMEM. */
int bypass__finish(struct bypass *bypass, struct bypass_result *out);

/* Removes the probes. Accepts NULL. */
void bypass__free(struct bypass *bypass);

#endif
