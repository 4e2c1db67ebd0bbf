// SPDX-License-Identifier: GPL-3.0-or-later
#include "proc_maps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"

int proc_maps__each(pid_t pid, proc_maps_visit *visit, void *context)
{
	_cleanup_(close_file) FILE *maps = NULL;
	_cleanup_(free_ptr) char *line = NULL;
	char name[64] = "/proc/self/maps", permissions[5];
	size_t capacity = 0;
	int err = 0;

	if (pid)
		snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	if (!maps)
		return -errno;
	while (!err && getline(&line, &capacity, maps) > 0) {
		struct proc_mapping mapping = { 0 };
		int path_at = 0;

		if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &mapping.start, &mapping.end,
			   permissions, &mapping.offset, &mapping.major, &mapping.minor,
			   &mapping.inode, &path_at) < 7 ||
		    !path_at)
			continue;
		line[strcspn(line, "\n")] = '\0';
		mapping.is_executable = permissions[2] == 'x';
		mapping.is_shared = permissions[3] == 's';
		mapping.path = line + path_at;
		err = visit(context, &mapping);
	}
	return err;
}
