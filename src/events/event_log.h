/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log of all events of a recording, allocprof-events(5), in compressed blocks of items. It
 * defines everything to which its events refer, so that it can be read without the data file, up
 * to its last block. Ids of modules, frames, stacks and processes are those of the data file; all
 * count from 1.
 */
#ifndef ALLOCPROF_EVENT_LOG_H
#define ALLOCPROF_EVENT_LOG_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "event_abi.h"

struct error;

/* Bytes of the id by which a data file and its log recognise each other. */
#define EVENT_LOG_ID_BYTES 16

struct event_log_id {
	unsigned char bytes[EVENT_LOG_ID_BYTES];
};

/* The id as 32 hexadecimal digits, as in the data file's meta "events_id". */
struct event_log_id_text {
	char text[2 * EVENT_LOG_ID_BYTES + 1];
};

struct event_log_id_text event_log_id__text(const struct event_log_id *id);

/* Returns the path of a data file's log, which the caller frees; NULL if there is no memory. */
char *event_log__path(const char *data_path);

/* A realloc that has moved a block, or left it where it was: AP_EVENT_MOVED and AP_EVENT_ALLOC in
 * one. */
#define EVENT_LOG_REALLOC AP_EVENT_MOVED

struct event_log_event {
	__u8 kind;	/* enum ap_event_kind or EVENT_LOG_REALLOC */
	bool temporary; /* the block that ended was freed before the thread's next allocation */
	__u32 thread;	/* id of the thread */
	__u32 process;	/* 0: unknown */
	__u32 site;	/* site of the call, or of the block that ended; 0: none */
	__u64 time_ns;	/* CLOCK_MONOTONIC */
	__u64 id;	/* id of the block; 0: none */
	__u64 address;
	__u64 size_bytes;
	/* How many calls or blocks it stands for; with sampling it may be more than 1. */
	__u32 weight;
	/* The block as it was before an EVENT_LOG_REALLOC; 0 for other kinds. */
	__u32 old_site, old_weight;
	__u64 old_address, old_size_bytes;
};

/* The place of calls: what a count of the data file counts. */
struct event_log_site {
	__u32 process;
	__u32 stack;	      /* 0: not known when the log ended */
	const char *thread;   /* name of the thread */
	const char *function; /* function of the allocator */
};

enum event_log_start {
	EVENT_LOG_SEEN, /* the program ran before the recording, or its start was not noticed */
	EVENT_LOG_FORKED,
	EVENT_LOG_EXECED,
};

/* The start of a program. */
struct event_log_process {
	__u8 start;   /* enum event_log_start */
	__u32 parent; /* program that forked or executed it, or 0 */
	__u32 pid;
	__u32 space; /* number of its address space */
	/* EXECED: address space of the program before, whose blocks ended with it; else 0. */
	__u32 ended_space;
	__u64 time_ns;
	const char *comm;
};

/* The end of a program that no exec has ended. */
struct event_log_exit {
	__u32 process;
	__u32 ended_space; /* address space that no process uses any more, or 0 */
	__u64 time_ns;
};

/* Which blocks a log has: those of which @has is true, which gets the name of the thread that allocated the block. */
struct event_log_choice {
	const char *text; /* the expression, for people; owned by the caller */
	bool (*has)(void *context, const char *thread, __u64 size_bytes);
	void *context;
};

/* Results of a recording's log. */
struct event_log_results {
	bool is_logged;	    /* there is a log; else all fields are 0 */
	__u64 logged;	    /* number of events in the file */
	__u64 lost;	    /* number of events that did not get into the log */
	__u64 left_out;	    /* number of events of blocks that were not chosen */
	const char *choice; /* the expression of the choice; NULL: all blocks are in the log */
	int err;	    /* negative errno of the write that ended the log early, or 0 */
	struct event_log_id_text id;
};

struct event_log_writer;

/* Creates a log, which gets the name @path with its first block; an older one then becomes
 * "<path>.old". Returns 0 or a negative errno with @error set. */
int event_log_writer__new(const char *path, struct event_log_writer **out, struct error *error);
/* Frees @writer, without writing anything. Accepts NULL. */
void event_log_writer__free(struct event_log_writer *writer);
const struct event_log_id *event_log_writer__id(const struct event_log_writer *writer);

