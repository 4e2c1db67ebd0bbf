// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes the log of events. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "event_log.h"
#include "event_log_format.h"
#include "file.h"
#include "leb128.h"
#include "new_file.h"

/* zlib's fastest level: a busy thread makes a million events in two seconds. */
#define COMPRESSION 1

struct event_log_writer {
	char *path;
	struct new_file file;
	bool is_named; /* the file is at its path, which it gets with the first block */
	int err;       /* error of the first write that failed */
	struct event_log_id id;
	struct event_log_last last;
	unsigned char *bytes, *stored;
	size_t n_bytes, room, stored_room;
	__u32 n_events; /* number of events in the current block */
	__u64 n_written, n_failed;
};

struct event_log_id_text event_log_id__text(const struct event_log_id *id)
{
	struct event_log_id_text text;

	for (size_t i = 0; i < EVENT_LOG_ID_BYTES; i++)
		snprintf(text.text + 2 * i, 3, "%02x", id->bytes[i]);
	return text;
}

char *event_log__path(const char *data_path)
{
	_cleanup_(free_ptr) char *named = NULL;
	char *path;

	if (directory_entry__name(data_path, &named))
		return NULL;
	return asprintf(&path, "%s.events", named) < 0 ? NULL : path;
}

static int fail_to_create(const char *path, int err, struct error *error)
{
	return error__set(
		error, err,
		"cannot write the event log %s: %s; write the data file elsewhere with -o", path,
		new_file__reason(err));
}

/* Creates the log. An older log is kept until this one has a block. */
static int create(struct event_log_writer *writer, const char *path, struct error *error)
{
	struct stat st;
	int err;

	if (!lstat(path, &st) && !S_ISREG(st.st_mode))
		return error__set(error, -EINVAL,
				  "cannot write the event log %s: it is not a regular file; write "
				  "the data file elsewhere with -o",
				  path);
	writer->path = strdup(path);
	err = writer->path ? new_file__begin(&writer->file, path) : -ENOMEM;
	return err ? fail_to_create(path, err, error) : 0;
}

static int write_header(struct event_log_writer *writer)
{
	struct event_log_header header = {
		.version = EVENT_LOG_VERSION,
		.bytes = sizeof(header),
		.start_realtime_ns = clock__ns(CLOCK_REALTIME),
	};

	if (getrandom(writer->id.bytes, sizeof(writer->id.bytes), 0) !=
	    (ssize_t)sizeof(writer->id.bytes))
		return -EIO;
	memcpy(header.magic, EVENT_LOG_MAGIC, sizeof(header.magic));
	memcpy(header.id, writer->id.bytes, sizeof(header.id));
	header.crc =
		crc32(0, (const unsigned char *)&header, offsetof(struct event_log_header, crc));
	return fd__write_all(writer->file.fd, &header, sizeof(header));
}

int event_log_writer__new(const char *path, struct event_log_writer **out, struct error *error)
{
	struct event_log_writer *writer = calloc(1, sizeof(*writer));
	int err;

	if (!writer)
		return fail_to_create(path, -ENOMEM, error);
	writer->file = NEW_FILE_NONE;
	err = create(writer, path, error);
	if (!err) {
		err = write_header(writer);
		if (err)
			fail_to_create(path, err, error);
	}
	if (err) {
		event_log_writer__free(writer);
		return err;
	}
	*out = writer;
	return 0;
}

void event_log_writer__free(struct event_log_writer *writer)
{
	if (!writer)
		return;
	new_file__release(&writer->file);
	free(writer->path);
	free(writer->bytes);
	free(writer->stored);
	free(writer);
}

const struct event_log_id *event_log_writer__id(const struct event_log_writer *writer)
{
	return &writer->id;
}

