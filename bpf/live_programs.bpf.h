/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs at the probes with --live: live_entry, live_return, live_free and their variants. */
#ifndef ALLOCPROF_LIVE_PROGRAMS_BPF_H
#define ALLOCPROF_LIVE_PROGRAMS_BPF_H

#include "live.bpf.h"
#include "record_programs.bpf.h"
#include "stat_programs.bpf.h"
#include "records.bpf.h"
#include "regions.bpf.h"

/* The cache slot of @key in the scratch, whether or not it holds @key. */
static __always_inline struct cached_record *cached_record__find(struct scratch *scratch,
								 const struct ap_count_key *key)
{
	__u32 at = key->stack;

	barrier_var(at);
	return &scratch->records[at & (SCRATCH_RECORDS - 1)];
}

static __always_inline bool cached_record__holds(const struct cached_record *cached,
						 const struct ap_count_key *key)
{
	const __u64 *known = (const __u64 *)&cached->key, *asked = (const __u64 *)key;

	return known[0] == asked[0] && known[1] == asked[1] && known[2] == asked[2] &&
	       known[3] == asked[3];
}

/* Index of the record that counts the hit, or AP_NO_RECORD if the call is lost. */
static __noinline __u32 find_record(struct pt_regs *ctx, struct scratch *scratch,
				    const struct hit *hit, const struct process *process)
{
	struct ap_count_key key = { .process = process->id, .function = hit->function };
	struct cached_record *cached;
	__u32 index;

	thread_name__read(key.thread);
	if (end__needs_user_space(scratch->record.end) && LOAD(live.n_dumps) < config.max_dumped) {
		key.function |= AP_FUNCTION_DUMPED;
		if (stack__dump(ctx, &key, scratch->record.end, hit))
			goto new_record;
		key.function = hit->function;
	}
	key.stack = scratch->record.stack;
	cached = cached_record__find(scratch, &key);
	if (cached_record__holds(cached, &key))
		return cached->index;
	if (!index__find(&key, &index)) {
		cached->key = key;
		cached->index = index;
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

/* Counts the call in its record. */
static __always_inline void record__count(__u32 index, const struct hit *hit)
{
	struct ap_blocks *record = record__get(index);
	__u64 n = sample__times(hit->weight);

	if (!record)
		return;
	__sync_fetch_and_add(&record->calls, n);
	/* Failing calls may request nearly 2^64 bytes each. */
	sum__add(&record->asked_bytes, n * hit->size_bytes);
	if (config.sample)
		estimate__add(&record->of_calls, hit->weight, hit->size_bytes);
}

/* Whether returns from the site's function are probed. */
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

/* For stat: counts by function. */
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

/* Outside of the window the call may still end a block that was allocated inside. */
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

/* At the entry of an allocating function; returns whether its return must be seen. */
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

/* At the return probe: the return instruction has been executed, and SP is the caller's. */
SEC("uretprobe")
int live_return(struct pt_regs *ctx)
{
	call__leave(ctx, arch__sp(ctx));
	return 0;
}

/* At the return instruction, where a return probe would disturb the target. */
SEC("uprobe")
int live_return_instruction(struct pt_regs *ctx)
{
	call__leave(ctx, arch__caller_sp(arch__sp(ctx)));
	return 0;
}

#ifndef ALLOCPROF_TWIN_BPF_HELPERS_H
extern bool bpf_session_is_return(void) __ksym __weak;

/* Entry and return probe in one, with uprobe sessions (Linux 6.13). 1 at the entry skips the
 * return. */
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

/* Classifies the hit first, since calls are counted by function or by region. */
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
		count_noop_free(process, hit.pointer);
}

/* Frees first, and classifies only if no block ends, since reading the return address costs more
 * than the rest. */
static __always_inline void live__free_recording(struct pt_regs *ctx, struct process *process)
{
	struct hit hit;

	if (call__free(process, arch__arg1(ctx), AP_BLOCKS_OF_MALLOC, 0) ||
	    !gate__is_open(process) || config.within)
		return;
	/* With sampling only free(NULL) is counted: other blocks may just not have been sampled. */
	if (config.sample && arch__arg1(ctx))
		return;
	hit__enter(&hit, ctx);
	hit.return_address = hit__return_address(&hit);
	if (hit__read(&hit, ctx) && !hit.internal)
		count_noop_free(process, hit.pointer);
}

/* At the return of an AP_NESTING_OUTERMOST source's function, like live_return. */
SEC("uretprobe")
int source_return(struct pt_regs *ctx)
{
	nest__leave(arch__sp(ctx));
	return 0;
}

/* The same, like live_return_instruction. */
SEC("uprobe")
int source_return_instruction(struct pt_regs *ctx)
{
	nest__leave(arch__caller_sp(arch__sp(ctx)));
	return 0;
}

/* Whether @name tells jemalloc's mallctl() to end all blocks of an arena: "arena.7.destroy",
 * "arena.7.reset". */
static __always_inline bool is_end_of_arena(const void *name)
{
	static const char prefix[] = "arena.";
	char text[24] = "";

	/* A string literal may be on a page not read in yet, and reading it fails; a name with an
	 * arena's number was just written. */
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

/* At functions whose effect on blocks is unknown. Calls from outside of the allocator's file are
 * counted, so that the report names what it may miss. */
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

/* Classifies the hit first, since free functions of this allocator may tail-call each other. */
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

#endif
