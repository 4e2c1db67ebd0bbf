// SPDX-License-Identifier: GPL-3.0-or-later
#include "unwind_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "slots.h"
#include "unwind_abi.h"

/* Inserting a chunk into the map of maps waits for an RCU grace period, which lasts as long as any
 * probe waits for the table that needs the chunk. So some are inserted ahead of need. */
#define CHUNKS_AHEAD 12

struct unwind_maps {
	struct unwind_maps_fds fds;
	int chunk_fd; /* fd of the last chunk, -1: none */
	/* Chunks that are already in the map, for later use. */
	int ready_fds[CHUNKS_AHEAD];
	__u32 n_ready;
	__u32 n_chunks; /* in use */
};

static int make_ready(struct unwind_maps *maps)
{
	__u32 first = maps->n_ready, n = 0;
	int err;

	while (first + n < CHUNKS_AHEAD && maps->n_chunks + first + n < UNWIND_MAX_CHUNKS) {
		int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_chunk", sizeof(__u32),
					sizeof(struct unwind_chunk), 1, NULL);

		if (fd < 0)
			break;
		maps->ready_fds[first + n] = fd;
		n++;
	}
	if (!n)
		return first ? 0 : -ENOMEM;
	err = slots__set(NULL, maps->fds.chunks, maps->n_chunks + first, maps->ready_fds + first,
			 n);
	if (err)
		while (n)
			close(maps->ready_fds[first + --n]);
	maps->n_ready += n;
	return err;
}

static int open_chunk(struct unwind_maps *maps)
{
	int err = maps->n_ready ? 0 : make_ready(maps);

	if (err)
		return err;
	close_fd(&maps->chunk_fd);
	maps->chunk_fd = maps->ready_fds[0];
	maps->n_ready--;
	maps->n_chunks++;
	memmove(maps->ready_fds, maps->ready_fds + 1, maps->n_ready * sizeof(maps->ready_fds[0]));
	return 0;
}

/* Only the last chunk is written; programs may read its older part meanwhile, which is rewritten
 * with the same bytes. */
static int write_map(void *context, enum unwind_map map, __u32 index, const void *value)
{
	struct unwind_maps *maps = context;
	int fd = -1;

	switch (map) {
	case UNWIND_MAP_CHUNKS:
		if (!value)
			return open_chunk(maps);
		fd = maps->chunk_fd;
		index = 0;
		break;
	case UNWIND_MAP_TABLES:
		fd = maps->fds.tables;
		break;
	case UNWIND_MAP_SLICES:
		fd = maps->fds.slices;
		break;
	case UNWIND_MAP_RULES:
		fd = maps->fds.rules;
		break;
	}
	return bpf_map_update_elem(fd, &index, value, BPF_ANY) ? -errno : 0;
}

static int prepare(void *context)
{
	struct unwind_maps *maps = context;

	return maps->n_ready > CHUNKS_AHEAD / 2 ? 0 : make_ready(maps);
}

static void release(void *context)
{
	struct unwind_maps *maps = context;

	close_fd(&maps->chunk_fd);
	while (maps->n_ready)
		close(maps->ready_fds[--maps->n_ready]);
	free(maps);
}

struct unwind_tables *unwind_maps__new(const struct unwind_maps_fds *fds)
{
	struct unwind_maps *maps = calloc(1, sizeof(*maps));

	if (!maps)
		return NULL;
	maps->fds = *fds;
	maps->chunk_fd = -1;
	return unwind_tables__new(&(struct unwind_writer){
		.write = write_map,
		.prepare = prepare,
		.release = release,
		.context = maps,
	});
}
