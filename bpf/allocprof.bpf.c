// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs at the probes: count_call for `stat`, record_call for `record`; with --live those
 * whose names begin with live_.
 */
#include "abi.h"
#include "gate.bpf.h"
#include "hit.bpf.h"
#include "live.bpf.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "regions.bpf.h"
#include "sample.bpf.h"
#include "sent.bpf.h"
#include "stack.bpf.h"
#include "unprobed.bpf.h"
#include "within.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AP_MAX_SITES);
	__type(key, __u32);
	__type(value, struct ap_site_counts);
} site_counts SEC(".maps");

static __always_inline void count_hit(const struct hit *hit)
{
	struct ap_site_counts *counts;

	counts = bpf_map_lookup_elem(&site_counts, &hit->site);
	if (!counts)
		return;
	if (hit->internal) {
		__sync_fetch_and_add(&counts->internal, 1);
		return;
	}
	counts__add(counts, hit);
}

SEC("uprobe")
int count_call(struct pt_regs *ctx)
{
	struct process *process = process__hit();
	struct hit hit;

	if (!process)
		return 0;
	hit__enter(&hit, ctx);
	hit.return_address = hit__return_address(&hit);
	if (hit__read(&hit, ctx) && hit__is_measured(&hit, process)) {
		count_hit(&hit);
		regions__count(&hit);
	}
	return 0;
}

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

static __always_inline void count__add(struct ap_count *count, const struct hit *hit)
{
	__u64 n = sample__times(hit->weight);

	__sync_fetch_and_add(&count->calls, n);
	__sync_fetch_and_add(&count->size_bytes, n * hit->size_bytes);
	if (config.sample)
		estimate__add(&count->estimate, hit->weight, hit->size_bytes);
}

/* Not inlined, so that its stack is not in use while the walk's is. */
static __noinline void count_stack(struct pt_regs *ctx, struct scratch *scratch,
				   const struct hit *hit, struct process *process)
{
	struct ap_count_key key = {
		.stack = scratch->record.stack,
		.process = process->id,
		.function = hit->function,
	};
	struct ap_count *count, fresh;
	__u32 zero = 0;
	void *current;

	thread_name__read(key.thread);
	if (end__needs_user_space(scratch->record.end)) {
		key.stack = 0;
		if (stack__dump(ctx, &key, scratch->record.end, hit))
			return;
		key.stack = scratch->record.stack;
	}
	current = bpf_map_lookup_elem(&counts, &zero);
	if (!current)
		return; /* never: the slot is filled at load and only ever replaced */
	count = bpf_map_lookup_elem(current, &key);
	if (count) {
		count__add(count, hit);
		return;
	}
	/* Frames first: a counter whose stack nobody knows would be attributed to nothing. */
	if (!stack__send(scratch)) {
		lose(AP_LOST_RING_FULL);
		return;
	}
	fresh = (struct ap_count){
		.calls = sample__times(hit->weight),
		.size_bytes = sample__times(hit->weight) * hit->size_bytes,
	};
	if (config.sample)
		estimate__add(&fresh.estimate, hit->weight, hit->size_bytes);
	if (!bpf_map_update_elem(current, &key, &fresh, BPF_NOEXIST)) {
		count__note_insertion();
		return;
	}
	/* Another CPU was first, or the map is full. */
	count = bpf_map_lookup_elem(current, &key);
	if (count) {
		count__add(count, hit);
	} else if (!count__send(&key, hit)) {
		lose(AP_LOST_COUNTS_FULL);
	}
}

/* Whether the hit is a call to be recorded; counts it as one or as internal. */
static __always_inline bool hit__is_event(const struct hit *hit)
{
	if (!hit->recorded)
		return false;
	if (hit->internal)
		stat__add(AP_STAT_INTERNAL);
	else if (!config.within) /* else the stack decides */
		stat__add(AP_STAT_EVENTS);
	return !hit->internal;
}

/* Whether the hit, of which all but the stack pointer is to be read, is a call to be recorded, and chosen where
 * bytes are sampled. */
static __always_inline bool hit__is_chosen(struct hit *hit, struct pt_regs *ctx)
{
	if (!hit__read(hit, ctx) || !hit__is_event(hit))
		return false;
	hit->weight = sample__draw(hit->size_bytes);
	if (!hit->weight && !config.within)
		stat__add(AP_STAT_NOT_SAMPLED);
	return hit->weight;
}

/* The same; with sampling it has been answered already. */
static __always_inline bool hit__is_recorded(struct hit *hit, struct pt_regs *ctx)
{
	return config.sample || (hit__read(hit, ctx) && hit__is_event(hit));
}

