// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads a log of events, which may be hostile: all numbers have bounds, and its definitions may
 * take at most MOST_DEFINED bytes, and less if the log is small. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "arena.h"
#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "event_log.h"
#include "event_log_format.h"

#define MOST_DEFINED (1ULL << 30)
/*
 * A log's definitions may take DEFINED_AT_LEAST bytes of memory, and so many more for each byte of
 * the log. Logs of compilers and interpreters take 2 to 4, those of recursions by random paths 11,
 * and that of a program that calls once from each of 62,000 stacks of 500 frames, any two of which
 * differ in four, 98. Compression alone would permit thousands.
 */
#define DEFINED_PER_BYTE 256
#define DEFINED_AT_LEAST (16ULL << 20)

struct stack {
	const char *end;
	size_t first; /* index of the first frame in frame_ids */
	__u32 n_frames;
};

struct event_log_reader {
	FILE *file;
	char *path;
	struct event_log_id id;
	struct arena texts;
	/* Bytes of definitions in memory; bytes of the file's blocks that were read. */
	__u64 defined_bytes, read_bytes;
	const char **modules;
	struct event_log_frame *frames;
	struct stack *stacks;
	__u32 *frame_ids;
	struct event_log_process *processes;
	struct event_log_site *sites;
	size_t n_modules, n_frames, n_stacks, n_frame_ids, n_processes, n_sites;
	size_t modules_room, frames_room, stacks_room, frame_ids_room, processes_room, sites_room;
	/* The block that is being read. */
	unsigned char *stored, bytes[EVENT_LOG_MOST_BYTES];
	size_t stored_room, n_bytes, at;
	__u64 block_offset; /* offset of the block in the file */
	__u32 events_left;
	struct event_log_last last;
	__u64 n_events, n_lost;
	bool has_ended, is_cut;
};

static int fail_damaged(const struct event_log_reader *reader, struct error *error)
{
	return error__set(error, -EINVAL,
			  "the event log %s is damaged in the block at byte %llu; the %llu events "
			  "before are sound",
			  reader->path, reader->block_offset, reader->n_events);
}

static int fail_foreign(const char *path, struct error *error)
{
	return error__set(error, -EINVAL,
			  "%s is no event log of allocprof; name one that `allocprof record "
			  "--events` wrote, or its data file",
			  path);
}

static int fail_to_read(const char *path, int err, struct error *error)
{
	return error__set(error, err, "cannot read the event log %s: %s", path, strerror(-err));
}

static int read_header(struct event_log_reader *reader, struct error *error)
{
	struct event_log_header header;

	if (fread(&header, sizeof(header), 1, reader->file) != 1)
		return ferror(reader->file) ? fail_to_read(reader->path, -EIO, error)
					    : fail_foreign(reader->path, error);
	if (memcmp(header.magic, EVENT_LOG_MAGIC, sizeof(header.magic)) ||
	    header.crc != crc32(0, (const unsigned char *)&header,
				offsetof(struct event_log_header, crc)))
		return fail_foreign(reader->path, error);
	if (!header.version || header.version > EVENT_LOG_VERSION || header.bytes != sizeof(header))
		return error__set(error, -EPROTONOSUPPORT,
				  "%s was written by another version of allocprof: log version %u, "
				  "this one reads %d; update allocprof, or record again",
				  reader->path, header.version, EVENT_LOG_VERSION);
	memcpy(reader->id.bytes, header.id, sizeof(reader->id.bytes));
	return 0;
}

int event_log_reader__open(const char *path, struct event_log_reader **out, struct error *error)
{
	struct event_log_reader *reader = calloc(1, sizeof(*reader));
	struct stat st;
	int err = 0;

	if (!reader)
		return fail_to_read(path, -ENOMEM, error);
	reader->path = strdup(path);
	if (!reader->path)
		err = fail_to_read(path, -ENOMEM, error);
	/* Only a regular file is opened, since opening a pipe would wait. */
	if (!err &&
	    (stat(path, &st) || (S_ISREG(st.st_mode) && !(reader->file = fopen(path, "re")))))
		err = fail_to_read(path, -errno, error);
	if (!err && !reader->file)
		err = fail_foreign(path, error);
	if (!err)
		err = read_header(reader, error);
	if (err) {
		event_log_reader__free(reader);
		return err;
	}
	*out = reader;
	return 0;
}

void event_log_reader__free(struct event_log_reader *reader)
{
	if (!reader)
		return;
	close_file(&reader->file);
	free(reader->path);
	arena__release(&reader->texts);
	free(reader->modules);
	free(reader->frames);
	free(reader->stacks);
	free(reader->frame_ids);
	free(reader->processes);
	free(reader->sites);
	free(reader->stored);
	free(reader);
}

