/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks, unwound by the program's own call frame information and remembered from hit to hit.
 *
 * A step up the stack is a function of (pc, sp, fp), of the file's unwind rules and of two words of
 * stack. So the last stack of a thread is kept with what each step started from and which words it
 * read: where a frame's state is as it was, the step is repeated by reading those words again,
 * without resolving the address or looking up a rule. Nothing is assumed: a caller that changed shows
 * in the words, the next state is another, and the look-ups take over.
 */
#ifndef ALLOCPROF_STACK_BPF_H
#define ALLOCPROF_STACK_BPF_H

#include "arch.bpf.h"
#include "gate.bpf.h"
#include "hit.bpf.h"
#include "module.bpf.h"
#include "tables.bpf.h"
#include "trampoline.bpf.h"

#define WINDOW_WORDS 1024

/* Bytes of stack that are read at first, when nothing is known of the thread. */
#define FIRST_WINDOW_BYTES 1024

/* Mappings that a scratch remembers. A stack changes between few of them. */
#define SCRATCH_MAPPINGS 4

/* A code range with one set of rules: a mapping, cut to what one slice of its table covers. */
struct code_range {
	__u64 start, end;
	__u64 bias; /* file offset minus address */
	__u32 module;
	__u32 state;  /* enum unwind_table_state */
	__u32 within; /* 1: code of the module is such that calls may be within */
	__u32 pad;
	struct unwind_slice slice;
};

/* One step of a walk. */
struct step {
	__u64 pc, sp, fp; /* what it started from */
	__u64 ra_slot;	  /* address that it read the next pc from */
	__u64 fp_slot;	  /* address that it read the next fp from; 0: fp stayed as it was */
	__u64 hash;	  /* over this frame and all further out */
	struct ap_frame frame;
};

/* Marks a step that read more than those two words: it is never repeated from memory. */
#define STEP_ONCE 1

/* Records that a scratch remembers, with live, by their keys. They never change. */
#define SCRATCH_MEMOS 64

struct record_memo {
	struct ap_count_key key; /* its process is 0 where nothing is remembered */
	__u32 index;
	__u32 pad;
};

/* What a walk needs room for, and what is left of the thread's last one. */
struct scratch {
	__u32 taken;
	/* The last walk: steps[first] is the innermost frame, steps[AP_MAX_DEPTH - 1] the outermost. */
	__u32 first;
	__u64 thread;
	__u64 trampoline; /* of this process's return probes, whoever set them */
	__u64 code;	  /* at a pc that has no table */
	__u32 process, generation;
	__u32 end;	  /* enum ap_stack_end */
	__u32 end_once;	  /* 1: the end was not decided by the last frame's rule alone */
	__u32 span_bytes; /* of stack that the walk read */
	__u32 next_range;
	__u64 left_sp; /* of the stack that this walk left last for a goroutine's; 0: it left none */
	__u64 goroutine_sp;
	__u32 within; /* 1: a frame of the last walk is in code that calls are to be within */
	__u32 seq;    /* mappings__seq() */
	struct code_range ranges[SCRATCH_MAPPINGS];
	struct record_memo memos[SCRATCH_MEMOS];
	struct step steps[AP_MAX_DEPTH];
	struct step fresh[AP_MAX_DEPTH]; /* the walk under way, innermost first */
	/* A copy of the stack; when the walk is done, the frames of the record to user space. */
	__u64 window_start, window_bytes;
	struct ap_stack_record record; /* a multiple of 8 bytes: the frames follow it closely */
	union {
		__u64 window[WINDOW_WORDS];
		struct ap_frame frames[AP_MAX_DEPTH];
	};
};

/* The number of slots, a power of two, is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* An index that the verifier can see to be one: clang would leave out a mask that it can prove to do
 * nothing, from comparisons that the verifier does not connect. */
