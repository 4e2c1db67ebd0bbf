/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What goes to user space of a hit: its stack once, and what user space has to unwind or count itself. */
#ifndef ALLOCPROF_SEND_BPF_H
#define ALLOCPROF_SEND_BPF_H

#include "hit.bpf.h"
#include "sample.bpf.h"
#include "sent.bpf.h"
#include "stack.bpf.h"
#include "waits.bpf.h"
#include "within.bpf.h"

#define COUNTS_MAP(n)                                                                              \
	{                                                                                          \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, n);                                                            \
		__type(key, struct ap_count_key);                                                  \
		__type(value, struct ap_count);                                                    \
	}

/* One is counted into while user space reads the other: a counter that a program can reach is never
 * read and removed. */
struct COUNTS_MAP(65536) counts_a SEC(".maps"), counts_b SEC(".maps");

/* What these two are like is told by a map that libbpf makes for it, with all its entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct COUNTS_MAP(1));
} counts SEC(".maps") = {
	.values = { (void *)&counts_a },
};

/* Counters that were inserted since the maps were swapped; user space sets it back. */
__u64 counts_inserted;

/* Wakes user space only when there is something to do: a wake-up costs more than a record. */
static __always_inline __u64 ring__flags(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= config.wake_at_bytes
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

static long ring__look(__u32 index, __u64 *until_ns)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < config.wait_below_bytes ||
	       bpf_ktime_get_ns() >= *until_ns;
}

/* Waits until user space has read most of what is there, for a while. */
__noinline int ring__await(void)
{
	__u64 until_ns;

	if (config.wait_below_bytes)
		wait__for(ring__look, &until_ns, &until_ns, AP_LONG_WAIT_NS);
	return 0;
}

/* Hands the frames to user space unless it has them. False where the ring buffer is full and stays so. */
static __always_inline bool stack__send(struct scratch *scratch)
{
	struct sent_set *sent = sent__set(scratch->record.stack);
	__u32 n_frames = scratch->record.n_frames;
	__u64 size;

	if (sent && sent__has(sent, scratch->record.stack))
		return true;
	if (n_frames > AP_MAX_DEPTH)
		return false;
	stack__lay_out(scratch);
	size = sizeof(scratch->record) + n_frames * sizeof(struct ap_frame);
	if (bpf_ringbuf_output(&ring, &scratch->record, size, ring__flags())) {
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
	record->size_bytes = hit->size_bytes;
	bpf_ringbuf_submit(record, ring__flags());
	return true;
}

static __always_inline void count__note_insertion(void)
{
	struct {
		__u32 type;
		__u32 pad;
	} record = { .type = AP_RECORD_DRAIN };

	/* Where the ring buffer is full user space reads it, and then this counter. */
	if (__sync_fetch_and_add(&counts_inserted, 1) + 1 == config.drain_at)
		bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP);
}

/* Return probes of one stack whose addresses are put back; each costs the verifier some hundred steps. */
#define DUMP_MENDED_CALLS 16

/* Puts return addresses back that return probes have taken the place of. */
static __always_inline void dump__mend(char *bytes, __u64 sp, __u32 n)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_instance *instance = task->utask->return_instances;

	for (int i = 0; i < DUMP_MENDED_CALLS && instance; i++) {
		__u64 offset = instance->stack - sp;

		barrier_var(offset);
		if (offset < n && offset <= AP_MAX_STACK_DUMP && !(offset & 7))
			*(__u64 *)(bytes + offset) = instance->orig_ret_vaddr;
		instance = instance->next;
	}
}

/*
 * Sends the registers and the bytes of stack, for user space to unwind, where the tables did not
 * suffice. Bounded: a library whose table is not ready yet must not flood the ring buffer, in which
 * stacks and counts need room. False where it was not sent.
 */
static __noinline bool stack__dump(struct pt_regs *regs, struct ap_count_key *key, __u32 end,
				   const struct hit *hit)
{
	struct ap_dump_record *record;
	__u64 sp = hit->in_caller ? arch__caller_sp(hit->sp) : hit->sp;
	__u32 wanted, n = 0;
	char *bytes;

	if (!config.stack_dump ||
	    bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= config.dump_below_bytes)
		return false;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record) + AP_MAX_STACK_DUMP + 4096, 0);
	if (!record)
		return false;
	record->type = AP_RECORD_DUMP;
	record->end = end;
	record->key = *key;
	record->size_bytes = hit->size_bytes;
	record->time_ns = bpf_ktime_get_ns();
	record->weight = hit->weight;
	/* Not before there is room: user space waits for no number that is never sent. */
	if (key->function & AP_FUNCTION_DUMPED)
		record->key.stack = key->stack = __sync_fetch_and_add(&live.n_dumps, 1) + 1;
	record->is_in_caller = hit->in_caller;
	record->pad = 0;
	arch__dump_registers(regs, record->registers);
	if (hit->in_caller)
		record->registers[AP_DUMP_REGISTERS - 1] = hit->return_address;
	bytes = (char *)(record + 1);
	/* Page by page: a read that crosses the stack's top fails as a whole. The last page may end
	 * behind what was asked for. */
	for (int i = 0; i <= AP_MAX_STACK_DUMP / 4096; i++) {
		wanted = 4096 - ((sp + n) & 4095);
		if (n >= AP_MAX_STACK_DUMP || n >= config.stack_dump)
			break;
		if (bpf_probe_read_user(bytes + n, wanted, (void *)(sp + n)))
			break;
		n += wanted;
	}
	dump__mend(bytes, sp, n);
	record->n_bytes = n;
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	return true;
}

static __always_inline bool end__needs_user_space(__u32 end)
{
	return end == AP_END_NO_TABLE || end == AP_END_UNSUPPORTED;
}

/* The thread's name, padded with zeros as the kernel's __set_task_comm() leaves it; bpf_get_current_comm()
 * takes 75 ns for the same, see docs/cost.md. */
static __always_inline void thread_name__read(char name[AP_COMM_LEN])
{
	const struct task_struct *task = bpf_get_current_task_btf();

	for (int i = 0; i < AP_COMM_LEN; i++)
		name[i] = task->comm[i];
}

/* A call that may be within, for user space to decide. With live it would be too late: the block is
 * followed from now on, or not at all. */
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
