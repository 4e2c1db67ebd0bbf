// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs at the probes of stat and of record without --live, and those that run beside them
 * in all modes. */
#include "arch.bpf.h"
#include "fault.bpf.h"
#include "gate.bpf.h"
#include "hit.bpf.h"
#include "kernel.h"
#include "process.bpf.h"
#include "recording.bpf.h"
#include "regions.bpf.h"
#include "waits.bpf.h"
#include "walk.bpf.h"
#include "within.bpf.h"

__u64 counts_inserted;

static __always_inline void count_entry(struct pt_regs *ctx)
{
	struct process *process = process__hit();
	const struct ap_site *site;
	struct hit hit;

	if (!process)
		return;
	site = hit__enter(&hit, ctx);
	if (!site)
		return;
	hit.return_address = hit__return_address(&hit);
	hit__read(&hit, site, ctx);
	if (hit__is_measured(&hit, process, true)) {
		count_hit(&hit);
		regions__count(&hit);
	}
}

SEC("sleepable")
int count_call(struct pt_regs *ctx)
{
	kernel_stack__use(ctx);
	faults__hold_off();
	count_entry(ctx);
	faults__allow();
	return 0;
}

/* Called for a hit outside of the window: only classifies it, since later hits may depend on it. */
static __noinline void pass_by(struct pt_regs *ctx)
{
	const struct ap_site *site;
	struct hit hit;

	site = hit__enter(&hit, ctx);
	if (!site)
		return;
	hit.return_address = hit__return_address(&hit);
	hit__read(&hit, site, ctx);
}

static __always_inline void record_entry(struct pt_regs *ctx)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct process *process = process__hit();
	const struct ap_site *site;
	struct scratch *scratch;
	struct hit hit;

	if (!process)
		return;
	process__refresh(process);
	if (!gate__is_open(process)) {
		pass_by(ctx);
		return;
	}
	site = hit__enter(&hit, ctx);
	if (!site)
		return;
	if (config.sample) {
		hit.return_address = hit__return_address(&hit);
		if (!hit__is_chosen(&hit, site, ctx))
			return;
	}
	scratch = scratch__claim(thread);
	if (!scratch) {
		hit.return_address = hit__return_address(&hit);
		if (hit__is_recorded(&hit, site, ctx))
			lose_unwalked();
		return;
	}
	scratch__enter(scratch, thread, process);
	stack__enter(scratch, &hit);
	if (hit__is_recorded(&hit, site, ctx)) {
		stack__walk(scratch, process, &hit, true);
		if (walked__counts(ctx, scratch, &hit, process))
			count_stack(ctx, scratch, &hit, process);
	}
	scratch__release(scratch);
}

SEC("sleepable")
int record_call(struct pt_regs *ctx)
{
	kernel_stack__use(ctx);
	faults__hold_off();
	record_entry(ctx);
	faults__allow();
	return 0;
}

/* The program at the return of a function of an AP_NESTING_OUTERMOST definition, like live_return. */
SEC("uretprobe")
int outermost_return(struct pt_regs *ctx)
{
	kernel_stack__use(ctx);
	nest__leave(arch__sp(ctx));
	return 0;
}

/* The program at the return instruction of such a function, like live_return_instruction. */
SEC("uprobe")
int outermost_return_instruction(struct pt_regs *ctx)
{
	kernel_stack__use(ctx);
	nest__leave(arch__caller_sp(arch__sp(ctx)));
	return 0;
}

/* Returns whether @name tells jemalloc's mallctl() to end all blocks of an arena:
 * "arena.7.destroy", "arena.7.reset". */
static __always_inline bool is_end_of_arena(const void *name)
{
	static const char prefix[] = "arena.";
	char text[24] = "";

	/* If the read fails, the name is a string literal on a page that has not been read in yet;
	 * a name with an arena's number has just been written, and so is in memory. */
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

/* Counts calls of functions whose effect on blocks is unknown, if they come from outside of the
 * allocator's file, so that the report can name what it may miss. */
static __always_inline void note_unknown_call(struct pt_regs *ctx)
{
	struct process *process = process__hit();
	struct ap_site_counts *sum;
	const struct ap_site *site;
	struct hit hit;
	__u64 vaddr;

	if (!process || !gate__is_open(process))
		return;
	site = hit__enter(&hit, ctx);
	sum = bpf_map_lookup_elem(&site_counts, &hit.site);
	if (!site || !sum || (site->by_name && !is_end_of_arena((void *)arch__arg1(ctx))))
		return;
	vaddr = hit__return_address(&hit) - (arch__ip(ctx) - site->probe_vaddr);
	if (vaddr < site->text_start || vaddr >= site->text_end)
		__sync_fetch_and_add(&sum->calls, 1);
}

SEC("sleepable")
int unknown_call(struct pt_regs *ctx)
{
	kernel_stack__use(ctx);
	faults__hold_off();
	note_unknown_call(ctx);
	faults__allow();
	return 0;
}