static __always_inline __u32 depth_index(__u32 index)
{
	barrier_var(index);
	return index & (AP_MAX_DEPTH - 1);
}

/* The finalizer of MurmurHash3: every bit of the input moves every bit of the result. */
static __always_inline __u64 mix(__u64 value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdULL;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ULL;
	value ^= value >> 33;
	return value;
}

/*
 * The slot that the thread had last time, if nobody else took it. Programs are preemptible: a slot
 * is claimed, not assumed, and another one is taken where a preempted program holds it. NULL where
 * all that are tried are held.
 */
static __always_inline struct scratch *scratch__claim(__u64 thread)
{
	__u32 home = mix(thread);

	if (config.no_scratch)
		return NULL;
	for (__u32 i = 0; i < AP_SCRATCH_TRIES; i++) {
		__u32 slot = (home + i) & config.scratch_mask;
		struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);

		if (scratch && __sync_val_compare_and_swap(&scratch->taken, 0, 1) == 0)
			return scratch;
	}
	return NULL;
}

static __always_inline void scratch__release(struct scratch *scratch)
{
	__sync_lock_test_and_set(&scratch->taken, 0);
}

/* Makes what the scratch remembers that of this thread in this state of its code. */
static __always_inline void scratch__enter(struct scratch *scratch, __u64 thread,
					   struct process *process)
{
	__u32 seq = mappings__seq();

	scratch->trampoline = trampoline__address();
	if (scratch->thread == thread && scratch->process == process->id &&
	    scratch->generation == process->generation && scratch->seq == seq)
		return;
	scratch->thread = thread;
	scratch->process = process->id;
	scratch->generation = process->generation;
	scratch->seq = seq;
	scratch->first = AP_MAX_DEPTH;
	scratch->span_bytes = 0;
	for (int i = 0; i < SCRATCH_MAPPINGS; i++)
		scratch->ranges[i].end = 0;
}

/* Copies the stack from @start on into the window, as much of @wanted bytes as there is: a read that
 * crosses the stack's top fails as a whole, so then only up to the end of the next page, or of this. */
__noinline int window__fill(struct scratch *scratch, __u64 start, __u32 wanted)
{
	__u32 bytes = wanted;

	if (!scratch)
		return -1;
	start &= ~7ULL;
	scratch->window_start = start;
	for (int i = 0; i < 3; i++) {
		if (bytes > sizeof(scratch->window))
			bytes = sizeof(scratch->window);
		if (!bpf_probe_read_user(scratch->window, bytes, (void *)start)) {
			scratch->window_bytes = bytes;
			return 0;
		}
		bytes = 4096 - (start & 4095);
		if (i == 0)
			bytes += 4096;
	}
	scratch->window_bytes = 0;
	return -1;
}

/* The word at @address of the stack that goes up from @sp. */
static __always_inline int window__read(struct scratch *scratch, __u64 sp, __u64 address,
					__u64 *value)
{
	__u64 offset = address - scratch->window_start;

	if (offset >= scratch->window_bytes || scratch->window_bytes - offset < 8 || (offset & 7)) {
		if (address & 7)
			return -1;
		/* With a large frame its words are far up: begin a little below them, but not in the page
		 * before, which may be an array that the program has never touched. */
		if (address - sp >= sizeof(scratch->window) / 2) {
			sp = address - 64;
			if ((sp ^ address) & ~4095ULL)
				sp = address & ~4095ULL;
		}
		if (window__fill(scratch, sp, sizeof(scratch->window)))
			return -1;
		offset = address - scratch->window_start;
		if (offset >= scratch->window_bytes || scratch->window_bytes - offset < 8)
			return -1;
	}
	*value = scratch->window[(offset >> 3) & (WINDOW_WORDS - 1)];
	return 0;
}

