// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs at the probes with --live: live_entry, live_return, live_free and their variants. */
#include "arch.bpf.h"
#include "blocks.bpf.h"
#include "calls.bpf.h"
#include "fault.bpf.h"
#include "gate.bpf.h"
#include "hit.bpf.h"
#include "kernel.h"
#include "live_hit.bpf.h"
#include "process.bpf.h"
#include "recording.bpf.h"
#include "regions.bpf.h"
#include "waits.bpf.h"
#include "walk.bpf.h"
#include "within.bpf.h"

struct ap_live live;
__u64 lifetimes_inserted;
struct ap_thread fresh_thread;

static __always_inline bool live__follow(struct pt_regs *ctx, struct process *process,
					 struct hit *hit, const struct ap_site *site, __u32 record)
{
	if (record != AP_NO_RECORD) {
		record__count(record, hit);
		regions__count(hit);
	}
	if (hit->blocks == AP_ONLY_COUNTED)
		return false;
	if (hit->blocks == AP_NO_BLOCKS) {
		count_untracked(record, hit, AP_UNTRACKED_POOL);
		return false;
	}
	if (!site->returns) {
		count_untracked(record, hit, AP_UNTRACKED_NO_RETURN);
		return false;
	}
	return call__enter(process, hit, arch__arg1(ctx), record);
}

/* For `stat`: counts the call by function. */
static __always_inline bool live__enter_counting(struct pt_regs *ctx, struct process *process)
{
	const struct ap_site *site;
	struct hit hit;
	bool measured;

	site = hit__enter(&hit, ctx);
	if (!site)
		return false;
	hit.return_address = hit__return_address(&hit);
	hit__read(&hit, site, ctx);
	measured = hit__is_measured(&hit, process, true);
	if (measured)
		count_hit(&hit);
	if (hit.internal)
		return false;
	return live__follow(ctx, process, &hit, site, measured ? hit.function : AP_NO_RECORD);
}

/* Outside of the window the call may still end a block that was allocated inside. */
static __noinline bool live__enter_outside(struct pt_regs *ctx, struct process *process)
{
	const struct ap_site *site;
	struct hit hit;

	site = hit__enter(&hit, ctx);
	if (!site)
		return false;
	hit.return_address = hit__return_address(&hit);
	hit__read(&hit, site, ctx);
	if (hit.internal || (config.sample && !call__may_end(process, &hit)))
		return false;
	return live__follow(ctx, process, &hit, site, AP_NO_RECORD);
}

static __always_inline bool live__enter_recording(struct pt_regs *ctx, struct process *process)
{
	__u64 thread = bpf_get_current_pid_tgid();
	const struct ap_site *site;
	struct scratch *scratch;
	bool follow = false;
	struct hit hit;
	__u32 record;

	site = hit__enter(&hit, ctx);
	if (!site)
		return false;
	if (config.sample) {
		hit.return_address = hit__return_address(&hit);
		if (!hit__is_chosen(&hit, site, ctx))
			return !hit.weight && call__may_end(process, &hit) &&
			       live__follow(ctx, process, &hit, site, AP_NO_RECORD);
	}
	scratch = scratch__claim(thread);
	if (!scratch) {
		hit.return_address = hit__return_address(&hit);
		if (!hit__is_recorded(&hit, site, ctx))
			return false;
		lose_unwalked();
		return live__follow(ctx, process, &hit, site, AP_NO_RECORD);
	}
	scratch__enter(scratch, thread, process);
	stack__enter(scratch, &hit);
	if (hit__is_recorded(&hit, site, ctx)) {
		stack__walk(scratch, process, &hit, true);
		record = walked__counts(ctx, scratch, &hit, process)
				 ? find_record(ctx, scratch, &hit, process)
				 : AP_NO_RECORD;
		follow = live__follow(ctx, process, &hit, site, record);
	}
	scratch__release(scratch);
	return follow;
}

/* Called at the entry of an allocating function. Returns whether its return must be seen. */
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

