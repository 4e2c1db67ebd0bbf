// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads a jitdump record by record, and answers which code was at an address at a time. */
#include "jit_dump.h"

#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "array.h"
#include "cleanup.h"
#include "elf_host.h"
#include "jit_query.h"
#include "text.h"

#define MAGIC	0x4a695444 /* "JiTD" as a number of the writer's byte order */
#define VERSION 1
/* header.flags: the times are of the processor's counter. */
#define ARCH_TIMESTAMP 1

enum record_id {
	CODE_LOAD,
	CODE_MOVE,
	CODE_DEBUG_INFO,
	CODE_CLOSE,
};

struct header {
	__u32 magic, version;
	__u32 size; /* of the header */
	__u32 machine, pad, pid;
	__u64 time_ns, flags;
};

struct prefix {
	__u32 id, size; /* size of the record */
	__u64 time_ns;
};

/* Behind it are the name, ended by NUL, and the code. */
struct code_load {
	struct prefix prefix;
	__u32 pid, tid;
	__u64 vma, address, size, index;
};

struct code_move {
	struct prefix prefix;
	__u32 pid, tid;
	__u64 vma, from, to, size, index;
};

/* The lines of the code that is loaded next. Behind it are the entries, each with a path that NUL ends. */
struct debug_info {
	struct prefix prefix;
	__u64 address, n_entries;
};

struct debug_entry {
	__u64 address;
	__u32 line, discriminator;
};

/* LLVM and V8 write lines for the ELF file that `perf inject` makes of the code, in which a header of this size is before it. */
#define ELF_HEADER_BYTES 0x40

struct reader {
	int fd;
	__u64 end; /* of the file, when reading began */
	__u64 start;
	size_t n;
	__u8 bytes[1 << 16];
};

/* The code that a query has found, as far as the dump was read. */
struct match {
	bool is_found, is_before; /* it was there at the query's time */
	bool is_moved;		  /* its record is still to be found, by the index */
	__u64 time_ns, index;
	__u64 load, debug; /* offsets of records; 0: there is none */
	__u64 moved_by;	   /* how much lower the code was when it was loaded */
};

struct look_up {
	struct reader *reader;
	struct jit_query *queries;
	struct match *matches; /* of the queries */
	size_t n;
	bool has_times; /* of CLOCK_MONOTONIC */
	/* Some line is for code nearer to its beginning than a header is long, so that none is behind one. */
	bool has_plain_lines;
	struct debug_info debug; /* the last one */
	__u64 debug_offset;	 /* 0: there is none */
};

/* Returns @size bytes at @offset, which are valid until the next call, or NULL if the file does not have them. */
static const void *reader__get(struct reader *reader, __u64 offset, size_t size)
{
	if (size > sizeof(reader->bytes) || offset > reader->end || reader->end - offset < size)
		return NULL;
	if (offset < reader->start || offset - reader->start > reader->n ||
	    reader->n - (offset - reader->start) < size) {
		ssize_t n = pread(reader->fd, reader->bytes, sizeof(reader->bytes), offset);

		reader->start = offset;
		reader->n = n < 0 ? 0 : n;
		if (reader->n < size)
			return NULL;
	}
	return reader->bytes + (offset - reader->start);
}

static bool reader__copy(struct reader *reader, __u64 offset, void *to, size_t size)
{
	const void *bytes = reader__get(reader, offset, size);

	if (bytes)
		memcpy(to, bytes, size);
	return bytes;
}

/* Copies the beginning of the record at @offset. Returns false if it is shorter than that. */
static bool reader__copy_record(struct reader *reader, __u64 offset, void *to, size_t size)
{
	struct prefix prefix;

	if (!reader__copy(reader, offset, &prefix, sizeof(prefix)) || prefix.size < size)
		return false;
	return reader__copy(reader, offset, to, size);
}

/* Returns the text at @offset of a record that ends at @end, and sets *@length to that of @most bytes of it. Returns NULL
 * if it is not there. It is ended by a NUL, or by the record. */
static const char *reader__text(struct reader *reader, __u64 offset, __u64 end, size_t most,
				size_t *length)
{
	size_t size = end - offset < most ? end - offset : most;
	const char *text = offset < end ? reader__get(reader, offset, size) : NULL;

	if (text)
		*length = strnlen(text, size);
	return text;
}