/* As window__read(), of a return address: without what a return probe has put there. */
static __always_inline int window__read_pc(struct scratch *scratch, __u64 sp, __u64 address,
					   __u64 *pc)
{
	if (window__read(scratch, sp, address, pc))
		return -1;
	if (*pc && *pc == scratch->trampoline)
		*pc = trampoline__real(address);
	return 0;
}

/* Where a walk stands. Without pointers, so that the verifier can look at a step by itself. */
struct walk {
	__u64 pc, sp, fp;
	__u32 pid;     /* in allocprof's namespace */
	__u32 call;    /* 1: pc is behind a call, 0: it was interrupted there */
	__u32 cursor;  /* in scratch->steps: the next step that may repeat */
	__u32 matched; /* from this step of the walk on all have repeated; n_frames: none */
	__u32 matched_cursor;
	__u32 n_frames;
	__u32 end;
	__u32 end_once;
	/* 1: while everything has repeated from the innermost frame on, steps are not copied, since
	 * they most likely all do; if not, the walk is made again (@again) with copies. */
	__u32 sparing, again;
	__u32 over_fp; /* 1: a step went over the frame pointer where there was no rule */
	__u32 range;   /* of scratch->ranges, used last */
	__u32 within;  /* AP_FRAME_WITHIN: a frame so far is in code that calls are to be within */
};

static __always_inline bool range__holds(const struct code_range *range, __u64 address)
{
	return address >= range->start && address < range->end;
}

/* Puts the code around @address into the scratch; returns where, or minus enum vma_result. */
__noinline int range__load(struct scratch *scratch, __u64 address, __u32 pid)
{
	struct code_range *range;
	struct unwind_slice *slice;
	struct unwind_table *table;
	__u64 offset;
	struct vma_answer answer = {};
	const struct vma *vma = &answer.vma;
	__u32 module, at;
	int err;

	if (!scratch)
		return -VMA_NONE;
	err = vma__find(&answer, scratch->process, pid, address, scratch->generation, scratch->seq);
	if (err)
		return -err;
	at = scratch->next_range++ & (SCRATCH_MAPPINGS - 1);
	range = &scratch->ranges[at];
	range->start = vma->start;
	range->end = vma->end;
	range->bias = vma->bias;
	range->module = vma->module;
	range->within = within__has(vma->module);
	range->state = UNWIND_TABLE_NONE;
	module = vma->module;
	if (!module)
		return at;
	table = bpf_map_lookup_elem(&unwind_tables, &module);
	if (!table)
		return at;
	range->state = table->state;
	if (range->state == UNWIND_TABLE_AWAITED) {
		range->end = 0; /* good for this frame only: look again next time */
		return at;
	}
	if (range->state != UNWIND_TABLE_READY)
		return at;
	offset = address + vma->bias;
	slice = slice__find(table, offset);
	if (!slice || offset - slice->file_offset >= slice->size) {
		/* Code outside of all call frame information. */
		range->state = UNWIND_TABLE_NONE;
		range->start = address;
		range->end = address + 1;
		return at;
	}
	range->slice = *slice;
	if (slice->file_offset - vma->bias > range->start)
		range->start = slice->file_offset - vma->bias;
	if (slice->file_offset + slice->size - vma->bias < range->end)
		range->end = slice->file_offset + slice->size - vma->bias;
	return at;
}

/* The range that holds @address, from the few that the scratch has or from the kernel. */
static __always_inline int range__find(struct scratch *scratch, struct walk *walk, __u64 address)
{
	if (range__holds(&scratch->ranges[walk->range & (SCRATCH_MAPPINGS - 1)], address))
		return walk->range;
	for (int i = 0; i < SCRATCH_MAPPINGS; i++)
		if (range__holds(&scratch->ranges[i], address))
			return i;
	return range__load(scratch, address, walk->pid);
}

static __always_inline long walk__stop(struct walk *walk, __u32 end, bool once)
{
	walk->end = end;
	walk->end_once = once;
	return 1;
}

