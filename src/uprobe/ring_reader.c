// SPDX-License-Identifier: GPL-3.0-or-later
#include "ring_reader.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "thread.h"

/* Kept records are stored in pieces of this size; a larger record has a piece of its own. */
#define PIECE_BYTES (1UL << 20)
/* Limits of the kept bytes: absolute, and as a fraction of the machine's memory. Further records
 * stay in the buffer. */
#define MAX_KEPT_BYTES	(1UL << 30)
#define SHARE_OF_MEMORY 16
/* How often the other thread looks at the buffer. */
#define LOOK_EVERY_MS 5
#define ALIGNMENT     8

struct piece {
	struct piece *next;
	size_t used, room;
	char bytes[] __attribute__((aligned(ALIGNMENT)));
};

/* Precedes each kept record. */
struct header {
	size_t size;
};

struct ring_reader {
	struct ring_buffer *ring;
	ring_reader_handle *handle;
	void *context;
	/* The caller's thread holds the lock except between step_back() and resume(). The lock
	 * protects everything below. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	pid_t process; /* process that created the thread; a forked child has no such thread */
	bool has_thread;
	bool has_stepped_back, ends;
	bool is_awaited; /* the caller waits for the lock; accessed atomically */
	struct piece *first, *last;
	size_t kept_bytes, most_bytes;
	int err; /* first error of keep() */
};

static void lock(struct ring_reader *reader)
{
	pthread_mutex_lock(&reader->lock);
}

static void unlock(struct ring_reader *reader)
{
	pthread_mutex_unlock(&reader->lock);
}

static int keep(struct ring_reader *reader, const void *record, size_t size)
{
	size_t bytes = sizeof(struct header) + (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	struct piece *piece = reader->last;
	struct header header = { size };

	if (!piece || piece->room - piece->used < bytes) {
		size_t room = bytes > PIECE_BYTES ? bytes : PIECE_BYTES;

		piece = malloc(sizeof(*piece) + room);
		if (!piece)
			return -ENOMEM;
		piece->next = NULL;
		piece->used = 0;
		piece->room = room;
		if (reader->last)
			reader->last->next = piece;
		else
			reader->first = piece;
		reader->last = piece;
		reader->kept_bytes += room;
	}
	memcpy(piece->bytes + piece->used, &header, sizeof(header));
	memcpy(piece->bytes + piece->used + sizeof(header), record, size);
	piece->used += bytes;
	return 0;
}

static int handle_or_keep(void *context, void *record, size_t size)
{
	struct ring_reader *reader = context;
	int err;

	if (!reader->has_stepped_back)
		return reader->handle(reader->context, record, size);
	err = keep(reader, record, size);
	if (err)
		reader->err = err;
	if (err)
		return err;
	/* This record is kept, but the next one stays in the buffer. */
	if (reader->kept_bytes > reader->most_bytes)
		return -ENOSPC;
	return __atomic_load_n(&reader->is_awaited, __ATOMIC_RELAXED) ? -EINTR : 0;
}

static void *run(void *arg)
{
	struct ring_reader *reader = arg;

	lock(reader);
	while (!reader->ends) {
		if (!reader->has_stepped_back) {
			pthread_cond_wait(&reader->changed, &reader->lock);
			continue;
		}
		if (!reader->err && reader->kept_bytes <= reader->most_bytes)
			ring_buffer__consume(reader->ring);
		unlock(reader);
		usleep(LOOK_EVERY_MS * 1000);
		lock(reader);
	}
	unlock(reader);
	return NULL;
}

/* Starts the other thread. If it cannot be created, the caller's thread reads everything. */
static void start(struct ring_reader *reader)
{
	reader->has_thread = thread__start(&reader->thread, run, reader);
}

int ring_reader__new(int ring_fd, __u64 memory_bytes, ring_reader_handle *handle, void *context,
		     struct ring_reader **out)
{
	struct ring_reader *reader = calloc(1, sizeof(*reader));
	__u64 share = memory_bytes / SHARE_OF_MEMORY;

	if (!reader)
		return -ENOMEM;
	reader->handle = handle;
	reader->context = context;
	reader->process = getpid();
	reader->most_bytes = share < MAX_KEPT_BYTES ? share : MAX_KEPT_BYTES;
	reader->ring = ring_buffer__new(ring_fd, handle_or_keep, reader, NULL);
	if (!reader->ring) {
		int err = -errno;

		free(reader);
		return err;
	}
	pthread_mutex_init(&reader->lock, NULL);
	pthread_cond_init(&reader->changed, NULL);
	lock(reader);
	start(reader);
	*out = reader;
	return 0;
}

/* Takes the kept pieces out of the reader; the caller frees them. */
static struct piece *take_pieces(struct ring_reader *reader)
{
	struct piece *first = reader->first;

	reader->first = reader->last = NULL;
	reader->kept_bytes = 0;
	return first;
}

static void free_pieces(struct piece *first)
{
	while (first) {
		struct piece *next = first->next;

		free(first);
		first = next;
	}
}

void ring_reader__free(struct ring_reader *reader)
{
	if (!reader)
		return;
	reader->ends = true;
	if (reader->has_thread && reader->process == getpid()) {
		pthread_cond_signal(&reader->changed);
		unlock(reader);
		pthread_join(reader->thread, NULL);
	}
	free_pieces(take_pieces(reader));
	ring_buffer__free(reader->ring);
	free(reader);
}

int ring_reader__fd(const struct ring_reader *reader)
{
	return ring_buffer__epoll_fd(reader->ring);
}

static int handle_piece(struct ring_reader *reader, struct piece *piece, int *n)
{
	struct header header;
	int err = 0;

	for (size_t at = 0; at < piece->used && err >= 0; ++*n) {
		memcpy(&header, piece->bytes + at, sizeof(header));
		at += sizeof(header);
		err = reader->handle(reader->context, piece->bytes + at, header.size);
		at += (header.size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	}
	return err;
}

/* Handles what has been kept, while the other thread goes on reading. */
static int handle_kept(struct ring_reader *reader, int *n)
{
	struct piece *first = take_pieces(reader);
	int err = 0;

	ring_reader__step_back(reader);
	for (struct piece *piece = first; piece && err >= 0; piece = piece->next)
		err = handle_piece(reader, piece, n);
	ring_reader__resume(reader);
	free_pieces(first);
	return err;
}

int ring_reader__read(struct ring_reader *reader)
{
	int err = 0, n = 0, more;

	while (reader->first && err >= 0)
		err = handle_kept(reader, &n);
	if (err >= 0)
		err = reader->err;
	if (err < 0)
		return err;
	more = ring_buffer__consume(reader->ring);
	return more < 0 ? more : more < INT32_MAX - n ? n + more : INT32_MAX;
}

void ring_reader__step_back(struct ring_reader *reader)
{
	reader->has_stepped_back = true;
	pthread_cond_signal(&reader->changed);
	unlock(reader);
}

void ring_reader__resume(struct ring_reader *reader)
{
	/* Tells the other thread to stop: if programs write faster than records are kept, it would
	 * never find the buffer empty. */
	__atomic_store_n(&reader->is_awaited, true, __ATOMIC_RELAXED);
	lock(reader);
	__atomic_store_n(&reader->is_awaited, false, __ATOMIC_RELAXED);
	reader->has_stepped_back = false;
}

bool ring_reader__has_kept(const struct ring_reader *reader)
{
	return reader->first || reader->err;
}