/* Copies that text to @texts. *@out stays as it is if there is none. */
static int keep_text(struct reader *reader, __u64 offset, __u64 end, size_t most,
		     struct arena *texts, const char **out)
{
	char copy[JIT_FILE_BYTES + 1];
	const char *text;
	size_t length;

	text = reader__text(reader, offset, end, most, &length);
	if (!text || !length)
		return 0;
	memcpy(copy, text, length);
	copy[length] = '\0';
	utf8__clean(copy);
	text = arena__string(texts, copy, length);
	if (!text)
		return -ENOMEM;
	*out = text;
	return 0;
}

static bool is_better(const struct look_up *look_up, const struct match *match, __u64 time_ns,
		      bool is_before)
{
	if (!match->is_found || !look_up->has_times)
		return true;
	if (is_before != match->is_before)
		return is_before;
	return is_before ? time_ns >= match->time_ns : time_ns < match->time_ns;
}

/* Notes code that came to the addresses from @start on. */
static void note_code(struct look_up *look_up, __u64 start, __u64 size, struct match code)
{
	struct jit_query *queries = look_up->queries;
	__u64 end;

	if (__builtin_add_overflow(start, size, &end))
		return;
	for (size_t i = ARRAY_LOWER_BOUND(look_up->n, at, queries[at].address < start);
	     i < look_up->n && queries[i].address < end; i++) {
		code.is_before = code.time_ns <= queries[i].time_ns;
		if (is_better(look_up, &look_up->matches[i], code.time_ns, code.is_before))
			look_up->matches[i] = code;
	}
}

static void note_debug_info(struct look_up *look_up, __u64 offset)
{
	struct debug_entry first;

	look_up->debug_offset = 0;
	if (!reader__copy_record(look_up->reader, offset, &look_up->debug,
				 sizeof(look_up->debug)) ||
	    !look_up->debug.n_entries ||
	    look_up->debug.prefix.size < sizeof(look_up->debug) + sizeof(first) ||
	    !reader__copy(look_up->reader, offset + sizeof(look_up->debug), &first, sizeof(first)))
		return;
	look_up->debug_offset = offset;
	look_up->has_plain_lines |= first.address - look_up->debug.address < ELF_HEADER_BYTES;
}

static void note_load(struct look_up *look_up, __u64 offset)
{
	struct code_load load;

	if (reader__copy_record(look_up->reader, offset, &load, sizeof(load)))
		note_code(look_up, load.address, load.size,
			  (struct match){
				  .is_found = true,
				  .time_ns = load.prefix.time_ns,
				  .load = offset,
				  .debug = look_up->debug.address == load.address
						   ? look_up->debug_offset
						   : 0,
			  });
	look_up->debug_offset = 0;
}

static void note_move(struct look_up *look_up, __u64 offset)
{
	struct code_move move;

	if (reader__copy_record(look_up->reader, offset, &move, sizeof(move)))
		note_code(look_up, move.to, move.size,
			  (struct match){
				  .is_found = true,
				  .is_moved = true,
				  .time_ns = move.prefix.time_ns,
				  .index = move.index,
				  .moved_by = move.to,
			  });
}

static void note_record(struct look_up *look_up, __u64 offset, __u32 id)
{
	if (id == CODE_LOAD)
		note_load(look_up, offset);
	else if (id == CODE_MOVE)
		note_move(look_up, offset);
	else if (id == CODE_DEBUG_INFO)
		note_debug_info(look_up, offset);
}

/* Finds the records of code that was moved, which may have been before all of its moves. */
static void resolve_move(struct look_up *look_up, __u64 offset, __u32 id)
{
	struct code_load load;

	if (id == CODE_DEBUG_INFO)
		note_debug_info(look_up, offset);
	if (id != CODE_LOAD || !reader__copy_record(look_up->reader, offset, &load, sizeof(load)))
		return;
	for (size_t i = 0; i < look_up->n; i++) {
		struct match *match = &look_up->matches[i];

		if (!match->is_moved || match->index != load.index)
			continue;
		match->is_moved = false;
		match->load = offset;
		match->moved_by -= load.address;
		match->debug = look_up->debug.address == load.address ? look_up->debug_offset : 0;
	}
	look_up->debug_offset = 0;
}

/* Calls @visit with each record. */
static void visit_records(struct look_up *look_up, __u64 offset,
			  void (*visit)(struct look_up *look_up, __u64 offset, __u32 id))
{
	struct reader *reader = look_up->reader;
	struct prefix prefix;

	look_up->debug_offset = 0;
	while (reader__copy(reader, offset, &prefix, sizeof(prefix))) {
		if (prefix.size < sizeof(prefix) || reader->end - offset < prefix.size ||
		    prefix.id == CODE_CLOSE)
			return;
		visit(look_up, offset, prefix.id);
		offset += prefix.size;
	}
}