/* Whether the frame is code at a file's entry point that no call frame information describes, as the
 * dynamic linker's: nothing called it. */
static __always_inline bool is_entry(const struct ap_frame *frame)
{
	__u32 module = frame->module;
	struct unwind_table *table = bpf_map_lookup_elem(&unwind_tables, &module);

	return table && frame->offset - table->entry_offset < table->entry_size;
}

/*
 * One step out of code without call frame information that is about to return: its last instructions say where the
 * caller's frame is. Python's perf trampolines are such code. -1: the code does more than to return.
 */
static __always_inline int walk__step_epilogue(struct scratch *scratch, struct walk *walk)
{
	__u64 slot, pc;
	int epilogue;

	if (bpf_probe_read_user(&scratch->code, sizeof(scratch->code), (void *)walk->pc))
		return -1;
	epilogue = arch__epilogue(scratch->code);
	if (epilogue < 0)
		return -1;
	slot = walk->sp + (epilogue & (ARCH_EPILOGUE_FP - 1));
	if (epilogue & ARCH_EPILOGUE_FP) {
		if (window__read(scratch, walk->sp, slot, &walk->fp))
			return walk__stop(walk, AP_END_UNREADABLE, true);
		slot += sizeof(slot);
	}
	if (window__read_pc(scratch, walk->sp, slot, &pc))
		return walk__stop(walk, AP_END_UNREADABLE, true);
	if (!pc)
		return walk__stop(walk, AP_END_COMPLETE, true);
	walk->sp = slot + sizeof(slot);
	walk->pc = pc;
	walk->call = 1;
	return 0;
}

/* One step over the frame pointer, where there is no call frame information. */
static __always_inline long walk__step_fp(struct scratch *scratch, struct walk *walk,
					  struct step *step)
{
	__u64 fp = walk->fp, next_fp, pc;
	int stop;

	step->fp_slot = STEP_ONCE;
	if (is_entry(&step->frame))
		return walk__stop(walk, AP_END_COMPLETE, true);
	stop = walk__step_epilogue(scratch, walk);
	if (stop >= 0)
		return stop;
	if (!bpf_probe_read_user(&scratch->code, sizeof(scratch->code),
				 (void *)(walk->pc - ARCH_CONTEXT_END_BYTES)) &&
	    arch__is_context_end(scratch->code))
		return walk__stop(walk, AP_END_COMPLETE, true);
	walk->over_fp = 1;
	if (!fp)
		return walk__stop(walk, AP_END_FRAME_POINTERS, true);
	if (fp < walk->sp || (fp & 7) || fp - walk->sp > (1 << 20))
		return walk__stop(walk, AP_END_BAD_FRAME, true);
	if (window__read(scratch, walk->sp, fp, &next_fp) ||
	    window__read_pc(scratch, walk->sp, fp + 8, &pc))
		return walk__stop(walk, AP_END_UNREADABLE, true);
	if (!pc)
		return walk__stop(walk, AP_END_FRAME_POINTERS, true);
	walk->sp = fp + 16;
	walk->fp = next_fp;
	walk->pc = pc;
	walk->call = 1;
	return 0;
}

/* Where a word lies that a rule places. */
static __always_inline __u64 place(__u8 where, __s32 offset, __u64 cfa, __u64 sp, __u64 fp)
{
	if (where == UNWIND_AT_CFA)
		return cfa + offset;
	return (where == UNWIND_AT_SP ? sp : fp) + offset;
}

static __always_inline int read_word(__u64 address, __u64 *value)
{
	return bpf_probe_read_user(value, sizeof(*value), (void *)address) ? -1 : 0;
}

