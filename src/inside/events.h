/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* With --events: reports each call, and each end of a block, to allocprof through shared memory. */
#ifndef ALLOCPROF_INSIDE_EVENTS_H
#define ALLOCPROF_INSIDE_EVENTS_H

#include "process.h"

/* To be called when a program begins, also in a forked child. */
void events__begin(struct inside_program *program);

/* Returns a new record number of the thread's, whose key allocprof can look up; 0 if there are as
 * many records as are allowed, or there is no memory. @frames: where the stack was published; 0
 * without stacks. */
__u32 events__new_record(const struct thread *thread, __u64 stack, __u64 frames, __u32 function);

/* The place of an event that has happened, and is to be logged. */
struct event {
	struct inside_event *at; /* NULL: the event is lost, and counted as such */
	__u64 number;
};

/*
 * The caller of the functions below has claimed @thread.
 *
 * event__take() takes a place and the next number. A call that returns a block takes them before
 * another thread could end the block. With --throttle it waits for allocprof if there is no room.
 */
struct event event__take(struct thread *thread);

/* A call has returned @block at @address. @old: realloc's old block, which was at @old_address, or
 * NULL. @is_followed: else its end will not be seen. */
void event__log_begin(struct thread *thread, const struct event *event,
		      const struct ap_block *block, __u64 address, const struct ap_block *old,
		      __u64 old_address, bool is_followed);

/* @block has ended before @now, since its address was returned again. */
void event__log_unseen(struct thread *thread, const struct event *event,
		       const struct ap_block *block, __u64 address, __u64 now);

/* @block was freed. To be called when it is out of the table, and before the allocator frees it. */
void event__log_end(struct thread *thread, const struct ap_block *block, __u64 address, __u64 now);

/* A call without a block, at birth_ns of @block. */
void event__log_call(struct thread *thread, enum ap_event_kind kind, const struct ap_block *block,
		     __u64 address);

/* Counts an event of a call that has no memory of a thread to itself. */
void events__lose(void);

#endif