/* Finds the line of @address among the entries of the record at @offset: that with the greatest address up to it. */
static int find_line(struct look_up *look_up, __u64 offset, __u64 address, struct arena *texts,
		     struct jit_query *query)
{
	struct reader *reader = look_up->reader;
	__u64 end, file = 0, found_file = 0, best = 0;
	struct debug_entry entry;
	struct debug_info info;
	const char *name;
	size_t length;

	if (!reader__copy_record(reader, offset, &info, sizeof(info)))
		return 0;
	end = offset + info.prefix.size;
	offset += sizeof(info);
	if (!look_up->has_plain_lines)
		address += ELF_HEADER_BYTES;
	for (__u64 i = 0; i < info.n_entries; i++) {
		if (offset >= end || end - offset < sizeof(entry) ||
		    !reader__copy(reader, offset, &entry, sizeof(entry)))
			break;
		offset += sizeof(entry);
		name = reader__text(reader, offset, end, JIT_FILE_BYTES, &length);
		if (!name || length == JIT_FILE_BYTES)
			break;
		/* This stands for the path of the entry before it. */
		if (length != 1 || *name != '\xff')
			file = offset;
		offset += length + 1;
		if (entry.address > address || entry.address < best || !entry.line ||
		    entry.line > INT32_MAX)
			continue;
		best = entry.address;
		found_file = file;
		query->line = entry.line;
	}
	return found_file ? keep_text(reader, found_file, end, JIT_FILE_BYTES, texts, &query->file)
			  : 0;
}

/* Returns whether a line in @file can be the code's. V8's names have the file. In code that it has optimized, "JS:*" or
 * "JS:+", it gives the lines of functions that it compiled into another one as lines of that one's file; and Node 20
 * writes paths of other code from memory that V8 has freed. */
static bool is_line_of(const char *name, const char *file)
{
	if (strncmp(name, "JS:", 3) != 0)
		return true;
	return name[3] != '*' && name[3] != '+' && strstr(name, file);
}

static int answer(struct look_up *look_up, size_t i, struct arena *texts)
{
	struct jit_query *query = &look_up->queries[i];
	const struct match *match = &look_up->matches[i];
	struct code_load load;
	int err;

	if (!match->load || !reader__copy(look_up->reader, match->load, &load, sizeof(load)))
		return 0;
	err = keep_text(look_up->reader, match->load + sizeof(load), match->load + load.prefix.size,
			JIT_NAME_BYTES, texts, &query->name);
	if (!err && query->name && match->debug)
		err = find_line(look_up, match->debug, query->address - match->moved_by, texts,
				query);
	if (query->file && !is_line_of(query->name, query->file))
		query->file = NULL;
	if (!query->file)
		query->line = 0;
	return err;
}

static bool has_moved(const struct look_up *look_up)
{
	for (size_t i = 0; i < look_up->n; i++)
		if (look_up->matches[i].is_moved)
			return true;
	return false;
}

int jit_dump__look_up(int fd, struct jit_query *queries, size_t n, struct arena *texts)
{
	_cleanup_(free_ptr) struct reader *reader = calloc(1, sizeof(*reader));
	_cleanup_(free_ptr) struct match *matches = calloc(n + 1, sizeof(*matches));
	struct look_up look_up = {
		.reader = reader, .queries = queries, .matches = matches, .n = n
	};
	struct header header;
	struct stat st;
	int err = 0;

	if (!reader || !matches)
		return -ENOMEM;
	if (fstat(fd, &st))
		return -errno;
	reader->fd = fd;
	reader->end = st.st_size;
	/* It has just been made. */
	if (!st.st_size)
		return 0;
	if (!reader__copy(reader, 0, &header, sizeof(header)) || header.magic != MAGIC ||
	    header.version != VERSION || header.size < sizeof(header) ||
	    header.machine != elf_host.machine)
		return -ENOEXEC;
	look_up.has_times = !(header.flags & ARCH_TIMESTAMP);
	visit_records(&look_up, header.size, note_record);
	if (has_moved(&look_up))
		visit_records(&look_up, header.size, resolve_move);
	for (size_t i = 0; i < n && !err; i++)
		err = answer(&look_up, i, texts);
	return err;
}