/* The sp of the goroutine that is beneath Go's system stack, where @rule is for code that runs on that. */
static __noinline int goroutine__sp(struct scratch *scratch, const struct unwind_rule *rule,
				    __u64 sp)
{
	__u64 g, depth;

	if (!scratch || !rule)
		return -1;
	if (rule->cfa == UNWIND_CFA_SYSTEMSTACK) {
		scratch->left_sp = 0;
		if (read_word(arch__thread_data(bpf_get_current_task_btf()) + rule->cfa_offset,
			      &g) ||
		    read_word(g + UNWIND_GO_M, &g) || read_word(g + rule->fp_offset, &g))
			return -1;
		return read_word(g + UNWIND_GO_SCHED_SP, &scratch->goroutine_sp);
	}
	/* Its stack may be moved while C code runs: what is kept is how far sp was from its end. */
	scratch->left_sp = sp;
	if (read_word(sp + rule->cfa_offset, &g) || read_word(sp + rule->fp_offset, &depth) ||
	    read_word(g + UNWIND_GO_STACK_END, &g))
		return -1;
	scratch->goroutine_sp = g - depth;
	return 0;
}

/* One step by @rule. */
static __always_inline long walk__step_rule(struct scratch *scratch, struct walk *walk,
					    struct step *step, const struct unwind_rule *rule)
{
	__u64 sp = walk->sp, fp = walk->fp, cfa, pc;
	bool is_signal = rule->flags & UNWIND_SIGNAL_FRAME;
	bool once = is_signal, other_stack = is_signal;

	if (rule->ra_where == UNWIND_UNDEFINED) {
		step->fp_slot = 0;
		return walk__stop(walk, AP_END_COMPLETE, false);
	}
	switch (rule->cfa) {
	case UNWIND_CFA_SP:
		cfa = sp + rule->cfa_offset;
		break;
	case UNWIND_CFA_FP:
		cfa = fp + rule->cfa_offset;
		break;
	case UNWIND_CFA_PLT:
		cfa = sp + rule->cfa_offset +
		      ((walk->pc & ARCH_PLT_MASK) >= (__u64)rule->cfa_add ? 8 : 0);
		break;
	case UNWIND_CFA_AT_SP:
	case UNWIND_CFA_AT_FP:
		if (window__read(scratch, sp,
				 (rule->cfa == UNWIND_CFA_AT_SP ? sp : fp) + rule->cfa_offset,
				 &cfa))
			return walk__stop(walk, AP_END_UNREADABLE, true);
		cfa += rule->cfa_add;
		once = true;
		break;
	case UNWIND_CFA_GOROUTINE:
	case UNWIND_CFA_SYSTEMSTACK:
		if (goroutine__sp(scratch, rule, sp))
			return walk__stop(walk, AP_END_UNREADABLE, true);
		cfa = scratch->goroutine_sp + rule->cfa_add;
		once = other_stack = true;
		break;
	case UNWIND_CFA_LEFT:
		cfa = scratch->left_sp;
		if (!cfa)
			return walk__stop(walk, AP_END_OTHER_STACK, true);
		cfa += ((rule->cfa_add - cfa) & 15) + rule->cfa_offset;
		once = other_stack = true;
		break;
	case UNWIND_CFA_OTHER_STACK:
		return walk__stop(walk, AP_END_OTHER_STACK, true);
	default:
		return walk__stop(walk, AP_END_UNSUPPORTED, true);
	}
	/* A signal may have moved to another stack. */
	if (cfa <= sp && !other_stack)
		return walk__stop(walk, AP_END_BAD_FRAME, true);
	if (rule->ra_where == UNWIND_SAME)
		return walk__stop(walk, AP_END_UNSUPPORTED, true);

