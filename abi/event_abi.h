/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of the ring buffer with --events. */
#ifndef ALLOCPROF_EVENT_ABI_H
#define ALLOCPROF_EVENT_ABI_H

#include "record_abi.h"

/* Kinds of events; the event log and its reader use the same numbers. */
enum ap_event_kind {
	AP_EVENT_ALLOC, /* a call returned a block, which is followed */
	AP_EVENT_FREE,	/* a block ended */
	/* A block ended because realloc returned another one: the thread's next event is the
	 * AP_EVENT_ALLOC of that one, with the same id. */
	AP_EVENT_MOVED,
	/* A block had ended unseen: its address was returned again. */
	AP_EVENT_UNSEEN,
	AP_EVENT_FAILED,     /* a call returned no memory */
	AP_EVENT_RELEASED,   /* a realloc(p, 0) that freed p and returned NULL */
	AP_EVENT_UNTRACKED,  /* a call whose result is unknown, or whose block is not followed */
	AP_EVENT_UNFINISHED, /* a call that did not return */
	AP_EVENT_NOOP,	     /* a free or realloc of a block that is not followed */
	AP_EVENT_KINDS,
};

struct ap_event_record {
	__u32 type;	  /* AP_RECORD_EVENT */
	__u8 kind;	  /* enum ap_event_kind */
	__u8 temporary;	  /* 1: the block ended before the thread's next allocation */
	__u16 pad;	  /* 0 */
	__u32 record;	  /* index of the record that counts the call, or the block that ended */
	__u32 process;	  /* program of the thread; 0: the program of the record */
	__u32 thread;	  /* id in the PID namespace of allocprof */
	__u32 weight;	  /* calls or blocks that it stands for; 1 without sampling */
	__u64 time_ns;	  /* CLOCK_MONOTONIC */
	__u64 id;	  /* id of the block, from 1; realloc keeps it; 0: no block is followed */
	__u64 address;	  /* address of the block, or the argument of AP_EVENT_NOOP; else 0 */
	__u64 size_bytes; /* requested bytes; 0 for AP_EVENT_NOOP */
};

/* A record has got @key. This comes before all events that refer to its index. */
struct ap_key_record {
	__u32 type; /* AP_RECORD_KEY */
	__u32 record;
	struct ap_count_key key;
};

/* Read-only settings, set before load. */
struct ap_event_config {
	__u32 enabled;	/* 1: events are sent */
	__u32 throttle; /* 1: a hit waits, within limits, before it loses its event */
	/* Events are sent only while fewer ring buffer bytes are unread: the rest is for records
	 * that the profile needs. */
	__u32 below_bytes;
	__u32 resume_bytes; /* with @throttle: a hit waits until fewer bytes are unread */
	__u32 wake_mask; /* user space is woken whenever a multiple of this + 1 bytes is unread */
};

#endif
