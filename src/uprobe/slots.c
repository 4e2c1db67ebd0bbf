// SPDX-License-Identifier: GPL-3.0-or-later
#include "slots.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

struct update {
	struct update *next;
	pthread_t thread;
	int map_fd;
	__u32 first, n;
	int err;
	int fds[];
};

struct slots {
	struct update *updates; /* each has a thread */
	bool at_once;
};

static int set(int map_fd, __u32 first, const int *fds, __u32 n)
{
	_cleanup_(free_ptr) __u32 *indexes = calloc(n, sizeof(*indexes));
	__u32 done = n;

	if (!indexes)
		return -ENOMEM;
	for (__u32 i = 0; i < n; i++)
		indexes[i] = first + i;
	/* One grace period for all, if the kernel supports batches. */
	if (n > 1 && !bpf_map_update_batch(map_fd, indexes, fds, &done, NULL))
		return 0;
	for (__u32 i = 0; i < n; i++)
		if (bpf_map_update_elem(map_fd, &indexes[i], &fds[i], BPF_ANY))
			return -errno;
	return 0;
}

static void *run(void *context)
{
	struct update *update = context;

	update->err = set(update->map_fd, update->first, update->fds, update->n);
	return NULL;
}

struct slots *slots__new(void)
{
	return calloc(1, sizeof(struct slots));
}

void slots__free(struct slots *slots)
{
	if (slots)
		slots__wait(slots);
	free(slots);
}

int slots__set(struct slots *slots, int map_fd, __u32 first, const int *fds, __u32 n)
{
	struct update *update;

	if (!slots || slots->at_once)
		return set(map_fd, first, fds, n);
	update = malloc(sizeof(*update) + n * sizeof(*fds));
	if (!update)
		return -ENOMEM;
	*update = (struct update){ .map_fd = map_fd, .first = first, .n = n };
	memcpy(update->fds, fds, n * sizeof(*fds));
	if (pthread_create(&update->thread, NULL, run, update)) {
		free(update);
		return set(map_fd, first, fds, n);
	}
	update->next = slots->updates;
	slots->updates = update;
	return 0;
}

int slots__wait(struct slots *slots)
{
	int err = 0;

	slots->at_once = true;
	while (slots->updates) {
		struct update *update = slots->updates;

		slots->updates = update->next;
		pthread_join(update->thread, NULL);
		if (!err)
			err = update->err;
		free(update);
	}
	return err;
}