	step->fp_slot = 0;
	if (rule->fp_where != UNWIND_SAME && rule->fp_where != UNWIND_UNDEFINED) {
		step->fp_slot = place(rule->fp_where, rule->fp_offset, cfa, sp, fp);
		if (window__read(scratch, sp, step->fp_slot, &walk->fp))
			return walk__stop(walk, AP_END_UNREADABLE, true);
	}
	step->ra_slot = place(rule->ra_where, rule->ra_offset, cfa, sp, fp);
	if (window__read_pc(scratch, sp, step->ra_slot, &pc))
		return walk__stop(walk, AP_END_UNREADABLE, true);
	if (once)
		step->fp_slot = STEP_ONCE;
	/* The mark of the outermost frame in the processors' ABIs. */
	if (!pc)
		return walk__stop(walk, AP_END_COMPLETE, true);
	walk->sp = cfa;
	walk->pc = pc;
	walk->call = !is_signal;
	return 0;
}

/* Whether the return address, with nothing before it that could have called, is where a function
 * begins: it was put there for the outermost function to return to, as makecontext(3) does. */
static __always_inline bool is_made_up(const struct code_range *range, __u64 pc)
{
	__u64 offset = pc + range->bias - range->slice.file_offset;
	struct unwind_rule *rule;

	if (offset >= range->slice.size)
		return false;
	rule = slice__rule(&range->slice, offset);
	return rule && rule->cfa != UNWIND_CFA_NONE;
}

/* One step by look-ups. 1: the walk is at its end. */
__noinline int walk__step(struct scratch *scratch, struct walk *walk, __u32 index)
{
	struct code_range *range;
	struct unwind_rule *rule;
	struct step *step;
	__u64 address;
	int at;

	if (!scratch || !walk)
		return 1;
	step = &scratch->fresh[depth_index(index)];
	address = walk->pc - walk->call;
	at = range__find(scratch, walk, address);
	step->fp_slot = STEP_ONCE;
	step->frame.flags = walk->call ? 0 : AP_FRAME_INTERRUPTED;
	if (at < 0) {
		step->frame.module = 0;
		step->frame.offset = walk->pc;
		if (at == -VMA_BUSY) {
			walk->n_frames = index + 1;
			return walk__stop(walk, AP_END_NO_TABLE, true);
		}
		return walk__stop(walk, AP_END_NO_MAPPING, true);
	}
	walk->n_frames = index + 1;
	walk->range = at;
	range = &scratch->ranges[at & (SCRATCH_MAPPINGS - 1)];
	step->frame.module = range->module;
	step->frame.offset = walk->pc + (range->module ? range->bias : 0);
	if (config.within && range->within &&
	    within__holds(range->module, step->frame.offset - walk->call)) {
		step->frame.flags |= AP_FRAME_WITHIN;
		walk->within = AP_FRAME_WITHIN;
	}
	if (range->state == UNWIND_TABLE_AWAITED)
		return walk__stop(walk, AP_END_NO_TABLE, true);
	if (range->state == UNWIND_TABLE_NONE)
		return walk__step_fp(scratch, walk, step);
	rule = slice__rule(&range->slice, address + range->bias - range->slice.file_offset);
	if (!rule)
		return walk__stop(walk, AP_END_NO_TABLE, true);
	if (rule->cfa == UNWIND_CFA_NONE) {
		if (walk->call && is_made_up(range, walk->pc))
			return walk__stop(walk, AP_END_COMPLETE, true);
		return walk__step_fp(scratch, walk, step);
	}
	return walk__step_rule(scratch, walk, step, rule);
}

/* The remembered step that starts from where the walk stands, or NULL. */
static __always_inline struct step *walk__remembered(struct scratch *scratch, struct walk *walk)
{
	struct step *step;

	for (int i = 0; i < 4; i++) {
		if (walk->cursor >= AP_MAX_DEPTH)
			return NULL;
		step = &scratch->steps[depth_index(walk->cursor)];
		if (step->sp >= walk->sp)
			break;
		walk->cursor++;
	}
	if (walk->cursor >= AP_MAX_DEPTH)
		return NULL;
	step = &scratch->steps[depth_index(walk->cursor)];
	/* Where a thread was interrupted, the same state means another place. */
	if (step->sp != walk->sp || step->pc != walk->pc || step->fp != walk->fp || !walk->call ||
	    (step->frame.flags & AP_FRAME_INTERRUPTED) || step->fp_slot == STEP_ONCE)
		return NULL;
	return step;
}

