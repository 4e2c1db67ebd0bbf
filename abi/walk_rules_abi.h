/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules by which a walk goes from a frame to its caller (docs/cfi-tables.md), shared by the programs
 * of bpf/ and src/inside. Each side defines these macros before it includes this header:
 *
 *	AP_WALKER		the struct that loads need; it has left_sp and goroutine_sp
 *	AP_WALK			the struct of a walk's state: pc, sp, fp, link, call, end, end_once, over_fp;
 *				link is the return address of code that has not saved it, 0: not known
 *	AP_LOAD(walker, walk, address, out)		loads a word of the stack
 *	AP_LOAD_PC(walker, walk, address, out)		loads a return address from the stack
 *	AP_LOAD_OTHER(walker, address, out)		loads a word that may be outside of the stack
 *	AP_THREAD_DATA()	the thread pointer
 *	AP_FIND_GOROUTINE	ap_goroutine__find(), or a function that calls it
 *
 * A load is true if the word cannot be read. A step returns 1 if the walk ends with it.
 */
#ifndef ALLOCPROF_WALK_RULES_ABI_H
#define ALLOCPROF_WALK_RULES_ABI_H

#include "abi.h"
#include "processor_abi.h"
#include "unwind_abi.h"

#define AP_WALK_RULE static inline __attribute__((always_inline))

/* Where no rule says that a register is a frame pointer, it counts as one only if it is at most
 * this far above sp. */
#define AP_MAX_FRAME_BYTES (1 << 20)

/* Ends the walk. @once: the end depends on more than the last frame's rule. */
AP_WALK_RULE long ap_walk__stop(AP_WALK *walk, __u32 end, int once)
{
	walk->end = end;
	walk->end_once = once;
	return 1;
}

/* Unwinds a frame whose next instructions are an epilogue, such as in Python's perf trampolines.
 * @popped has AP_EPILOGUE_ bits. */
AP_WALK_RULE long ap_walk__step_epilogue(AP_WALKER *walker, AP_WALK *walk, int popped)
{
	__u64 sp = walk->sp, pc;

	if (popped & AP_EPILOGUE_FP &&
	    AP_LOAD(walker, walk, sp + AP_EPILOGUE_FP_OFFSET(popped), &walk->fp))
		return ap_walk__stop(walk, AP_END_UNREADABLE, 1);
	if (AP_LOAD_PC(walker, walk, sp + AP_EPILOGUE_RA_OFFSET(popped), &pc))
		return ap_walk__stop(walk, AP_END_UNREADABLE, 1);
	if (!pc)
		return ap_walk__stop(walk, AP_END_COMPLETE, 1);
	walk->sp = sp + AP_EPILOGUE_BYTES(popped);
	walk->pc = pc;
	walk->link = 0;
	walk->call = 1;
	return 0;
}

/* Unwinds the frame that the kernel has built for a signal, from code without call frame information. */
AP_WALK_RULE long ap_walk__step_signal(AP_WALKER *walker, AP_WALK *walk)
{
	__u64 sp = walk->sp, pc;

	if (AP_LOAD(walker, walk, sp + AP_SIGNAL_FP_OFFSET, &walk->fp) ||
	    AP_LOAD(walker, walk, sp + AP_SIGNAL_SP_OFFSET, &walk->sp) ||
	    AP_LOAD_PC(walker, walk, sp + AP_SIGNAL_PC_OFFSET, &pc) ||
	    AP_LOAD_PC(walker, walk, sp + AP_SIGNAL_PC_OFFSET + AP_SIGNAL_LINK_OFFSET, &walk->link))
		return ap_walk__stop(walk, AP_END_UNREADABLE, 1);
	if (!pc)
		return ap_walk__stop(walk, AP_END_COMPLETE, 1);
	walk->pc = pc;
	walk->call = 0;
	return 0;
}

