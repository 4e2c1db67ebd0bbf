/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The check, by probes, whether calls of a process's allocator come to the engine that has redirected
 * them. */
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
	__u64 n_calls; /* number of calls that were checked */
	__u64 n_bypassed; /* number of them that others than the allocator made, and that did not come to the engine */
	/* Path of the file that made the most of these; "[unknown]" if it is not known. The caller
	 * frees it. */
	char *caller;
};

/* Sets the probes in process @pid, with @no_multi by one link each, and begins to check. The caller
 * frees *@out. Fails with -EPERM; -ENOENT if no call is redirected; or another negative errno. */
int bypass__new(pid_t pid, const struct inside_redirections *redirections, bool no_multi,
		struct bypass **out, struct error *error);

/* Returns whether enough calls were checked. */
bool bypass__has_enough(const struct bypass *bypass);

/* Stops checking. Fails with -ENOMEM. */
int bypass__finish(struct bypass *bypass, struct bypass_result *out);

/* Removes the probes. Accepts NULL. */
void bypass__free(struct bypass *bypass);

#endif
