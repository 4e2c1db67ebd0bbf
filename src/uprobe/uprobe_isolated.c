// SPDX-License-Identifier: GPL-3.0-or-later
/* Copies of files that are probed, for a launched command alone (src/process/isolation.h). */
#include "uprobe_internal.h"

#include <errno.h>
#include <sys/stat.h>

#include "isolation.h"

int uprobe__isolate(const struct uprobe *uprobe, int fd, const char *path, bool makes)
{
	struct isolation *isolation = uprobe->target->isolation;
	struct stat st;
	int copy = -ENOENT;

	if (!isolation)
		return fd;
	if (makes)
		copy = isolation__copy(isolation, fd, path);
	else if (!fstat(fd, &st))
		copy = isolation__find(isolation, &st);
	return copy < 0 ? fd : copy;
}

int uprobe__original(int fd, void *context)
{
	const struct uprobe *uprobe = context;
	const struct isolation *isolation = uprobe->target->isolation;

	return isolation ? isolation__original(isolation, fd) : -ENOENT;
}