static int write_block(struct event_log_writer *writer)
{
	uLongf stored = compressBound(writer->n_bytes);
	struct event_log_block *block;
	int err;

	if (array__reserve(&writer->stored, &writer->stored_room, sizeof(*block) + stored, 1))
		return -ENOMEM;
	block = (struct event_log_block *)writer->stored;
	if (compress2((unsigned char *)(block + 1), &stored, writer->bytes, writer->n_bytes,
		      COMPRESSION) != Z_OK)
		return -ENOMEM;
	*block = (struct event_log_block){
		.magic = EVENT_LOG_BLOCK_MAGIC,
		.stored_bytes = stored,
		.unpacked_bytes = writer->n_bytes,
		.n_events = writer->n_events,
		.first_event = writer->n_written,
		.stored_crc = crc32(0, (const unsigned char *)(block + 1), stored),
	};
	block->crc = crc32(0, (const unsigned char *)block, offsetof(struct event_log_block, crc));
	/* Header and data are written together: a reader recognises a block that was cut off, but
	 * not blocks behind it. */
	err = fd__write_all(writer->file.fd, block, sizeof(*block) + stored);
	if (!err && !writer->is_named) {
		err = new_file__finish_keeping(&writer->file);
		writer->is_named = !err;
	}
	if (!err)
		writer->n_written += writer->n_events;
	return err;
}

int event_log_writer__flush(struct event_log_writer *writer)
{
	if (!writer->n_bytes)
		return writer->err;
	if (!writer->err)
		writer->err = write_block(writer);
	if (writer->err)
		writer->n_failed += writer->n_events;
	writer->n_bytes = 0;
	writer->n_events = 0;
	writer->last = (struct event_log_last){ 0 };
	return writer->err;
}

/* Returns where @size bytes of an item can be written, or NULL. */
static unsigned char *begin(struct event_log_writer *writer, size_t size)
{
	if (writer->n_bytes >= EVENT_LOG_FULL_BYTES)
		event_log_writer__flush(writer);
	if (writer->err)
		return NULL;
	if (array__reserve(&writer->bytes, &writer->room, writer->n_bytes + size, 1)) {
		writer->err = -ENOMEM;
		return NULL;
	}
	return writer->bytes + writer->n_bytes;
}

static int finish(struct event_log_writer *writer, const unsigned char *end)
{
	writer->n_bytes = end - writer->bytes;
	return 0;
}

static size_t text_size(const char *text)
{
	return strnlen(text, EVENT_LOG_MOST_TEXT);
}

static unsigned char *put_text(unsigned char *to, const char *text)
{
	size_t size = text_size(text);

	to = leb128__put(to, size);
	memcpy(to, text, size);
	return to + size;
}

int event_log_writer__module(struct event_log_writer *writer, const char *path,
			     const char *build_id)
{
	unsigned char *to = begin(writer, 1 + 2 * (LEB128_MAX + EVENT_LOG_MOST_TEXT));

	if (!to)
		return writer->err;
	*to++ = TAG_MODULE;
	to = put_text(to, path);
	return finish(writer, put_text(to, build_id));
}

int event_log_writer__frame(struct event_log_writer *writer, __u32 module, __u64 offset, __u8 place)
{
	unsigned char *to = begin(writer, 1 + 3 * LEB128_MAX);

	if (!to)
		return writer->err;
	*to++ = TAG_FRAME;
	to = leb128__put(to, module);
	to = leb128__put(to, offset);
	return finish(writer, leb128__put(to, place));
}

int event_log_writer__stack(struct event_log_writer *writer, const char *end, const __u32 *frames,
			    __u32 n_frames)
{
	unsigned char *to =
		begin(writer, 1 + EVENT_LOG_MOST_TEXT + (size_t)(n_frames + 2) * LEB128_MAX);

	if (!to)
		return writer->err;
	*to++ = TAG_STACK;
	to = put_text(to, end);
	to = leb128__put(to, n_frames);
	for (__u32 i = 0; i < n_frames; i++)
		to = leb128__put(to, frames[i]);
	return finish(writer, to);
}

int event_log_writer__process(struct event_log_writer *writer,
			      const struct event_log_process *process)
{
	unsigned char *to = begin(writer, 1 + EVENT_LOG_MOST_TEXT + 7 * LEB128_MAX);

	if (!to)
		return writer->err;
	*to++ = TAG_PROCESS;
	to = leb128__put(to, process->start);
	to = leb128__put(to, process->parent);
	to = leb128__put(to, process->pid);
	to = leb128__put(to, process->space);
	to = leb128__put(to, process->ended_space);
	to = leb128__put(to, process->time_ns);
	return finish(writer, put_text(to, process->comm));
}