SEC("sleepable")
int live_entry(struct pt_regs *ctx)
{
	kernel_stack__use(ctx);
	faults__hold_off();
	live__enter(ctx);
	faults__allow();
	return 0;
}

/* The program at return probes: the return instruction has been executed, and SP is the caller's. */
SEC("sleepable")
int live_return(struct pt_regs *ctx)
{
	kernel_stack__use(ctx);
	faults__hold_off();
	call__leave(ctx, arch__sp(ctx));
	faults__allow();
	return 0;
}

/* The program at return instructions, of functions in which a return probe would disturb the
 * target. */
SEC("sleepable")
int live_return_instruction(struct pt_regs *ctx)
{
	kernel_stack__use(ctx);
	faults__hold_off();
	call__leave(ctx, arch__caller_sp(arch__sp(ctx)));
	faults__allow();
	return 0;
}

/*
 * The program at entry and return in one, with uprobe sessions (Linux 6.13). If it returns 1 at
 * the entry, the return is skipped. At the return the instruction pointer is the address to which
 * the function returns. bpf_session_is_return() tells that, too, but has other parameters since
 * Linux 7.0, and libbpf before 1.3 loads nothing that declares it differently.
 */
SEC("sleepable")
int live_session(struct pt_regs *ctx)
{
	int skips_return = 0;

	kernel_stack__use(ctx);
	faults__hold_off();
	if (arch__ip(ctx) != bpf_get_func_ip(ctx))
		call__leave(ctx, arch__sp(ctx));
	else
		skips_return = !live__enter(ctx);
	faults__allow();
	return skips_return;
}

/* Classifies the hit first, since calls are counted by function or by region. */
static __always_inline void live__free_counting(struct pt_regs *ctx, struct process *process)
{
	const struct ap_site *site;
	struct hit hit;
	bool measured;

	site = hit__enter(&hit, ctx);
	if (!site)
		return;
	hit.return_address = hit__return_address(&hit);
	hit__read(&hit, site, ctx);
	measured = config.live_stacks ? gate__is_open(process) && !config.within
				      : hit__is_measured(&hit, process, true);
	if (measured && !config.live_stacks)
		count_hit(&hit);
	if (measured)
		regions__count(&hit);
	if (hit.internal || hit.blocks == AP_NO_BLOCKS)
		return;
	if (!call__free(process, hit.pointer, hit.blocks, hit.regions) && measured)
		count_noop_free(process, hit.function, hit.pointer);
}

/* Frees the block first, and classifies the hit only if no block ends, since reading the return
 * address costs more than the rest. */
static __always_inline void live__free_recording(struct pt_regs *ctx, struct process *process)
{
	const struct ap_site *site;
	struct hit hit;

	if (call__free(process, arch__arg1(ctx), AP_BLOCKS_OF_MALLOC, 0) ||
	    !gate__is_open(process) || config.within)
		return;
	/* With sampling only free(NULL) is counted: any other block may be one that was not
	 * sampled. */
	if (config.sample && arch__arg1(ctx))
		return;
	site = hit__enter(&hit, ctx);
	if (!site)
		return;
	hit.return_address = hit__return_address(&hit);
	hit__read(&hit, site, ctx);
	if (!hit.internal)
		count_noop_free(process, hit.function, hit.pointer);
}

/* Classifies the hit first, since free functions of this allocator may tail-call each other. */
SEC("sleepable")
int live_free_described(struct pt_regs *ctx)
{
	struct process *process;

	kernel_stack__use(ctx);
	faults__hold_off();
	process = process__hit();
	if (process && !LOAD(live.stopped))
		live__free_counting(ctx, process);
	faults__allow();
	return 0;
}

SEC("sleepable")
int live_free(struct pt_regs *ctx)
{
	struct process *process;

	kernel_stack__use(ctx);
	faults__hold_off();
	process = process__hit();
	if (process && !LOAD(live.stopped)) {
		if (config.live_stacks && !config.regions)
			live__free_recording(ctx, process);
		else
			live__free_counting(ctx, process);
	}
	faults__allow();
	return 0;
}
