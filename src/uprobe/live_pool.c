// SPDX-License-Identifier: GPL-3.0-or-later
#include "live_pool.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "slots.h"

/* Maximum number of values kept ready, instead of half of those in use. */
#define MOST_AHEAD 262144

void live_pool__init(struct live_pool *pool, const struct live_pool_options *options)
{
	*pool = (struct live_pool){ .options = *options };
}

static size_t value_stride(const struct live_pool *pool)
{
	return (pool->options.value_bytes + 7) & ~(size_t)7;
}

static size_t chunk_bytes(const struct live_pool *pool)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return ((value_stride(pool) << pool->options.chunk_bits) + page - 1) & ~(page - 1);
}

void live_pool__release(struct live_pool *pool)
{
	for (__u32 i = 0; i < pool->n_chunks; i++) {
		munmap(pool->chunks[i].values, chunk_bytes(pool));
		close(pool->chunks[i].fd);
	}
	free(pool->chunks);
	free(pool->free);
	*pool = (struct live_pool){ 0 };
}

static int publish_chunks(struct live_pool *pool, __u32 first, __u32 n)
{
	_cleanup_(free_ptr) int *fds = calloc(n, sizeof(*fds));

	if (!fds)
		return -ENOMEM;
	for (__u32 i = 0; i < n; i++)
		fds[i] = pool->chunks[first + i].fd;
	return slots__set(pool->options.slots, pool->options.chunks_fd, first, fds, n);
}

static int make_chunk(const struct live_pool *pool, struct live_pool_chunk *chunk)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, pool->options.name, sizeof(__u32),
			       pool->options.value_bytes, 1U << pool->options.chunk_bits, &options);
	void *values;

	if (fd < 0)
		return fd;
	values = mmap(NULL, chunk_bytes(pool), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (values == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	*chunk = (struct live_pool_chunk){ fd, values };
	return 0;
}

static int add_chunks(struct live_pool *pool, __u32 wanted)
{
	struct ap_pool *shared = pool->options.shared;
	struct live_pool_chunk *chunks;
	__u32 first = pool->n_chunks;
	__u64 ready;
	int err = 0;

	chunks = reallocarray(pool->chunks, wanted, sizeof(*chunks));
	if (!chunks)
		return -ENOMEM;
	pool->chunks = chunks;
	while (pool->n_chunks < wanted && !err) {
		err = make_chunk(pool, &chunks[pool->n_chunks]);
		if (!err)
			pool->n_chunks++;
	}
	if (pool->n_chunks == first)
		return err;
	err = publish_chunks(pool, first, pool->n_chunks - first);
	if (err)
		return err;
	ready = (__u64)pool->n_chunks << pool->options.chunk_bits;
	__atomic_store_n(&shared->ready, ready < shared->max ? ready : shared->max,
			 __ATOMIC_RELEASE);
	return 0;
}

/* Returns the indexes to the programs for which their queue had no room before. */
static void refill_queue(struct live_pool *pool)
{
	while (pool->n_free) {
		if (bpf_map_update_elem(pool->options.free_fd, NULL, &pool->free[pool->n_free - 1],
					BPF_ANY))
			return;
		__atomic_fetch_add(&pool->options.shared->n_free, 1, __ATOMIC_RELEASE);
		pool->n_free--;
	}
}

int live_pool__keep_ready(struct live_pool *pool)
{
	__u32 used = __atomic_load_n(&pool->options.shared->n, __ATOMIC_RELAXED);
	__u32 ahead = pool->options.ahead, bits = pool->options.chunk_bits;
	__u64 wanted;
	int err;

	refill_queue(pool);
	/* Not for a few at a time, since each call costs a grace period. */
	if (pool->n_chunks && used + ahead / 2 < (__u64)pool->n_chunks << bits)
		return 0;
	if (used / 2 > ahead)
		ahead = used / 2 < MOST_AHEAD ? used / 2 : MOST_AHEAD;
	wanted = (__u64)used + ahead;
	if (wanted > pool->options.shared->max)
		wanted = pool->options.shared->max;
	wanted = (wanted + (1U << bits) - 1) >> bits;
	if (wanted <= pool->n_chunks || pool->is_full)
		return 0;
	err = add_chunks(pool, wanted);
	if (!err || !pool->n_chunks)
		return err;
	/* Hits no longer wait for more. */
	pool->is_full = true;
	__atomic_store_n(&pool->options.shared->max, pool->options.shared->ready, __ATOMIC_RELAXED);
	return 0;
}

void *live_pool__get(const struct live_pool *pool, __u32 index)
{
	__u32 bits = pool->options.chunk_bits, at = index & ((1U << bits) - 1);

	if (index >> bits >= pool->n_chunks)
		return NULL;
	return pool->chunks[index >> bits].values + at * value_stride(pool);
}

int live_pool__give_back(struct live_pool *pool, __u32 index)
{
	void *value = live_pool__get(pool, index);

	if (!value)
		return 0;
	memset(value, 0, pool->options.value_bytes);
	if (array__reserve(&pool->free, &pool->free_room, pool->n_free + 1, sizeof(*pool->free)))
		return -ENOMEM;
	pool->free[pool->n_free++] = index;
	refill_queue(pool);
	return 0;
}

__u64 live_pool__used(const struct live_pool *pool)
{
	__u64 n = __atomic_load_n(&pool->options.shared->n, __ATOMIC_RELAXED);
	__s32 queued = __atomic_load_n(&pool->options.shared->n_free, __ATOMIC_RELAXED);
	__u64 unused = pool->n_free + (queued > 0 ? queued : 0);

	return n > unused ? n - unused : 0;
}

__u64 live_pool__bytes(const struct live_pool *pool)
{
	return (__u64)pool->n_chunks * chunk_bytes(pool);
}