struct walk_context {
	struct scratch *scratch;
	struct walk walk;
};

/* Waits for what the step could not have at once; false: it will not come, or not in time. */
static __always_inline bool walk__await(struct scratch *scratch, const struct walk *walk,
					const struct step *step)
{
	if (step->frame.module)
		return table__await(step->frame.module);
	return vma__await(walk->pc - walk->call, scratch->process, walk->pid, scratch->generation,
			  scratch->seq);
}

static long walk_frame(__u32 index, struct walk_context *context)
{
	struct scratch *scratch = context->scratch;
	struct walk *walk = &context->walk;
	struct step *fresh, *known;
	int stop;

	if (index >= AP_MAX_DEPTH) /* bpf_loop() stops before; the verifier wants to see it */
		return 1;
	known = walk__remembered(scratch, walk);
	if (!known || (walk->cursor == AP_MAX_DEPTH - 1 && scratch->end_once)) {
		if (walk->sparing && walk->matched == 0) {
			walk->again = 1;
			return 1;
		}
		fresh = &scratch->fresh[depth_index(index)];
		fresh->pc = walk->pc;
		fresh->sp = walk->sp;
		fresh->fp = walk->fp;
		walk->matched = ~0U;
		stop = walk__step(scratch, walk, index);
		/* First, perhaps, for the mapping, then for its table. */
		for (int i = 0; i < 2 && stop && walk->end == AP_END_NO_TABLE; i++) {
			if (!walk__await(scratch, walk, fresh))
				break;
			walk->end = AP_END_MAX_DEPTH;
			stop = walk__step(scratch, walk, index);
		}
		/* clang 19 sees that it is 0 or 1 and drops the comparison; the verifier does not. */
		barrier_var(stop);
		return stop != 0;
	}
	if (walk->matched == ~0U) {
		walk->matched = index;
		walk->matched_cursor = walk->cursor;
	}
	walk->n_frames = index + 1;
	walk->within |= known->frame.flags & AP_FRAME_WITHIN;
	if (!walk->sparing || walk->matched != 0) {
		fresh = &scratch->fresh[depth_index(index)];
		*fresh = *known;
	}
	/* Its rule alone said that it was the outermost. */
	if (walk->cursor == AP_MAX_DEPTH - 1)
		return walk__stop(walk, AP_END_COMPLETE, false);
	walk->cursor++;
	if (known->fp_slot && window__read(scratch, walk->sp, known->fp_slot, &walk->fp))
		return walk__stop(walk, AP_END_UNREADABLE, true);
	if (window__read_pc(scratch, walk->sp, known->ra_slot, &walk->pc))
		return walk__stop(walk, AP_END_UNREADABLE, true);
	/* The step's rule placed the caller's frame there. */
	walk->sp = scratch->steps[depth_index(walk->cursor)].sp;
	if (!walk->pc)
		return walk__stop(walk, AP_END_COMPLETE, true);
	return 0;
}

struct remember {
	struct scratch *scratch;
	__u64 hash;
	__u32 next; /* of the walk's steps, counted down */
	__u32 first;
};

/* Moves the outermost of the new steps behind what is remembered, hashing from the outside in. */
static long remember_step(__u32 index, struct remember *remember)
{
	struct scratch *scratch = remember->scratch;
	struct step *from, *to;

	if (!remember->next || !remember->first)
		return 1;
	remember->next--;
	remember->first--;
	from = &scratch->fresh[depth_index(remember->next)];
	to = &scratch->steps[depth_index(remember->first)];
	*to = *from;
	remember->hash = mix(remember->hash ^ from->frame.offset ^
			     ((__u64)from->frame.module << 48) ^ ((__u64)from->frame.flags << 40));
	to->hash = remember->hash;
	return 0;
}

