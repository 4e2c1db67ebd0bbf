// SPDX-License-Identifier: GPL-3.0-or-later
/* Event logs: files as they are, and blocks of items whose headers and checksums are right. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "error.h"
#include "event_blocks.h"
#include "event_log.h"
#include "event_log_format.h"
#include "filter.h"
#include "fuzz.h"
#include "profile.h"

static void read_stack(const struct event_log_reader *reader, __u32 id)
{
	const struct event_log_frame *frame;
	struct event_log_stack stack;

	if (!event_log_reader__stack(reader, id, &stack))
		return;
	fuzz__read_text(stack.end);
	for (__u32 i = 0; i < stack.n_frames; i++) {
		frame = event_log_reader__frame(reader, stack.frames[i]);
		if (frame)
			fuzz__read_text(event_log_reader__module(reader, frame->module));
	}
}

static void read_item(const struct event_log_reader *reader, const struct event_log_item *item)
{
	const struct event_log_site *site;

	if (item->what == EVENT_LOG_PROCESS)
		fuzz__read_text(item->process.comm);
	if (item->what != EVENT_LOG_EVENT)
		return;
	site = event_log_reader__site(reader, item->event.site);
	if (site) {
		fuzz__read_text(site->thread);
		fuzz__read_text(site->function);
		read_stack(reader, site->stack);
	}
}

/* Replays the log as that of a recording without calls. */
static void replay(const char *path)
{
	struct event_log_reader *reader;
	struct error error = { "" };
	struct filter_options filter = { 0 };
	const struct event_blocks_options options = { .filter = &filter, .most = 10 };
	struct profile *profile = profile__new();
	struct event_blocks blocks;

	FUZZ_CHECK(profile && !event_log_reader__open(path, &reader, &error));
	if (event_blocks__read(reader, profile, NULL, &options, &blocks, &error))
		FUZZ_CHECK(error.text[0]);
	else
		event_blocks__release(&blocks);
	event_log_reader__free(reader);
	profile__free(profile);
}

static void read_log(const void *data, size_t size)
{
	struct event_log_reader *reader;
	struct event_log_item item;
	struct error error = { "" };
	__u64 n_events, n_lost;
	const char *path;

	fuzz__file(data, size, &path);
	if (event_log_reader__open(path, &reader, &error)) {
		FUZZ_CHECK(error.text[0]);
		return;
	}
	while (event_log_reader__next(reader, &item, &error) > 0)
		read_item(reader, &item);
	event_log_reader__is_complete(reader, &n_events, &n_lost);
	event_log_reader__free(reader);
	replay(path);
}

struct log {
	struct event_log_header header;
	struct event_log_block block;
	unsigned char stored[];
};

/* A log of one block, with that many events. */
static void read_items(const uint8_t *data, size_t size, uint32_t n_events)
{
	uLongf stored = compressBound(size);
	struct log *log = calloc(1, sizeof(*log) + stored);

	FUZZ_CHECK(log && compress(log->stored, &stored, data, size) == Z_OK);
	memcpy(log->header.magic, EVENT_LOG_MAGIC, sizeof(log->header.magic));
	log->header.version = EVENT_LOG_VERSION;
	log->header.bytes = sizeof(log->header);
	log->header.crc =
		crc32(0, (unsigned char *)&log->header, offsetof(struct event_log_header, crc));
	log->block = (struct event_log_block){
		.magic = EVENT_LOG_BLOCK_MAGIC,
		.stored_bytes = stored,
		.unpacked_bytes = size,
		.n_events = n_events,
		.stored_crc = crc32(0, log->stored, stored),
	};
	log->block.crc =
		crc32(0, (unsigned char *)&log->block, offsetof(struct event_log_block, crc));
	read_log(log, sizeof(*log) + stored);
	free(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t n_events;

	if (size >= 4 && !memcmp(data, EVENT_LOG_MAGIC, 4)) {
		read_log(data, size);
	} else {
		n_events = fuzz__take(data, &size);
		read_items(data, size, n_events);
	}
	return 0;
}
