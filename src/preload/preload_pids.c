// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * An index of images by the number of their process and that number's PID namespace. To find those of a process does not take
 * reading the list of images, which may be long.
 */
#include "preload_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"

static bool has_pid(const void *owner, __u32 id, const void *wanted)
{
	const struct pid_image *of_pid = &((const struct pid_images *)owner)->list[id - 1];
	const struct pid_image *key = wanted;

	return of_pid->pid == key->pid && of_pid->pid_namespace == key->pid_namespace;
}

static __u64 hash_of(const struct pid_images *images, __u64 pid_namespace, __u32 pid)
{
	return hash_mix(hash_mix(images->seed, pid_namespace), pid);
}

const struct pid_image *pid_images__find(const struct pid_images *images, __u64 pid_namespace,
					 __u32 pid)
{
	const struct pid_image key = { .pid_namespace = pid_namespace, .pid = pid };
	__u32 id = hash_table__find(&images->index, hash_of(images, pid_namespace, pid), has_pid,
				    images, &key);

	return id ? &images->list[id - 1] : NULL;
}

int pid_images__add(struct pid_images *images, __u64 pid_namespace, __u32 pid, int image,
		    bool has_exited)
{
	struct pid_image *of_pid = (struct pid_image *)pid_images__find(images, pid_namespace, pid);

	if (!of_pid) {
		if (array__reserve(&images->list, &images->room, images->n + 1,
				   sizeof(*images->list)) ||
		    hash_table__insert(&images->index, hash_of(images, pid_namespace, pid),
				       images->n + 1))
			return -ENOMEM;
		of_pid = &images->list[images->n++];
		*of_pid = (struct pid_image){ .pid_namespace = pid_namespace, .pid = pid };
	}
	of_pid->last = image;
	/* The number is another process's from then on. */
	of_pid->not_exited = has_exited ? -1 : image;
	return 0;
}

void pid_images__release(struct pid_images *images)
{
	hash_table__release(&images->index);
	free(images->list);
}