const struct event_log_id *event_log_reader__id(const struct event_log_reader *reader)
{
	return &reader->id;
}

/* Reads the next block. Returns 1, 0 at the end of the file, -EINVAL if it is damaged, or a
 * negative errno. */
static int read_block(struct event_log_reader *reader)
{
	uLongf unpacked = sizeof(reader->bytes);
	struct event_log_block block;
	size_t n;

	reader->block_offset = ftello(reader->file);
	n = fread(&block, 1, sizeof(block), reader->file);
	if (ferror(reader->file))
		return -EIO;
	if (!n)
		return 0;
	reader->is_cut = n < sizeof(block);
	if (reader->is_cut)
		return 0;
	if (block.magic != EVENT_LOG_BLOCK_MAGIC ||
	    block.crc != crc32(0, (const unsigned char *)&block,
			       offsetof(struct event_log_block, crc)) ||
	    block.unpacked_bytes > EVENT_LOG_MOST_BYTES ||
	    block.stored_bytes > compressBound(EVENT_LOG_MOST_BYTES) ||
	    block.first_event != reader->n_events)
		return -EINVAL;
	if (array__reserve(&reader->stored, &reader->stored_room, (size_t)block.stored_bytes + 1,
			   1))
		return -ENOMEM;
	n = fread(reader->stored, 1, block.stored_bytes, reader->file);
	if (ferror(reader->file))
		return -EIO;
	reader->is_cut = n < block.stored_bytes;
	if (reader->is_cut)
		return 0;
	if (block.stored_crc != crc32(0, reader->stored, block.stored_bytes) ||
	    uncompress(reader->bytes, &unpacked, reader->stored, block.stored_bytes) != Z_OK ||
	    unpacked != block.unpacked_bytes)
		return -EINVAL;
	reader->read_bytes += sizeof(block) + block.stored_bytes;
	reader->n_bytes = unpacked;
	reader->at = 0;
	reader->events_left = block.n_events;
	reader->last = (struct event_log_last){ 0 };
	return 1;
}

/* The functions below read from the block. Each returns false if the block does not continue with
 * such a value. */

static bool get(struct event_log_reader *reader, __u64 most, __u64 *value)
{
	__u64 sum = 0;

	for (unsigned int shift = 0; shift < 64 && reader->at < reader->n_bytes; shift += 7) {
		__u64 byte = reader->bytes[reader->at++], bits = byte & 0x7f;

		if (bits << shift >> shift != bits)
			return false;
		sum |= bits << shift;
		if (byte & 0x80)
			continue;
		*value = sum;
		return sum <= most;
	}
	return false;
}

static bool get_32(struct event_log_reader *reader, __u32 most, __u32 *value)
{
	__u64 number;

	if (!get(reader, most, &number))
		return false;
	*value = number;
	return true;
}

static bool get_difference(struct event_log_reader *reader, __u64 before, __u64 *value)
{
	__u64 number;

	if (!get(reader, ~0ULL, &number))
		return false;
	*value = before + zigzag__to(number);
	return true;
}

/* Reads a text. Fails with -EINVAL if the block does not continue with one; or -ENOMEM. */
static int get_text(struct event_log_reader *reader, const char **text)
{
	const char *at;
	__u64 size;

	if (!get(reader, EVENT_LOG_MOST_TEXT, &size) || size > reader->n_bytes - reader->at)
		return -EINVAL;
	at = (const char *)reader->bytes + reader->at;
	if (memchr(at, '\0', size))
		return -EINVAL;
	reader->at += size;
	reader->defined_bytes += size + 1;
	*text = arena__string(&reader->texts, at, size);
	return *text ? 0 : -ENOMEM;
}

static __u64 most_defined(const struct event_log_reader *reader)
{
	__u64 most = DEFINED_AT_LEAST + DEFINED_PER_BYTE * reader->read_bytes;

	return most < MOST_DEFINED ? most : MOST_DEFINED;
}

/* Makes room for @n more elements of @size bytes, which the log defines. */
static int reserve(struct event_log_reader *reader, void *array, size_t *room, size_t n,
		   size_t more, size_t size)
{
	reader->defined_bytes += more * size;
	if (reader->defined_bytes > most_defined(reader))
		return -EFBIG;
	return array__reserve(array, room, n + more, size);
}

#define RESERVE(reader, array, more)                                                               \
	reserve(reader, &(reader)->array, &(reader)->array##_room, (reader)->n_##array, more,      \
		sizeof(*(reader)->array))

static int read_module(struct event_log_reader *reader)
{
	const char *build_id;
	int err = RESERVE(reader, modules, 1);

	if (!err)
		err = get_text(reader, &reader->modules[reader->n_modules]);
	if (!err)
		err = get_text(reader, &build_id);
	if (!err)
		reader->n_modules++;
	return err;
}

