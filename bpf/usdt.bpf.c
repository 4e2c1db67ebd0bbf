// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * USDT probes of definitions (allocprof-allocators(5)): probes at which a program hands out or takes back
 * memory, with the size and the block among their arguments.
 */
#include "calls.bpf.h"
#include "fault.bpf.h"
#include "kernel.h"
#include "live_hit.bpf.h"
#include "process.bpf.h"
#include "recording.bpf.h"
#include "regions.bpf.h"
#include "within.bpf.h"

/* Indexed by site. User space sets the number of entries before load. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AP_MAX_SITES);
	__type(key, __u32);
	__type(value, struct ap_usdt);
} usdt_sites SEC(".maps");

/* Returns the register at @offset in struct pt_regs. It is not a plain field access, since the
 * offset is only known at run time. */
static __always_inline __u64 operand__register(const struct pt_regs *regs, __u16 offset)
{
	__u64 value = 0;

	if (offset < sizeof(*regs))
		bpf_probe_read_kernel(&value, sizeof(value), (const void *)regs + offset);
	return value;
}

/* Sign- or zero-extends the argument's low bytes. */
static __always_inline __u64 operand__extend(const struct ap_operand *operand, __u64 value)
{
	__u32 shift = 64 - 8 * operand->bytes;

	shift &= 63;
	value <<= shift;
	return operand->is_signed ? (__u64)((__s64)value >> shift) : value >> shift;
}

/* Returns the argument's value; 0 if there is none, or if its memory cannot be read. */
static __noinline __u64 operand__value(const struct ap_operand *operand, struct pt_regs *regs)
{
	__u64 address, value = 0;
	__u32 bytes;

	switch (operand->kind) {
	case AP_OPERAND_CONSTANT:
		return operand__extend(operand, operand->value);
	case AP_OPERAND_REGISTER:
		value = operand__register(regs, operand->base);
		return operand__extend(operand, operand->is_second ? value >> 8 : value);
	case AP_OPERAND_MEMORY:
		address = operand->value;
		if (operand->base != AP_NO_REGISTER)
			address += operand__register(regs, operand->base);
		if (operand->index != AP_NO_REGISTER)
			address += operand__register(regs, operand->index) << (operand->shift & 63);
		bytes = operand->bytes;
		if (bytes > sizeof(value) || bpf_probe_read_user(&value, bytes, (void *)address)) {
			stat__add(AP_STAT_OPERANDS_UNREAD);
			return 0;
		}
		return operand__extend(operand, value);
	}
	return 0;
}

/* Reads the probe's arguments into @hit, except the allocated block. */
static __always_inline void usdt__read(struct hit *hit, const struct ap_usdt *usdt,
				       struct pt_regs *regs)
{
	hit->pointer = operand__value(&usdt->pointer, regs);
	hit->size_bytes = operand__value(&usdt->size, regs);
	if (usdt->count.kind)
		hit->size_bytes = product(operand__value(&usdt->count, regs), hit->size_bytes,
					  &hit->overflows);
	if (usdt->weight.kind) {
		hit->weighed = 1;
		hit->weight = sample__told(operand__value(&usdt->weight, regs), hit->size_bytes,
					   bpf_get_prandom_u32());
	}
}

/* Returns the allocated block, or 0. */
static __always_inline __u64 usdt__result(struct pt_regs *regs)
{
	__u32 index = bpf_get_attach_cookie(regs);
	const struct ap_usdt *usdt = bpf_map_lookup_elem(&usdt_sites, &index);

	return usdt ? operand__value(&usdt->result, regs) : 0;
}

/* With --live: begins the call and ends it at once with the block from the probe's arguments. */
static __always_inline void source__follow(struct pt_regs *regs, struct process *process,
					   struct hit *hit, __u32 record)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct ap_thread *thread;

	if (record != AP_NO_RECORD) {
		record__count(record, hit);
		regions__count(hit);
	}
	if (hit->blocks == AP_ONLY_COUNTED)
		return;
	if (hit->blocks == AP_NO_BLOCKS) {
		count_untracked(record, hit, AP_UNTRACKED_POOL);
		return;
	}
	if (!call__enter(process, hit, 0, record))
		return;
	thread = bpf_map_lookup_elem(&threads, &id);
	if (!thread || !thread->n_pending)
		return;
	call__return(process, thread,
		     &thread->pending[(thread->n_pending - 1) & (AP_MAX_PENDING - 1)],
		     usdt__result(regs));
	thread->n_pending--;
}