/*
 * Each function adds a definition, which gets the next id, or another item. Returns 0, -ENOMEM, or
 * the negative errno of the first write that failed; after that nothing is written.
 */
int event_log_writer__module(struct event_log_writer *writer, const char *path,
			     const char *build_id);
/* @place is an enum profile_place. */
int event_log_writer__frame(struct event_log_writer *writer, __u32 module, __u64 offset,
			    __u8 place);
/* @end is the name of an enum ap_stack_end. */
int event_log_writer__stack(struct event_log_writer *writer, const char *end, const __u32 *frames,
			    __u32 n_frames);
int event_log_writer__process(struct event_log_writer *writer,
			      const struct event_log_process *process);
int event_log_writer__site(struct event_log_writer *writer, const struct event_log_site *site);
/* Adds the stack of a site that had none. */
int event_log_writer__set_stack(struct event_log_writer *writer, __u32 site, __u32 stack);
int event_log_writer__exit(struct event_log_writer *writer, const struct event_log_exit *exit);
int event_log_writer__event(struct event_log_writer *writer, const struct event_log_event *event);
/* Writes the items that were added to the file. */
int event_log_writer__flush(struct event_log_writer *writer);
/* Ends the log, which is complete except for @n_lost events. */
int event_log_writer__end(struct event_log_writer *writer, __u64 n_lost);
/* Returns the number of events in the file; *@n_failed: of those that were not written because of
 * an error. */
__u64 event_log_writer__written(const struct event_log_writer *writer, __u64 *n_failed);

/* Returns the first error of the functions above, or 0. */
int event_log_writer__error(const struct event_log_writer *writer);

/* Opens a log for reading. Returns 0 or a negative errno with @error set; -EINVAL: it is damaged,
 * or no log. */
struct event_log_reader;
int event_log_reader__open(const char *path, struct event_log_reader **out, struct error *error);
void event_log_reader__free(struct event_log_reader *reader);
const struct event_log_id *event_log_reader__id(const struct event_log_reader *reader);

struct event_log_item {
	enum {
		EVENT_LOG_EVENT,
		EVENT_LOG_PROCESS,
		EVENT_LOG_EXIT,
	} what;
	__u32 process_id; /* id of the process, for EVENT_LOG_PROCESS */
	union {
		struct event_log_event event;
		struct event_log_process process;
		struct event_log_exit exit;
	};
};

/* Stores the next item; other definitions are taken in without being returned. Returns 1, 0 at the
 * end, -EINVAL if the log is damaged there, or another negative errno; @error is set. */
int event_log_reader__next(struct event_log_reader *reader, struct event_log_item *item,
			   struct error *error);
/* Returns how many bytes of the file were read. */
__u64 event_log_reader__read_bytes(const struct event_log_reader *reader);
/* To be called at the end. Stores how many events were read, and returns whether the log says that
 * it is complete; then *@n_lost events are missing. Otherwise it was cut off, and only its whole
 * blocks were read. */
bool event_log_reader__is_complete(const struct event_log_reader *reader, __u64 *n_events,
				   __u64 *n_lost);

/* Return what ids of items mean, as far as the log was read; NULL for 0 and for unknown ids. */
const struct event_log_site *event_log_reader__site(const struct event_log_reader *reader,
						    __u32 id);
const struct event_log_process *event_log_reader__process(const struct event_log_reader *reader,
							  __u32 id);

/* The largest enum profile_place. */
#define EVENT_LOG_MAX_PLACE 2

struct event_log_frame {
	__u32 module; /* 0: it is unknown, and @offset is an address of the process */
	__u8 place;   /* enum profile_place */
	__u64 offset; /* ELF virtual address */
};

struct event_log_stack {
	const char *end;
	const __u32 *frames;
	__u32 n_frames;
};

bool event_log_reader__stack(const struct event_log_reader *reader, __u32 id,
			     struct event_log_stack *out);
const struct event_log_frame *event_log_reader__frame(const struct event_log_reader *reader,
						      __u32 id);
/* Returns a module's path. */
const char *event_log_reader__module(const struct event_log_reader *reader, __u32 id);

#endif
