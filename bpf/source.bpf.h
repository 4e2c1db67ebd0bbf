/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sources other than functions: system calls that map memory, and USDT probes. They are counted
 * like calls, with the stack of the code at the system call or probe.
 */
#ifndef ALLOCPROF_SOURCE_BPF_H
#define ALLOCPROF_SOURCE_BPF_H

#include "arch.bpf.h"
#include "hit.bpf.h"
#include "recording.bpf.h"
#include "sites.bpf.h"

/* Initialises @hit at @site, as if the thread, which is in user space with @regs, called a function
 * that returns to @return_address. False if the site is unknown. */
static __always_inline bool source__enter(struct hit *hit, __u32 index, const struct pt_regs *regs,
					  __u64 return_address)
{
	const struct ap_site *site = bpf_map_lookup_elem(&sites, &index);

	if (!site)
		return false;
	__builtin_memset(hit, 0, sizeof(*hit));
	hit->site = index;
	hit->function = site->function;
	hit->recorded = site->recorded;
	hit->blocks = site->blocks;
	hit->sp = arch__called_sp(arch__sp(regs));
	hit->fp = arch__fp(regs);
	hit->return_address = return_address;
	hit->in_caller = 1;
	hit->weight = 1;
	return true;
}

/* Whether the call, which is read completely, is to be recorded and, with sampling, chosen. */
static __always_inline bool source__is_chosen(struct hit *hit)
{
	return hit__is_event(hit) && (!config.sample || hit__draw(hit));
}

/* Counts the call by its stack. */
static __always_inline void source__record(struct pt_regs *regs, struct process *process,
					   struct hit *hit)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct scratch *scratch;

	process__refresh(process);
	if (!gate__is_open(process) || !source__is_chosen(hit))
		return;
	scratch = scratch__claim(thread);
	if (!scratch) {
		lose_unwalked();
		return;
	}
	scratch__enter(scratch, thread, process);
	stack__read(scratch, hit, false);
	stack__walk(scratch, process, hit, false);
	if (walked__counts(regs, scratch, hit, process))
		count_stack(regs, scratch, hit, process);
	scratch__release(scratch);
}

#endif