int event_log_writer__site(struct event_log_writer *writer, const struct event_log_site *site)
{
	unsigned char *to = begin(writer, 1 + 2 * EVENT_LOG_MOST_TEXT + 4 * LEB128_MAX);

	if (!to)
		return writer->err;
	*to++ = TAG_SITE;
	to = leb128__put(to, site->process);
	to = leb128__put(to, site->stack);
	to = put_text(to, site->thread);
	return finish(writer, put_text(to, site->function));
}

int event_log_writer__set_stack(struct event_log_writer *writer, __u32 site, __u32 stack)
{
	unsigned char *to = begin(writer, 1 + 2 * LEB128_MAX);

	if (!to)
		return writer->err;
	*to++ = TAG_SITE_STACK;
	to = leb128__put(to, site);
	return finish(writer, leb128__put(to, stack));
}

int event_log_writer__exit(struct event_log_writer *writer, const struct event_log_exit *exit)
{
	unsigned char *to = begin(writer, 1 + 3 * LEB128_MAX);

	if (!to)
		return writer->err;
	*to++ = TAG_EXIT;
	to = leb128__put(to, exit->process);
	to = leb128__put(to, exit->ended_space);
	return finish(writer, leb128__put(to, exit->time_ns));
}

int event_log_writer__event(struct event_log_writer *writer, const struct event_log_event *event)
{
	unsigned char *to = begin(writer, 1 + 12 * LEB128_MAX);
	bool is_realloc = event->kind == EVENT_LOG_REALLOC;
	bool has_weight = event->weight != 1 || (is_realloc && event->old_weight != 1);
	struct event_log_last *last = &writer->last;
	bool same = last->thread == event->thread && last->process == event->process;

	if (!to) {
		writer->n_failed++;
		return writer->err;
	}
	*to++ = EVENT_LOG_IS_EVENT | event->kind | (same ? EVENT_LOG_SAME_THREAD : 0) |
		(event->temporary ? EVENT_LOG_IS_TEMPORARY : 0) |
		(has_weight ? EVENT_LOG_HAS_WEIGHT : 0);
	if (!same) {
		to = leb128__put(to, event->thread);
		to = leb128__put(to, event->process);
	}
	to = leb128__put(to, zigzag__from(event->time_ns - last->time_ns));
	to = leb128__put(to, event->site);
	to = leb128__put(to, zigzag__from(event->id - last->id));
	to = leb128__put(to, zigzag__from(event->address - last->address));
	to = leb128__put(to, event->size_bytes);
	if (is_realloc) {
		to = leb128__put(to, event->old_site);
		to = leb128__put(to, zigzag__from(event->old_address - event->address));
		to = leb128__put(to, event->old_size_bytes);
	}
	if (has_weight)
		to = leb128__put(to, event->weight);
	if (has_weight && is_realloc)
		to = leb128__put(to, event->old_weight);
	*last = (struct event_log_last){
		.thread = event->thread,
		.process = event->process,
		.time_ns = event->time_ns,
		.id = event->id,
		.address = event->address,
	};
	writer->n_events++;
	return finish(writer, to);
}

int event_log_writer__end(struct event_log_writer *writer, __u64 n_lost)
{
	unsigned char *to;

	/* This makes known how many events could not be written. */
	event_log_writer__flush(writer);
	to = begin(writer, 1 + LEB128_MAX);
	if (!to)
		return writer->err;
	*to++ = TAG_END;
	finish(writer, leb128__put(to, n_lost));
	return event_log_writer__flush(writer);
}

__u64 event_log_writer__written(const struct event_log_writer *writer, __u64 *n_failed)
{
	*n_failed = writer->n_failed;
	return writer->n_written;
}

int event_log_writer__error(const struct event_log_writer *writer)
{
	return writer->err;
}
