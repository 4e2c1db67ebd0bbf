// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sends the events of --events. */
/* This file does not call all functions of the headers. */
#pragma clang diagnostic ignored "-Wunused-function"

#include "events.bpf.h"
#include "process.bpf.h"
#include "sample.bpf.h"
#include "waits.bpf.h"

const volatile struct ap_event_config event_config = {};

/* Number of events that were lost because the ring buffer was full. */
__u64 events_lost;
__u64 last_block_id;

extern __u32 launcher_namespace_level;

/* Returns the thread's id in the PID namespace of allocprof. */
static __noinline __u32 thread__id(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 level = launcher_namespace_level, id = task->pid;
	struct upid upid;
	struct pid *pid;

	/* Without the barrier clang merges this load with that of the other number, whose pointer
	 * is of another kind. */
	barrier_var(id);
	if (!level)
		return id;
	pid = BPF_CORE_READ(task, thread_pid);
	if (!pid || level > BPF_CORE_READ(pid, level) ||
	    bpf_core_read(&upid.nr, sizeof(upid.nr),
			  (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				  level * bpf_core_type_size(struct upid) +
				  bpf_core_field_offset(struct upid, nr)))
		return 0;
	return upid.nr;
}

/* Returns the id of the current process's program, or 0. */
static __noinline __u32 process__id(void)
{
	const struct process *process = process__current();

	return process ? process->id : 0;
}

static long events__look(__u32 index, __u64 *until_ns)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < event_config.resume_bytes ||
	       bpf_ktime_get_ns() >= *until_ns;
}

/* Returns whether the ring buffer has room for an event; with --throttle waits for room first. */
static __always_inline bool events__has_room(void)
{
	__u64 until_ns;

	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < event_config.below_bytes)
		return true;
	if (!event_config.throttle)
		return false;
	wait__for(events__look, &until_ns, &until_ns, AP_LONG_WAIT_NS);
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < event_config.below_bytes;
}

static __always_inline int event__send(__u32 kind, __u32 process, __u32 index, __u64 now, __u64 id,
				       __u64 address, __u64 size_bytes, __u32 weight)
{
	struct ap_event_record *record = NULL;
	__u64 unread;

	if (events__has_room())
		record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&events_lost, 1);
		return 0;
	}
	record->type = AP_RECORD_EVENT;
	record->kind = kind;
	record->temporary = !!(kind & EVENT_TEMPORARY);
	record->pad = 0;
	record->record = index;
	record->process = process;
	record->thread = thread__id();
	record->weight = weight;
	record->time_ns = now;
	record->id = id;
	record->address = address;
	record->size_bytes = size_bytes;
	unread = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
	/* A wake-up costs more than a record, so there is one for many records. */
	bpf_ringbuf_submit(record,
			   unread > event_config.wake_mask &&
					   (unread & event_config.wake_mask) < sizeof(*record)
				   ? BPF_RB_FORCE_WAKEUP
				   : BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline bool key__send(__u32 index, const struct ap_count_key *key)
{
	struct ap_key_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record)
		return false;
	record->type = AP_RECORD_KEY;
	record->record = index;
	record->key = *key;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return true;
}

__noinline int event__key(__u32 index, const struct ap_count_key *key)
{
	if (!key || key__send(index, key))
		return 0;
	ring__await();
	if (!key__send(index, key))
		__sync_fetch_and_add(&events_lost, 1);
	return 0;
}

__noinline int event__block(const struct ap_block *block, __u64 address, __u64 now, __u32 process,
			    __u32 kind)
{
	if (!block)
		return 0;
	return event__send(kind, process, block->record, now, block->id, address, block->size_bytes,
			   sample__times(block->weight));
}

__noinline int event__call(__u32 kind, __u32 record, __u64 address, __u64 size_bytes, __u32 weight)
{
	return event__send(kind, process__id(), record, bpf_ktime_get_ns(), 0, address, size_bytes,
			   weight);
}