static int read_frame(struct event_log_reader *reader)
{
	struct event_log_frame frame;
	int err = RESERVE(reader, frames, 1);
	__u64 place;

	if (err)
		return err;
	if (!get_32(reader, reader->n_modules, &frame.module) ||
	    !get(reader, ~0ULL, &frame.offset) || !get(reader, EVENT_LOG_MAX_PLACE, &place))
		return -EINVAL;
	frame.place = place;
	reader->frames[reader->n_frames++] = frame;
	return 0;
}

static int read_stack(struct event_log_reader *reader)
{
	struct stack stack = { .first = reader->n_frame_ids };
	int err = RESERVE(reader, stacks, 1);

	if (!err)
		err = get_text(reader, &stack.end);
	if (!err && !get_32(reader, AP_MAX_DEPTH, &stack.n_frames))
		err = -EINVAL;
	if (!err)
		err = RESERVE(reader, frame_ids, stack.n_frames);
	for (__u32 i = 0; !err && i < stack.n_frames; i++) {
		__u32 *id = &reader->frame_ids[reader->n_frame_ids];

		if (!get_32(reader, reader->n_frames, id) || !*id)
			return -EINVAL;
		reader->n_frame_ids++;
	}
	if (!err)
		reader->stacks[reader->n_stacks++] = stack;
	return err;
}

static int read_process(struct event_log_reader *reader, struct event_log_item *item)
{
	struct event_log_process *process = &item->process;
	int err = RESERVE(reader, processes, 1);
	__u64 start;

	if (err)
		return err;
	*item = (struct event_log_item){ .what = EVENT_LOG_PROCESS };
	if (!get(reader, EVENT_LOG_EXECED, &start) ||
	    !get_32(reader, reader->n_processes, &process->parent) ||
	    !get_32(reader, UINT32_MAX, &process->pid) ||
	    !get_32(reader, UINT32_MAX, &process->space) ||
	    !get_32(reader, UINT32_MAX, &process->ended_space) ||
	    !get(reader, ~0ULL, &process->time_ns))
		return -EINVAL;
	process->start = start;
	err = get_text(reader, &process->comm);
	if (err)
		return err;
	reader->processes[reader->n_processes++] = *process;
	item->process_id = reader->n_processes;
	return 0;
}

static int read_site(struct event_log_reader *reader)
{
	struct event_log_site site = { 0 };
	int err = RESERVE(reader, sites, 1);

	if (!err && (!get_32(reader, reader->n_processes, &site.process) ||
		     !get_32(reader, reader->n_stacks, &site.stack)))
		err = -EINVAL;
	if (!err)
		err = get_text(reader, &site.thread);
	if (!err)
		err = get_text(reader, &site.function);
	if (!err)
		reader->sites[reader->n_sites++] = site;
	return err;
}

static int read_site_stack(struct event_log_reader *reader)
{
	__u32 site, stack;

	if (!get_32(reader, reader->n_sites, &site) || !site ||
	    !get_32(reader, reader->n_stacks, &stack))
		return -EINVAL;
	reader->sites[site - 1].stack = stack;
	return 0;
}

static int read_exit(struct event_log_reader *reader, struct event_log_item *item)
{
	struct event_log_exit *exit = &item->exit;

	*item = (struct event_log_item){ .what = EVENT_LOG_EXIT };
	return get_32(reader, reader->n_processes, &exit->process) &&
			       get_32(reader, UINT32_MAX, &exit->ended_space) &&
			       get(reader, ~0ULL, &exit->time_ns)
		       ? 0
		       : -EINVAL;
}