/* A call without anything to build its stack in; with @within nobody knows whether it counts. */
static __always_inline void lose_unwalked(void)
{
	if (config.within)
		stat__add(AP_STAT_EVENTS);
	lose(AP_LOST_NO_SCRATCH);
}

/* Whether the call whose stack was walked is to be counted here and now. Where the tables did not
 * suffice to tell, user space may find out. */
static __always_inline bool walked__counts(struct pt_regs *ctx, struct scratch *scratch,
					   const struct hit *hit, const struct process *process)
{
	enum verdict verdict = scratch__verdict(scratch);

	if (!config.within)
		return true;
	if (verdict == VERDICT_INSIDE) {
		stat__add(AP_STAT_EVENTS);
		return true;
	}
	if (verdict == VERDICT_UNDECIDED && !send_undecided(ctx, scratch, hit, process))
		stat__add(AP_STAT_UNDECIDED);
	return false;
}

/* What happens outside of the window is only looked at for what it says of calls inside. */
static __noinline int pass_by(struct pt_regs *ctx)
{
	struct hit hit;

	hit__enter(&hit, ctx);
	hit.return_address = hit__return_address(&hit);
	hit__read(&hit, ctx);
	return 0;
}

SEC("uprobe")
int record_call(struct pt_regs *ctx)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct process *process = process__hit();
	struct scratch *scratch;
	struct hit hit;

	if (!process)
		return 0;
	process__refresh(process);
	if (!gate__is_open(process))
		return pass_by(ctx);
	hit__enter(&hit, ctx);
	if (config.sample) {
		hit.return_address = hit__return_address(&hit);
		if (!hit__is_chosen(&hit, ctx))
			return 0;
	}
	scratch = scratch__claim(thread);
	if (!scratch) {
		hit.return_address = hit__return_address(&hit);
		if (hit__is_recorded(&hit, ctx))
			lose_unwalked();
		return 0;
	}
	scratch__enter(scratch, thread, process);
	/* One read for the return address and what the walk will want. */
	if (!window__fill(scratch, arch__return_slot(hit.sp), stack__expected_bytes(scratch)))
		hit.return_address =
			hit__real_return(&hit, scratch->window[0], scratch->trampoline);
	if (hit__is_recorded(&hit, ctx)) {
		stack__walk(scratch, process, &hit);
		if (walked__counts(ctx, scratch, &hit, process))
			count_stack(ctx, scratch, &hit, process);
	}
	scratch__release(scratch);
	return 0;
}

/* The record that the scratch's memory has for the key, or where it is to be put. */
static __always_inline struct record_memo *memo__find(struct scratch *scratch,
						      const struct ap_count_key *key)
{
	__u32 at = key->stack;

	barrier_var(at);
	return &scratch->memos[at & (SCRATCH_MEMOS - 1)];
}

static __always_inline bool memo__holds(const struct record_memo *memo,
					const struct ap_count_key *key)
{
	const __u64 *known = (const __u64 *)&memo->key, *asked = (const __u64 *)key;

	return known[0] == asked[0] && known[1] == asked[1] && known[2] == asked[2] &&
	       known[3] == asked[3];
}

/* The index of the record that the hit's stack counts into, or AP_NO_RECORD: it is lost. */
static __noinline __u32 find_record(struct pt_regs *ctx, struct scratch *scratch,
				    const struct hit *hit, const struct process *process)
{
	struct ap_count_key key = { .process = process->id, .function = hit->function };
	struct record_memo *memo;
	__u32 index;

	thread_name__read(key.thread);
	if (end__needs_user_space(scratch->record.end) && LOAD(live.n_dumps) < config.max_dumped) {
		key.function |= AP_FUNCTION_DUMPED;
		if (stack__dump(ctx, &key, scratch->record.end, hit))
			goto new_record;
		key.function = hit->function;
	}
	key.stack = scratch->record.stack;
	memo = memo__find(scratch, &key);
	if (memo__holds(memo, &key))
		return memo->index;
	if (!index__find(&key, &index)) {
		memo->key = key;
		memo->index = index;
		return index;
	}
	if (!stack__send(scratch)) {
		lose(AP_LOST_RING_FULL);
		return AP_NO_RECORD;
	}
new_record:
	index = record__add(&key);
	if (index == AP_NO_RECORD)
		lose(AP_LOST_COUNTS_FULL);
	return index;
}

/* Counts the call under its record. */
static __always_inline void record__count(__u32 index, const struct hit *hit)
{
	struct ap_blocks *record = record__get(index);
	__u64 n = sample__times(hit->weight);

	if (!record)
		return;
	__sync_fetch_and_add(&record->calls, n);
	/* Failing calls may ask for nearly 2^64 bytes each. */
	sum__add(&record->asked_bytes, n * hit->size_bytes);
	if (config.sample)
		estimate__add(&record->of_calls, hit->weight, hit->size_bytes);
}