/* Unwinds a frame by the frame pointer, for want of call frame information. */
AP_WALK_RULE long ap_walk__step_frame_pointer(AP_WALKER *walker, AP_WALK *walk)
{
	__u64 fp = walk->fp, next_fp, pc;

	walk->over_fp = 1;
	if (!fp)
		return ap_walk__stop(walk, AP_END_FRAME_POINTERS, 1);
	if (fp < walk->sp || (fp & 7) || fp - walk->sp > AP_MAX_FRAME_BYTES)
		return ap_walk__stop(walk, AP_END_BAD_FRAME, 1);
	if (AP_LOAD(walker, walk, fp, &next_fp) || AP_LOAD_PC(walker, walk, fp + 8, &pc))
		return ap_walk__stop(walk, AP_END_UNREADABLE, 1);
	if (!pc)
		return ap_walk__stop(walk, AP_END_FRAME_POINTERS, 1);
	walk->sp = fp + 16;
	walk->fp = next_fp;
	walk->pc = pc;
	walk->link = 0;
	walk->call = 1;
	return 0;
}

/* Finds the goroutine's sp for code that runs on the thread's own stack, by its @rule. Returns
 * true if it cannot be read. */
AP_WALK_RULE int ap_goroutine__find(AP_WALKER *walker, const struct unwind_rule *rule, __u64 sp)
{
	__u64 g, depth;

	if (rule->cfa == UNWIND_CFA_SYSTEMSTACK) {
		walker->left_sp = 0;
		return AP_LOAD_OTHER(walker, AP_THREAD_DATA() + rule->cfa_offset, &g) ||
		       AP_LOAD_OTHER(walker, g + UNWIND_GO_M, &g) ||
		       AP_LOAD_OTHER(walker, g + rule->fp_offset, &g) ||
		       AP_LOAD_OTHER(walker, g + UNWIND_GO_SCHED_SP, &walker->goroutine_sp);
	}
	/* C code may call back into Go, which may move the goroutine's stack: its sp is saved
	 * relative to the stack's end. */
	walker->left_sp = sp;
	if (AP_LOAD_OTHER(walker, sp + rule->cfa_offset, &g) ||
	    AP_LOAD_OTHER(walker, sp + rule->fp_offset, &depth) ||
	    AP_LOAD_OTHER(walker, g + UNWIND_GO_STACK_END, &g))
		return 1;
	walker->goroutine_sp = g - depth;
	return 0;
}

/* A step by a rule. */
struct ap_rule_step {
	__u64 cfa;
	int is_signal;	 /* the frame is a signal's: the caller was interrupted */
	int once;	 /* the step reads more than two words of the stack, and is not reused */
	int other_stack; /* the caller may be on another stack */
};