static int read_event(struct event_log_reader *reader, __u8 tag, struct event_log_item *item)
{
	struct event_log_event *event = &item->event;
	struct event_log_last *last = &reader->last;

	*item = (struct event_log_item){
		.what = EVENT_LOG_EVENT,
		.event = {
			.kind = tag & EVENT_LOG_KIND,
			.temporary = tag & EVENT_LOG_IS_TEMPORARY,
			.weight = 1,
			.thread = last->thread,
			.process = last->process,
		},
	};
	if (event->kind >= AP_EVENT_KINDS || !reader->events_left)
		return -EINVAL;
	if (!(tag & EVENT_LOG_SAME_THREAD) &&
	    (!get_32(reader, UINT32_MAX, &event->thread) ||
	     !get_32(reader, reader->n_processes, &event->process)))
		return -EINVAL;
	if (!get_difference(reader, last->time_ns, &event->time_ns) ||
	    !get_32(reader, reader->n_sites, &event->site) ||
	    !get_difference(reader, last->id, &event->id) ||
	    !get_difference(reader, last->address, &event->address) ||
	    !get(reader, ~0ULL, &event->size_bytes))
		return -EINVAL;
	if (event->kind == EVENT_LOG_REALLOC &&
	    (!get_32(reader, reader->n_sites, &event->old_site) ||
	     !get_difference(reader, event->address, &event->old_address) ||
	     !get(reader, ~0ULL, &event->old_size_bytes)))
		return -EINVAL;
	event->old_weight = event->kind == EVENT_LOG_REALLOC;
	if (tag & EVENT_LOG_HAS_WEIGHT &&
	    (!get_32(reader, UINT32_MAX, &event->weight) || !event->weight))
		return -EINVAL;
	if (tag & EVENT_LOG_HAS_WEIGHT && event->old_weight &&
	    (!get_32(reader, UINT32_MAX, &event->old_weight) || !event->old_weight))
		return -EINVAL;
	*last = (struct event_log_last){
		.thread = event->thread,
		.process = event->process,
		.time_ns = event->time_ns,
		.id = event->id,
		.address = event->address,
	};
	reader->events_left--;
	reader->n_events++;
	return 0;
}

/* Reads an item. Returns 1 if the caller gets it, 0 if it is a definition, or a negative errno. */
static int read_item(struct event_log_reader *reader, struct event_log_item *item)
{
	__u8 tag = reader->bytes[reader->at++];
	int err;

	if (tag & EVENT_LOG_IS_EVENT) {
		err = read_event(reader, tag, item);
		return err ? err : 1;
	}
	switch (tag) {
	case TAG_MODULE:
		return read_module(reader);
	case TAG_FRAME:
		return read_frame(reader);
	case TAG_STACK:
		return read_stack(reader);
	case TAG_SITE:
		return read_site(reader);
	case TAG_SITE_STACK:
		return read_site_stack(reader);
	case TAG_PROCESS:
		err = read_process(reader, item);
		return err ? err : 1;
	case TAG_EXIT:
		err = read_exit(reader, item);
		return err ? err : 1;
	case TAG_END:
		reader->has_ended = true;
		return get(reader, ~0ULL, &reader->n_lost) ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

int event_log_reader__next(struct event_log_reader *reader, struct event_log_item *item,
			   struct error *error)
{
	int more = 0;

	while (!more) {
		if (reader->at < reader->n_bytes) {
			more = read_item(reader, item);
			continue;
		}
		/* The header of the block has the number of its events. */
		more = reader->events_left ? -EINVAL : read_block(reader);
		if (!more)
			return 0;
		if (more > 0)
			more = 0;
	}
	switch (more) {
	case 1:
		return 1;
	case -EINVAL:
		return fail_damaged(reader, error);
	case -EFBIG:
		return error__set(
			error, -EFBIG,
			"the event log %s defines more than %llu MiB of stacks and names in "
			"its first %llu bytes; it is damaged, or made to fill the memory: "
			"record again",
			reader->path, most_defined(reader) >> 20,
			(__u64)sizeof(struct event_log_header) + reader->read_bytes);
	default:
		return fail_to_read(reader->path, more, error);
	}
}

__u64 event_log_reader__read_bytes(const struct event_log_reader *reader)
{
	return reader->read_bytes;
}

bool event_log_reader__is_complete(const struct event_log_reader *reader, __u64 *n_events,
				   __u64 *n_lost)
{
	*n_events = reader->n_events;
	*n_lost = reader->n_lost;
	return reader->has_ended && !reader->is_cut;
}

const struct event_log_site *event_log_reader__site(const struct event_log_reader *reader, __u32 id)
{
	return id && id <= reader->n_sites ? &reader->sites[id - 1] : NULL;
}

const struct event_log_process *event_log_reader__process(const struct event_log_reader *reader,
							  __u32 id)
{
	return id && id <= reader->n_processes ? &reader->processes[id - 1] : NULL;
}

bool event_log_reader__stack(const struct event_log_reader *reader, __u32 id,
			     struct event_log_stack *out)
{
	const struct stack *stack;

	if (!id || id > reader->n_stacks)
		return false;
	stack = &reader->stacks[id - 1];
	*out = (struct event_log_stack){
		.end = stack->end,
		.frames = stack->n_frames ? reader->frame_ids + stack->first : NULL,
		.n_frames = stack->n_frames,
	};
	return true;
}

const struct event_log_frame *event_log_reader__frame(const struct event_log_reader *reader,
						      __u32 id)
{
	return id && id <= reader->n_frames ? &reader->frames[id - 1] : NULL;
}

const char *event_log_reader__module(const struct event_log_reader *reader, __u32 id)
{
	return id && id <= reader->n_modules ? reader->modules[id - 1] : NULL;
}