/* Whether the probed allocator's returns are seen at all. */
static __always_inline bool site__returns(__u32 index)
{
	struct ap_site *site = bpf_map_lookup_elem(&sites, &index);

	return site && site->returns;
}

static __always_inline bool live__follow(struct pt_regs *ctx, struct process *process,
					 struct hit *hit, __u32 record)
{
	if (record != AP_NO_RECORD) {
		record__count(record, hit);
		regions__count(hit);
	}
	if (hit->blocks == AP_NO_BLOCKS) {
		count_untracked(record, hit, AP_UNTRACKED_POOL);
		return false;
	}
	if (!site__returns(hit->site)) {
		count_untracked(record, hit, AP_UNTRACKED_NO_RETURN);
		return false;
	}
	return call__enter(process, hit, arch__arg1(ctx), record);
}

/* By function alone, for stat. */
static __always_inline bool live__enter_counting(struct pt_regs *ctx, struct process *process)
{
	struct hit hit;
	bool measured;

	hit__enter(&hit, ctx);
	hit.return_address = hit__return_address(&hit);
	if (!hit__read(&hit, ctx))
		return false;
	measured = hit__is_measured(&hit, process);
	if (measured)
		count_hit(&hit);
	if (hit.internal)
		return false;
	return live__follow(ctx, process, &hit, measured ? hit.function : AP_NO_RECORD);
}

/* Outside of the window: it may end a block of inside. */
static __noinline bool live__enter_outside(struct pt_regs *ctx, struct process *process)
{
	struct hit hit;

	hit__enter(&hit, ctx);
	hit.return_address = hit__return_address(&hit);
	if (!hit__read(&hit, ctx) || hit.internal)
		return false;
	if (config.sample && !call__may_end(process, &hit))
		return false;
	return live__follow(ctx, process, &hit, AP_NO_RECORD);
}

static __always_inline bool live__enter_recording(struct pt_regs *ctx, struct process *process)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct scratch *scratch;
	bool follow = false;
	struct hit hit;
	__u32 record;

	hit__enter(&hit, ctx);
	if (config.sample) {
		hit.return_address = hit__return_address(&hit);
		if (!hit__is_chosen(&hit, ctx))
			return !hit.weight && call__may_end(process, &hit) &&
			       live__follow(ctx, process, &hit, AP_NO_RECORD);
	}
	scratch = scratch__claim(thread);
	if (!scratch) {
		hit.return_address = hit__return_address(&hit);
		if (!hit__is_recorded(&hit, ctx))
			return false;
		lose_unwalked();
		return live__follow(ctx, process, &hit, AP_NO_RECORD);
	}
	scratch__enter(scratch, thread, process);
	if (!window__fill(scratch, arch__return_slot(hit.sp), stack__expected_bytes(scratch)))
		hit.return_address =
			hit__real_return(&hit, scratch->window[0], scratch->trampoline);
	if (hit__is_recorded(&hit, ctx)) {
		stack__walk(scratch, process, &hit);
		record = walked__counts(ctx, scratch, &hit, process)
				 ? find_record(ctx, scratch, &hit, process)
				 : AP_NO_RECORD;
		follow = live__follow(ctx, process, &hit, record);
	}
	scratch__release(scratch);
	return follow;
}

/* An allocating function is entered; whether its return is to be seen. */
static __always_inline bool live__enter(struct pt_regs *ctx)
{
	struct process *process = process__hit();

	if (!process || LOAD(live.stopped))
		return false;
	if (config.live_stacks)
		process__refresh(process);
	if (config.live_stacks && !gate__is_open(process))
		return live__enter_outside(ctx, process);
	return config.live_stacks ? live__enter_recording(ctx, process)
				  : live__enter_counting(ctx, process);
}

SEC("uprobe")
int live_entry(struct pt_regs *ctx)
{
	live__enter(ctx);
	return 0;
}

/* At the return probe: the return instruction has been executed. */
SEC("uretprobe")
int live_return(struct pt_regs *ctx)
{
	call__leave(ctx, arch__sp(ctx));
	return 0;
}

/* At the return instruction itself, where a return probe might be noticed. */
SEC("uprobe")
int live_return_instruction(struct pt_regs *ctx)
{
	call__leave(ctx, arch__caller_sp(arch__sp(ctx)));
	return 0;
}

#ifndef ALLOCPROF_TWIN_BPF_HELPERS_H
extern bool bpf_session_is_return(void) __ksym __weak;

/* Entry and return in one, where the kernel has sessions (Linux 6.13): 1 at the entry keeps the return
 * from being probed. */
