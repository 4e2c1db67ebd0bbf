// SPDX-License-Identifier: GPL-3.0-or-later
#include "proc_stat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"

int proc_stat__read(pid_t pid, struct proc_stat *out)
{
	_cleanup_(close_file) FILE *file = NULL;
	char path[64], line[1024], *rest;
	struct proc_stat stat;
	int terminal;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file))
		return file ? -ESRCH : -errno;
	/* The name is in parentheses and may contain any character. */
	rest = strrchr(line, ')');
	if (!rest || sscanf(rest + 1, " %c %d %*d %*d %d %*d %lu", &stat.state, &stat.parent,
			    &terminal, &stat.flags) != 4)
		return -EINVAL;
	stat.terminal = terminal;
	*out = stat;
	return 0;
}
