/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sends records of a hit to user space: its stack, once, as the set of sent stacks tells, and
 * calls that user space has to unwind or count. */
#ifndef ALLOCPROF_SEND_BPF_H
#define ALLOCPROF_SEND_BPF_H

#include "arch.bpf.h"
#include "blocks.bpf.h"
#include "hit.bpf.h"
#include "maps.bpf.h"
#include "python.bpf.h"
#include "sample.bpf.h"
#include "sent.bpf.h"
#include "stack.bpf.h"
#include "trampoline.bpf.h"

/* The map that programs count calls into; one entry, so that libbpf's template map is small. */
struct counts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct ap_count_key));
	__uint(value_size, sizeof(struct ap_count));
};

struct counts_maps {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct counts_map);
};

extern struct counts_maps counts SEC(".maps");

/* Counters inserted since user space swapped the maps; user space resets it. */
extern __u64 counts_inserted;

/* Sends the frames unless user space has them. Returns false if the ring buffer stays full. */
static __always_inline bool stack__send(struct scratch *scratch)
{
	struct sent_set *sent = sent__set(scratch->record.stack);
	__u32 n_frames;
	__u64 size;

	if (sent && sent__has(sent, scratch->record.stack))
		return true;
	if (scratch->python.module)
		python__send(scratch);
	stack__lay_out(scratch);
	n_frames = scratch->record.n_frames;
	if (n_frames > AP_MAX_DEPTH)
		return false;
	size = sizeof(scratch->record) + n_frames * sizeof(struct ap_frame);
	if (bpf_ringbuf_output(&ring, &scratch->record, size, ring__flags())) {
		if (scratch->walk.locked)
			return false;
		ring__await();
		if (bpf_ringbuf_output(&ring, &scratch->record, size, ring__flags()))
			return false;
	}
	if (sent)
		sent__add(sent, scratch->record.stack);
	return true;
}

static __always_inline bool count__send(const struct ap_count_key *key, const struct hit *hit)
{
	struct ap_count_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record)
		return false;
	record->type = AP_RECORD_COUNT;
	record->weight = hit->weight;
	record->key = *key;
	record->size_bytes = bytes_in_sums(hit->size_bytes);
	bpf_ringbuf_submit(record, ring__flags());
	return true;
}

static __always_inline void count__note_insertion(void)
{
	struct {
		__u32 type;
		__u32 pad;
	} record = { .type = AP_RECORD_DRAIN };

	/* If the ring buffer is full, user space reads it and then checks counts_inserted. */
	if (__sync_fetch_and_add(&counts_inserted, 1) + 1 == config.drain_at)
		bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP);
}

/*
 * Sends a stack dump, for user space to unwind. Dumps are limited by dump_below_bytes: hits in a
 * library whose table is not ready must not flood the ring buffer, which stacks and counts need.
 * Returns false if nothing was sent.
 */
static __noinline bool stack__dump(struct pt_regs *regs, struct ap_count_key *key, __u32 end,
				   const struct hit *hit)
{
	struct ap_dump_record *record;
	__u64 sp = arch__sp(regs);
	__u32 wanted, n = 0;
	char *bytes;

	if (!config.stack_dump ||
	    bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= config.dump_below_bytes)
		return false;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record) + sizeof(struct stack_copy), 0);
	if (!record)
		return false;
	record->type = AP_RECORD_DUMP;
	record->end = end;
	record->key = *key;
	record->size_bytes = bytes_in_sums(hit->size_bytes);
	record->time_ns = bpf_ktime_get_ns();
	record->weight = hit->weight;
	/* The dump gets its number only now that it is certain to be sent: user space waits for
	 * each number to arrive. */
	if (key->function & AP_FUNCTION_DUMPED)
		record->key.stack = key->stack = __sync_fetch_and_add(&live.n_dumps, 1) + 1;
	record->is_in_caller = hit->in_caller;
	record->pad = 0;
	arch__dump_registers(regs, record->registers);
	if (hit->in_caller)
		record->registers[AP_DUMP_REGISTERS - 1] = hit->return_address;
	else
		arch__dump_link(record->registers, hit->return_address);
	bytes = (char *)(record + 1);
	/* The stack is read page by page, since a read that crosses the stack's top fails as a
	 * whole. The last page may exceed config.stack_dump. */
	for (int i = 0; i <= AP_MAX_STACK_DUMP / 4096; i++) {
		wanted = 4096 - ((sp + n) & 4095);
		if (n >= AP_MAX_STACK_DUMP || n >= config.stack_dump)
			break;
		if (bpf_probe_read_user(bytes + n, wanted, (void *)(sp + n)))
			break;
		n += wanted;
	}
	trampoline__restore((struct stack_copy *)bytes, sp, n);
	record->n_bytes = n;
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	return true;
}

static __always_inline bool end__needs_user_space(__u32 end)
{
	return end == AP_END_NO_TABLE || end == AP_END_UNSUPPORTED;
}

/* Copies the thread's name, which the kernel's __set_task_comm() pads with zeros.
 * bpf_get_current_comm() takes 75 ns, see docs/cost.md. */
static __always_inline void thread_name__read(char name[AP_COMM_LEN])
{
	const struct task_struct *task = bpf_get_current_task_btf();

	for (int i = 0; i < AP_COMM_LEN; i++)
		name[i] = task->comm[i];
}

/* Sends a stack dump, from which user space finds out whether the stack has a frame of a --within
 * function. Not used with --live, where the result would come too late to follow the block. */
static __noinline bool send_undecided(struct pt_regs *ctx, struct scratch *scratch,
				      const struct hit *hit, const struct process *process)
{
	struct ap_count_key key = {
		.process = process->id,
		.function = hit->function | AP_FUNCTION_UNDECIDED,
	};

	if (config.live || !end__needs_user_space(scratch->record.end))
		return false;
	thread_name__read(key.thread);
	return stack__dump(ctx, &key, scratch->record.end, hit);
}

#endif