SEC("uprobe")
int live_session(struct pt_regs *ctx)
{
	if (bpf_session_is_return()) {
		call__leave(ctx, arch__sp(ctx));
		return 0;
	}
	return live__enter(ctx) ? 0 : 1;
}
#endif

/* Who calls is asked first, for those who count calls by function or by region. */
static __always_inline void live__free_counting(struct pt_regs *ctx, struct process *process)
{
	struct hit hit;
	bool measured;

	hit__enter(&hit, ctx);
	hit.return_address = hit__return_address(&hit);
	if (!hit__read(&hit, ctx))
		return;
	measured = config.live_stacks ? gate__is_open(process) && !config.within
				      : hit__is_measured(&hit, process);
	if (measured && !config.live_stacks)
		count_hit(&hit);
	if (measured)
		regions__count(&hit);
	if (hit.internal || hit.blocks == AP_NO_BLOCKS)
		return;
	if (!call__free(process, hit.pointer, hit.blocks, hit.regions) && measured)
		count_useless_free(process, hit.pointer);
}

/* Only where no block ends: to read the return address costs more than all else. */
static __always_inline void live__free_recording(struct pt_regs *ctx, struct process *process)
{
	struct hit hit;

	if (call__free(process, arch__arg1(ctx), AP_BLOCKS_OF_MALLOC, 0) ||
	    !gate__is_open(process) || config.within)
		return;
	/* One that was passed by: of those only null pointers are counted. */
	if (config.sample && arch__arg1(ctx))
		return;
	hit__enter(&hit, ctx);
	hit.return_address = hit__return_address(&hit);
	if (hit__read(&hit, ctx) && !hit.internal)
		count_useless_free(process, hit.pointer);
}

/* A function of a source returns under which no other request counts: as live_return, */
SEC("uretprobe")
int source_return(struct pt_regs *ctx)
{
	nest__leave(arch__sp(ctx));
	return 0;
}

/* and as live_return_instruction. */
SEC("uprobe")
int source_return_instruction(struct pt_regs *ctx)
{
	nest__leave(arch__caller_sp(arch__sp(ctx)));
	return 0;
}

/* Whether jemalloc's mallctl() is to end all blocks of an arena: "arena.7.destroy", "arena.7.reset". */
static __always_inline bool is_end_of_arena(const void *name)
{
	static const char prefix[] = "arena.";
	char text[24] = "";

	/* A literal that was never read before is not in memory yet. One with the arena's number has just been made. */
	if (bpf_probe_read_user(text, sizeof(text), name))
		return false;
	for (int i = 0; i < 6; i++)
		if (text[i] != prefix[i])
			return false;
	for (int i = 6; i + 3 < (int)sizeof(text); i++)
		if (text[i] == '.')
			return (text[i + 1] == 'd' && text[i + 2] == 'e' && text[i + 3] == 's') ||
			       (text[i + 1] == 'r' && text[i + 2] == 'e' && text[i + 3] == 's');
	return false;
}

/* A function of which nobody knows what it does. Those who call from outside of the allocator's file are counted,
 * so that what may be missing is told of. */
SEC("uprobe")
int unknown_call(struct pt_regs *ctx)
{
	struct process *process = process__hit();
	__u32 index = bpf_get_attach_cookie(ctx);
	struct ap_site_counts *sum;
	struct ap_site *site;
	struct hit hit;
	__u64 vaddr;

	if (!process || !gate__is_open(process))
		return 0;
	site = bpf_map_lookup_elem(&sites, &index);
	sum = bpf_map_lookup_elem(&site_counts, &index);
	if (!site || !sum || (site->by_name && !is_end_of_arena((void *)arch__arg1(ctx))))
		return 0;
	hit__enter(&hit, ctx);
	vaddr = hit__return_address(&hit) - (arch__ip(ctx) - site->probe_vaddr);
	if (vaddr < site->text_start || vaddr >= site->text_end)
		__sync_fetch_and_add(&sum->calls, 1);
	return 0;
}

/* Classifies the hit first: this allocator's freeing functions may jump to each other. */
SEC("uprobe")
int live_free_described(struct pt_regs *ctx)
{
	struct process *process = process__hit();

	if (!process || LOAD(live.stopped))
		return 0;
	live__free_counting(ctx, process);
	return 0;
}

SEC("uprobe")
int live_free(struct pt_regs *ctx)
{
	struct process *process = process__hit();

	if (!process || LOAD(live.stopped))
		return 0;
	if (config.live_stacks && !config.regions)
		live__free_recording(ctx, process);
	else
		live__free_counting(ctx, process);
	return 0;
}

/* What follows needs what is above. */
#include "mappings.bpf.h"
#include "usdt.bpf.h"
