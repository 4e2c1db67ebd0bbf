// SPDX-License-Identifier: GPL-3.0-or-later
/* Which images were in a process, by its number: a list of images is read once for each, however long it is. */
#include "preload_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"

static bool has_pid(const void *owner, __u32 id, const void *pid)
{
	return ((const struct pid_images *)owner)->list[id - 1].pid == *(const __u32 *)pid;
}

static __u64 hash_of(const struct pid_images *images, __u32 pid)
{
	return hash_mix(images->seed, pid);
}

const struct pid_image *pid_images__find(const struct pid_images *images, __u32 pid)
{
	__u32 id = hash_table__find(&images->index, hash_of(images, pid), has_pid, images, &pid);

	return id ? &images->list[id - 1] : NULL;
}

int pid_images__add(struct pid_images *images, __u32 pid, int image, bool has_exited)
{
	struct pid_image *of_pid = (struct pid_image *)pid_images__find(images, pid);

	if (!of_pid) {
		if (array__reserve(&images->list, &images->room, images->n + 1,
				   sizeof(*images->list)) ||
		    hash_table__insert(&images->index, hash_of(images, pid), images->n + 1))
			return -ENOMEM;
		of_pid = &images->list[images->n++];
		*of_pid = (struct pid_image){ .pid = pid, .not_exited = -1 };
	}
	of_pid->last = image;
	if (!has_exited)
		of_pid->not_exited = image;
	return 0;
}

void pid_images__release(struct pid_images *images)
{
	hash_table__release(&images->index);
	free(images->list);
}
