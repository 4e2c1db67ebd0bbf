// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads and writes the maps of the BPF programs: counters, batches, slots and unwind tables. */
#include "bpf_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi.h"
#include "cleanup.h"
#include "collector.h"
#include "record_abi.h"
#include "thread.h"
#include "unwind_abi.h"

int counters__init(struct counters *counters)
{
	int n_cpus = libbpf_num_possible_cpus();

	*counters = (struct counters){ .n_cpus = n_cpus };
	return n_cpus < 0 ? n_cpus : 0;
}

/* Returns whether a test wants this reading to fail. */
static bool is_refused(struct counters *counters)
{
	if (!counters->refused)
		return false;
	counters->refused--;
	return true;
}

/* Adds to a sum of bytes, which saturates, as the sums on each CPU do. Differences are modulo
 * 2^64. */
static void add(__u64 *sum, __u64 value)
{
	bool saturates = *sum <= AP_MAX_SUM && value <= AP_MAX_SUM && value > AP_MAX_SUM - *sum;

	*sum = saturates ? AP_MAX_SUM : *sum + value;
}

void counters__sum(struct counters *counters, int fd, const void *key, __u64 *sums, size_t n)
{
	_cleanup_(free_ptr) __u64 *values = calloc(counters->n_cpus, n * sizeof(*values));

	memset(sums, 0, n * sizeof(*sums));
	if (!values || is_refused(counters) || bpf_map_lookup_elem(fd, key, values)) {
		counters->unread++;
		return;
	}
	for (int cpu = 0; cpu < counters->n_cpus; cpu++)
		for (size_t i = 0; i < n; i++)
			add(&sums[i], values[cpu * n + i]);
}

__u64 counters__recursion_misses(struct counters *counters, const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	/* The program has not been loaded. */
	if (bpf_program__fd(program) < 0)
		return 0;
	if (!is_refused(counters) &&
	    !bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return info.recursion_misses;
	counters->unread++;
	return 0;
}

#define ENTRIES 8192

int map_batch__each(int fd, size_t key_bytes, size_t value_bytes, bool takes, map_batch_use *use,
		    void *context)
{
	_cleanup_(free_ptr) char *keys = calloc(ENTRIES, key_bytes);
	_cleanup_(free_ptr) char *values = calloc(ENTRIES, value_bytes);
	__u32 position = 0, *from = NULL;
	int end = 0, err = 0;

	if (!keys || !values)
		return -ENOMEM;
	while (!err && !end) {
		__u32 n = ENTRIES;

		end = takes ? bpf_map_lookup_and_delete_batch(fd, from, &position, keys, values, &n,
							      NULL)
			    : bpf_map_lookup_batch(fd, from, &position, keys, values, &n, NULL);
		if (end && end != -ENOENT) /* -ENOENT marks the last batch */
			return end;
		from = &position;
		for (__u32 i = 0; i < n && !err; i++)
			err = use(context, keys + i * key_bytes, values + i * value_bytes);
	}
	return err;
}

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

static int set_slot(int map_fd, __u32 first, const int *fds, __u32 n)
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

	update->err = set_slot(update->map_fd, update->first, update->fds, update->n);
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
		return set_slot(map_fd, first, fds, n);
	update = malloc(sizeof(*update) + n * sizeof(*fds));
	if (!update)
		return -ENOMEM;
	*update = (struct update){ .map_fd = map_fd, .first = first, .n = n };
	memcpy(update->fds, fds, n * sizeof(*fds));
	if (!thread__start(&update->thread, run, update)) {
		free(update);
		return set_slot(map_fd, first, fds, n);
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

void count_maps__handle_record(struct count_maps *maps, const void *record, size_t size)
{
	if (size >= sizeof(__u32) && *(const __u32 *)record == AP_RECORD_DRAIN)
		maps->wants_drain = true;
}

bool count_maps__want_drain(const struct count_maps *maps)
{
	/* The record that requests a drain may have found the ring buffer full, so the number of
	 * keys is checked, too. */
	return maps->wants_drain ||
	       __atomic_load_n(maps->inserted, __ATOMIC_RELAXED) >= maps->drain_at;
}

static int move_count(void *context, const void *key, const void *count)
{
	__u32 id;

	return collector__add_count(context, key, count, &id);
}

/* Moves all counters of a map into the profile; no program uses the map any more. */
static int read_counts(int fd, struct collector *collector)
{
	return map_batch__each(fd, sizeof(struct ap_count_key), sizeof(struct ap_count), true,
			       move_count, collector);
}

/* Replacing a map inside a map waits for a grace period (Linux 4.20, maybe_wait_bpf_programs()):
 * afterwards no program uses the old one. */
static int use_map(const struct count_maps *maps, int which)
{
	__u32 zero = 0;

	return bpf_map_update_elem(maps->current_fd, &zero, &maps->fds[which], BPF_ANY) ? -errno
											: 0;
}

int count_maps__wait_for_programs(const struct count_maps *maps)
{
	return use_map(maps, maps->current);
}

int count_maps__begin_drain(struct count_maps *maps)
{
	int next = !maps->current;
	int err = use_map(maps, next);

	if (err)
		return err;
	__atomic_store_n(maps->inserted, 0, __ATOMIC_RELAXED);
	maps->current = next;
	maps->wants_drain = false;
	return 0;
}

int count_maps__end_drain(const struct count_maps *maps, struct collector *collector)
{
	return read_counts(maps->fds[!maps->current], collector);
}

int count_maps__drain_all(const struct count_maps *maps, struct collector *collector)
{
	int err = 0;

	for (int i = 0; i < 2 && !err; i++)
		err = read_counts(maps->fds[i], collector);
	return err;
}

/* Inserting a chunk into the map of maps waits for an RCU grace period, which lasts as long as any
 * probe waits for the table that needs the chunk. So some are inserted ahead of need. */
#define CHUNKS_AHEAD 12

struct unwind_maps {
	struct unwind_maps_fds fds;
	int chunk_fd; /* fd of the last chunk, -1: none */
	/* Chunks that are already in the map of maps, for later tables. */
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

static int prepare_table(void *context)
{
	struct unwind_maps *maps = context;

	return maps->n_ready > CHUNKS_AHEAD / 2 ? 0 : make_ready(maps);
}

static void release_maps(void *context)
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
		.prepare = prepare_table,
		.release = release_maps,
		.context = maps,
	});
}