/* Finds the CFA, and the addresses of the words that the rule gives. */
AP_WALK_RULE long ap_walk__find_cfa(AP_WALKER *walker, AP_WALK *walk,
				    const struct unwind_rule *rule, struct ap_rule_step *out)
{
	__u64 sp = walk->sp, fp = walk->fp, cfa;
	int is_signal = rule->flags & UNWIND_SIGNAL_FRAME;
	int once = is_signal, other_stack = is_signal, is_link;

	switch (rule->cfa) {
	case UNWIND_CFA_SP:
		cfa = sp + rule->cfa_offset;
		/* A frame pointer does not tell the caller's sp where frames have other things above it,
		 * but code that calls has its own where it has saved its caller's. */
		if (AP_HAS_LINK && walk->over_fp && walk->call && rule->fp_where == UNWIND_AT_CFA) {
			cfa = fp - rule->fp_offset;
			walk->sp = cfa - rule->cfa_offset;
			once = 1;
		}
		break;
	case UNWIND_CFA_FP:
		cfa = fp + rule->cfa_offset;
		break;
	case UNWIND_CFA_PLT:
		cfa = sp + rule->cfa_offset +
		      ((walk->pc & UNWIND_PLT_MASK) >= (__u64)rule->cfa_add ? 8 : 0);
		break;
	case UNWIND_CFA_AT_SP:
	case UNWIND_CFA_AT_FP:
		if (AP_LOAD(walker, walk,
			    (rule->cfa == UNWIND_CFA_AT_SP ? sp : fp) + rule->cfa_offset, &cfa))
			return ap_walk__stop(walk, AP_END_UNREADABLE, 1);
		cfa += rule->cfa_add;
		once = 1;
		break;
	case UNWIND_CFA_GOROUTINE:
	case UNWIND_CFA_SYSTEMSTACK:
		if (AP_FIND_GOROUTINE(walker, rule, sp))
			return ap_walk__stop(walk, AP_END_UNREADABLE, 1);
		cfa = walker->goroutine_sp + rule->cfa_add;
		once = other_stack = 1;
		break;
	case UNWIND_CFA_LEFT:
		cfa = walker->left_sp;
		if (!cfa)
			return ap_walk__stop(walk, AP_END_OTHER_STACK, 1);
		cfa += ((rule->cfa_add - cfa) & 15) + rule->cfa_offset;
		once = other_stack = 1;
		break;
	case UNWIND_CFA_OTHER_STACK:
		return ap_walk__stop(walk, AP_END_OTHER_STACK, 1);
	default:
		return ap_walk__stop(walk, AP_END_UNSUPPORTED, 1);
	}
	is_link = AP_HAS_LINK && rule->ra_where == UNWIND_SAME;
	if (rule->ra_where == UNWIND_SAME && (!is_link || !walk->link))
		return ap_walk__stop(walk, AP_END_UNSUPPORTED, 1);
	/* Code that has not saved its return address may have no frame at all. The frame before a
	 * signal handler's may be on another stack. */
	if ((is_link ? cfa < sp : cfa <= sp) && !other_stack)
		return ap_walk__stop(walk, AP_END_BAD_FRAME, 1);
	once |= is_link;
	out->cfa = cfa;
	out->is_signal = is_signal;
	out->once = once;
	out->other_stack = other_stack;
	return 0;
}

/* Returns the address of the word that a rule describes. */
AP_WALK_RULE __u64 ap_rule__slot(__u8 where, __s32 offset, __u64 cfa, __u64 sp, __u64 fp)
{
	if (where == UNWIND_AT_CFA)
		return cfa + offset;
	return (where == UNWIND_AT_SP ? sp : fp) + offset;
}

/* Loads the caller's pc and, if the rule says where it is, the caller's fp. Stores the addresses
 * of both words; *@fp_slot is 0 if fp is unchanged, *@ra_slot if the return address is in its
 * register. */
AP_WALK_RULE long ap_walk__load_caller(AP_WALKER *walker, AP_WALK *walk,
				       const struct unwind_rule *rule, __u64 cfa, __u64 *fp_slot,
				       __u64 *ra_slot, __u64 *pc)
{
	__u64 sp = walk->sp, fp = walk->fp;

	*fp_slot = 0;
	if (rule->fp_where != UNWIND_SAME && rule->fp_where != UNWIND_UNDEFINED) {
		*fp_slot = ap_rule__slot(rule->fp_where, rule->fp_offset, cfa, sp, fp);
		if (AP_LOAD(walker, walk, *fp_slot, &walk->fp))
			return ap_walk__stop(walk, AP_END_UNREADABLE, 1);
	}
	*ra_slot = 0;
	*pc = walk->link;
	walk->link = 0;
	if (AP_HAS_LINK && rule->ra_where == UNWIND_SAME)
		return 0;
	*ra_slot = ap_rule__slot(rule->ra_where, rule->ra_offset, cfa, sp, fp);
	if (AP_LOAD_PC(walker, walk, *ra_slot, pc))
		return ap_walk__stop(walk, AP_END_UNREADABLE, 1);
	if (AP_HAS_LINK && rule->flags & UNWIND_SIGNAL_FRAME &&
	    AP_LOAD_PC(walker, walk, *ra_slot + AP_SIGNAL_LINK_OFFSET, &walk->link))
		return ap_walk__stop(walk, AP_END_UNREADABLE, 1);
	return 0;
}

#endif
