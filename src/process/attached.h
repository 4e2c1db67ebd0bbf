/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What /proc says of a process that was already running when its recording began. */
#ifndef ALLOCPROF_ATTACHED_H
#define ALLOCPROF_ATTACHED_H

#include <linux/types.h>
#include <sys/types.h>

/* What cannot be read is NULL or 0. The strings are owned. */
struct attached {
	char *command; /* its arguments as a shell would take them, or the title that it has given itself */
	__u64 rss_bytes; /* resident memory */
};

void attached__read(pid_t pid, struct attached *out);
void attached__release(struct attached *attached);

/* Sets *@lines, to be freed, to a line "PID COMMAND" for each child of the process, or to NULL if there is none or /proc
 * cannot be read. -ENOMEM. */
int attached__list_children(pid_t pid, char **lines);

#endif