static __always_inline void walk__begin(struct walk *walk, const struct scratch *scratch,
					const struct process *process, const struct hit *hit)
{
	*walk = (struct walk){
		.pid = process->pid,
		.pc = hit->return_address,
		.sp = arch__caller_sp(hit->sp),
		.fp = hit->fp,
		.call = 1,
		.cursor = scratch->first,
		.matched = ~0U,
		.end = AP_END_MAX_DEPTH,
		.end_once = 1,
	};
}

/*
 * Walks the stack of the thread that stands at @hit into the scratch, the allocator's caller first:
 * frames, end and hash. The window begins at the stack's top already.
 */
static __always_inline void stack__walk(struct scratch *scratch, struct process *process,
					const struct hit *hit)
{
	struct walk_context context = { .scratch = scratch };
	struct walk *walk = &context.walk;
	struct remember remember = { .scratch = scratch };
	__u64 span;

	walk__begin(walk, scratch, process, hit);
	scratch->left_sp = 0;
	walk->sparing = 1;
	if (hit->return_address)
		bpf_loop(config.max_depth, walk_frame, &context, 0);
	else
		walk->end = AP_END_UNREADABLE;
	/* Not all of it repeated, and what did was not copied. */
	if (walk->again || (walk->matched == 0 && (walk->end_once || walk->end != scratch->end))) {
		walk__begin(walk, scratch, process, hit);
		scratch->left_sp = 0;
		bpf_loop(config.max_depth, walk_frame, &context, 0);
	}
	if (walk->over_fp && walk->end == AP_END_COMPLETE) {
		walk->end = AP_END_FRAME_POINTERS;
		/* The next stack may have the same last frame and no such step. */
		walk->end_once = 1;
	}

	remember.next = walk->n_frames;
	remember.first = AP_MAX_DEPTH;
	remember.hash = mix(walk->end + 1);
	/* The steps further out are in place, with a hash that stands for the same end. */
	if (walk->matched < walk->n_frames && walk->end == scratch->end && !walk->end_once) {
		remember.next = walk->matched;
		remember.first = walk->matched_cursor;
		if (remember.first < AP_MAX_DEPTH)
			remember.hash = scratch->steps[depth_index(remember.first)].hash;
	}
	bpf_loop(AP_MAX_DEPTH, remember_step, &remember, 0);
	scratch->first = remember.first;
	scratch->end = walk->end;
	scratch->end_once = walk->end_once;
	scratch->within = walk->within;
	span = (scratch->left_sp ?: walk->sp) - hit->sp;
	scratch->span_bytes = span < sizeof(scratch->window) ? span : sizeof(scratch->window);
	scratch->record.type = AP_RECORD_STACK;
	scratch->record.n_frames = walk->n_frames;
	scratch->record.process = process->id;
	scratch->record.end = walk->end;
	scratch->record.stack = remember.hash;
}

/* Bytes of stack to copy at first: what the last walk needed, and a little for what is called next. */
static __always_inline __u32 stack__expected_bytes(const struct scratch *scratch)
{
	__u32 bytes = scratch->span_bytes ? scratch->span_bytes + 256 : FIRST_WINDOW_BYTES;

	return (bytes + 63) & ~63U;
}

static long copy_frame(__u32 index, struct scratch **scratch_at)
{
	struct scratch *scratch = *scratch_at;
	__u32 from = scratch->first + index;

	if (from >= AP_MAX_DEPTH || index >= AP_MAX_DEPTH)
		return 1;
	scratch->frames[depth_index(index)] = scratch->steps[depth_index(from)].frame;
	return 0;
}

/* Lays the frames out behind the record, over the window, which the walk has done with. */
static __always_inline void stack__lay_out(struct scratch *scratch)
{
	bpf_loop(AP_MAX_DEPTH, copy_frame, &scratch, 0);
}

#endif