/* With --live: handles a probe that frees a block. */
static __always_inline void source__free(struct process *process, struct hit *hit)
{
	bool measured = config.live_stacks ? gate__is_open(process) && !config.within
					   : hit__is_measured(hit, process, false);

	if (measured && !config.live_stacks)
		count_hit(hit);
	if (measured)
		regions__count(hit);
	if (hit->blocks == AP_NO_BLOCKS)
		return;
	if (!call__free(process, hit->pointer, hit->blocks, hit->regions) && measured)
		count_noop_free(process, hit->function, hit->pointer);
}

/* With --live and stacks: returns whether the call of a probe that allocates is to be followed,
 * and finds the record of its stack. */
static __always_inline bool source__find_record(struct pt_regs *regs, struct process *process,
						struct hit *hit, __u32 *record)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct scratch *scratch;

	process__refresh(process);
	if (!gate__is_open(process))
		return !config.sample || call__may_end(process, hit);
	if (!source__is_chosen(hit))
		return !hit->weight && call__may_end(process, hit);
	scratch = scratch__claim(thread);
	if (!scratch) {
		lose_unwalked();
		return true;
	}
	scratch__enter(scratch, thread, process);
	stack__read(scratch, hit, false);
	stack__walk(scratch, process, hit, false);
	if (walked__counts(regs, scratch, hit, process))
		*record = find_record(regs, scratch, hit, process);
	scratch__release(scratch);
	return true;
}

static __always_inline void source__live(struct pt_regs *regs, struct process *process,
					 struct hit *hit)
{
	__u32 record = AP_NO_RECORD;

	if (LOAD(live.stopped))
		return;
	if (AP_FREEING >> hit->function & 1) {
		source__free(process, hit);
		return;
	}
	if (config.live_stacks) {
		if (!source__find_record(regs, process, hit, &record))
			return;
	} else if (hit__is_measured(hit, process, false)) {
		count_hit(hit);
		record = hit->function;
	}
	source__follow(regs, process, hit, record);
}

/* Initialises @hit at the probe's instruction, a nop, as if it were a call. Returns false if the
 * site is unknown. */
static __always_inline bool usdt__enter(struct hit *hit, struct pt_regs *regs)
{
	__u32 index = bpf_get_attach_cookie(regs);
	const struct ap_usdt *usdt = bpf_map_lookup_elem(&usdt_sites, &index);

	if (!usdt || !source__enter(hit, index, regs, arch__ip(regs) + 1))
		return false;
	usdt__read(hit, usdt, regs);
	return true;
}

/* The program for `stat`. */
SEC("uprobe")
int usdt_count(struct pt_regs *ctx)
{
	struct process *process = process__current();
	struct hit hit;

	kernel_stack__use(ctx);
	if (!process || !usdt__enter(&hit, ctx) || !hit__is_measured(&hit, process, false))
		return 0;
	count_hit(&hit);
	regions__count(&hit);
	return 0;
}

/* The program for `record` without --live. */
SEC("uprobe")
int usdt_record(struct pt_regs *ctx)
{
	struct process *process = process__current();
	struct hit hit;

	kernel_stack__use(ctx);
	if (process && usdt__enter(&hit, ctx))
		source__record(ctx, process, &hit);
	return 0;
}

/* The program for --live. */
SEC("sleepable")
int usdt_live(struct pt_regs *ctx)
{
	struct process *process = process__current();
	struct hit hit;

	kernel_stack__use(ctx);
	faults__hold_off();
	if (process && usdt__enter(&hit, ctx))
		source__live(ctx, process, &hit);
	faults__allow();
	return 0;
}
