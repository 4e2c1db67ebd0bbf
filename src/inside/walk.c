// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "walk.h"

#include <linux/errno.h>
#include <stddef.h>

#include "async_code.h"
#include "stack.h"
#include "sys.h"
#include "tables.h"

static bool is_made_up(const struct unwind_table *table, __u64 offset)
{
	const struct unwind_slice *slice = tables__slice(table, offset);
	const struct unwind_rule *rule =
		slice ? slice__rule(slice, offset - slice->file_offset) : NULL;

	return rule && rule->cfa != UNWIND_CFA_NONE;
}

static void no_code__forget(struct no_code *none)
{
	for (int i = 0; i < NO_CODES; i++)
		none->list[i].start = none->list[i].end = 0;
}

static bool no_code__has(struct no_code *none, __u64 address)
{
	if (none->loads != code__loads()) {
		none->loads = code__loads();
		no_code__forget(none);
	}
	for (int i = 0; i < NO_CODES; i++)
		if (address - none->list[i].start < none->list[i].end - none->list[i].start)
			return true;
	return false;
}

/* Notes that @range contains no code. Where nothing is mapped, the range begins at the page that
 * was asked for. */
static void no_code__add(struct no_code *none, const struct code_range *range)
{
	__u32 at;

	for (at = 0; at < NO_CODES; at++)
		if (none->list[at].end == range->end && range->end) {
			if (range->start < none->list[at].start)
				none->list[at].start = range->start;
			return;
		}
	at = none->next++ % NO_CODES;
	none->list[at].start = range->start;
	none->list[at].end = range->end;
}

static void known_code__set_rule(struct known_code *code, const struct unwind_rule *rule)
{
	code->rule = *rule;
	code->simple = (rule->cfa == UNWIND_CFA_SP || rule->cfa == UNWIND_CFA_FP) &&
		       rule->ra_where == UNWIND_AT_CFA && IS_PLAIN_RA_OFFSET(rule) &&
		       !rule->flags && rule->fp_where <= UNWIND_AT_CFA &&
		       !(code->within & CODE_ASYNC);
}

/* Notes whether the code is in an async function of Swift. */
static void known_code__look_for_async(struct walker *walker, struct known_code *code,
				       __u64 address, const struct unwind_rule *rule,
				       const struct code_range *range)
{
	if (unlikely(async_is_there) && rule->cfa == UNWIND_CFA_FP &&
	    rule->fp_where == UNWIND_AT_CFA && async_code__has(&walker->work, address, range))
		code->within |= CODE_ASYNC;
}

/* Finds the rule where nobody compiles tables. */
static bool known_code__find_own(struct walker *walker, __u64 address, __u32 call,
				 const struct code_range *range, struct known_code *out)
{
	struct unwind_rule rule;

	out->address = address;
	out->state = frame_rules__find(&walker->work, address, range, &rule);
	if (out->state != UNWIND_TABLE_READY)
		return true;
	known_code__look_for_async(walker, out, address, &rule, range);
	known_code__set_rule(out, &rule);
	/* An entry that is there may have been left out. */
	if (rule.cfa == UNWIND_CFA_NONE && walker->work.may_be_unmapped)
		out->address = NO_ADDRESS;
	if (rule.cfa == UNWIND_CFA_NONE && call)
		out->made_up = frame_rules__find(&walker->work, address + call, range, &rule) ==
				       UNWIND_TABLE_READY &&
			       rule.cfa != UNWIND_CFA_NONE;
	return true;
}

/* Finds the code of a frame. @call: @pc is a return address. Returns false if no mapping contains
 * it. */
static __attribute__((noinline)) bool known_code__find(struct walker *walker, __u64 pc, __u32 call,
						       struct known_code *out)
{
	struct no_code *none = &walker->no_code;
	__u64 address = pc - call;
	const struct unwind_slice *slice;
	const struct unwind_table *table;
	const struct unwind_rule *rule;
	struct code_range range;
	int err;

	if (no_code__has(none, address))
		return false;
	err = code__find(address, &range);
	if (err == -ENOENT)
		no_code__add(none, &range);
	if (err)
		return false;
	*out = (struct known_code){
		.offset = pc + range.bias,
		.module = range.module,
		.state = UNWIND_TABLE_NONE,
		.address = NO_ADDRESS,
	};
	if (tables__is_within(range.module, address + range.bias))
		out->within = AP_FRAME_WITHIN;
	if (!tables.tables)
		return known_code__find_own(walker, address, call, &range, out);
	table = tables__of(range.module);
	if (table)
		out->state = __atomic_load_n(&table->state, __ATOMIC_ACQUIRE);
	/* The table may still come, so nothing is remembered. */
	if (out->state == UNWIND_TABLE_AWAITED)
		return true;
	out->address = address;
	if (out->state != UNWIND_TABLE_READY)
		return true;
	slice = tables__slice(table, address + range.bias);
	if (!slice) {
		out->state = UNWIND_TABLE_NONE;
		return true;
	}
	rule = slice__rule(slice, address + range.bias - slice->file_offset);
	if (!rule) {
		out->state = UNWIND_TABLE_AWAITED;
		out->address = NO_ADDRESS;
		return true;
	}
	known_code__look_for_async(walker, out, address, rule, &range);
	known_code__set_rule(out, rule);
	if (rule->cfa == UNWIND_CFA_NONE)
		out->made_up = call && is_made_up(table, pc + range.bias);
	return true;
}

/* The state of a walk. */
struct state {
	__u64 pc, sp, fp;
	__u64 link; /* return address of a frame that has not saved it; 0: not known, or none */
	__u32 call; /* 1: pc is a return address, 0: the thread was interrupted there */
	__u32 end;
	__u32 end_once;
	__u32 over_fp; /* 1: a step used the frame pointer for want of a rule */
};

void walker__forget(struct walker *walker)
{
	for (int i = 0; i < KNOWN_CODES; i++)
		walker->known[i].address = NO_ADDRESS;
	no_code__forget(&walker->no_code);
	walker__leave_stack(walker);
}

void walker__leave_stack(struct walker *walker)
{
	walker->n = walker->n_plain = 0;
	walker->range = walker->own = (struct stack_range){ 0 };
}

static inline bool range__has(const struct stack_range *range, __u64 address)
{
	return address >= range->start && address < range->end && range->end - address >= 8 &&
	       !(address & 7);
}

/*
 * Reads a word of the stack. The thread's range is as it was when the thread came to that stack;
 * parts of it may have been unmapped since, unless it is the thread's own stack. The memory of
 * frames that the thread is in is mapped, but a frame pointer that was used without a rule may
 * point anywhere.
 */
static inline bool load_word(struct walker *walker, const struct state *state, __u64 address,
			     __u64 *value)
{
	if (unlikely(state->over_fp)) {
		if (!range__has(&walker->range, address) || address >= walker->range.own_end)
			return stack_copy__load(&walker->copy, address, value);
		*value = stack__word(address);
		return true;
	}
	if (likely(range__has(&walker->range, address))) {
		*value = stack__word(address);
		return true;
	}
	return !(address & 7) && memory__read(address, value, sizeof(*value));
}

static inline bool load_pc(struct walker *walker, const struct state *state, __u64 address,
			   __u64 *pc)
{
	if (!load_word(walker, state, address, pc))
		return false;
	*pc = processor__code_address(*pc);
	return true;
}

/* After how many walks cached facts about code are dropped, so that code that was written without
 * a system call is noticed. */
#define MAX_WALKS 16384

/* Returns whether the range is the stack of the process's first thread, which grows and is never
 * unmapped. */
static inline bool range__is_of_first(const struct stack_range *range)
{
	return range->own_end && range->own_end == range->end;
}

static __u64 thread_data(void)
{
#ifdef INSIDE_HOST
	return 0;
#else
	return processor__thread_data();
#endif
}

/* The rules of a step are shared with the programs of bpf/. */
#define AP_WALKER				struct walker
#define AP_WALK					struct state
#define AP_LOAD(walker, state, address, out)	(!load_word(walker, state, address, out))
#define AP_LOAD_PC(walker, state, address, out) (!load_pc(walker, state, address, out))
#define AP_LOAD_OTHER(walker, address, out)	(!memory__read_kept(address, out))
#define AP_THREAD_DATA()			thread_data()
#define AP_FIND_GOROUTINE(walker, rule, sp)	ap_goroutine__find(walker, rule, sp)
#include "walk_rules_abi.h"

/* Flags that say what the bytes at an address are, beside AP_EPILOGUE_. */
#define SAYS_EPILOGUE 0x10000
#define SAYS_END      0x20000
#define SAYS_SIGNAL   0x40000

/* Returns the SAYS_ flags for the next 8 bytes of code. */
static __u32 epilogue_of(__u64 code)
{
	int popped = ap_code__epilogue(code);

	if (AP_IS_SIGNAL_RETURN(code))
		return SAYS_SIGNAL;
	return popped < 0 ? 0 : SAYS_EPILOGUE | popped;
}

/* Returns the SAYS_ flags for the code at @pc. Reading the code takes a system call, so the result
 * is remembered for all walks. */
static __u32 code__says(__u64 pc)
{
	__u64 code[2] = { 0 }, behind;
	__u32 said = 0;

	if (code__recall(pc, &said))
		return said;
	if (memory__read(pc - AP_CONTEXT_END_BYTES, code, AP_CONTEXT_END_BYTES + sizeof(behind))) {
		behind = code[0] >> 8 * AP_CONTEXT_END_BYTES;
		if (AP_CONTEXT_END_BYTES)
			behind |= code[1] << (63 - 8 * AP_CONTEXT_END_BYTES) << 1;
		said = epilogue_of(behind) | (ap_code__is_context_end(code[0]) ? SAYS_END : 0);
	} else if (memory__read(pc, &behind, sizeof(behind))) {
		said = epilogue_of(behind);
	}
	code__remember(pc, said);
	return said;
}

static bool is_entry(const struct ap_frame *frame)
{
	const struct unwind_table *table = tables__of(frame->module);

	if (!tables.tables)
		return frame_rules__is_entry(frame->module, frame->offset);
	return table && frame->offset - table->entry_offset < table->entry_size;
}

/* Unwinds one frame without call frame information, by its next instructions or by the frame pointer. */
static int step_fp(struct walker *walker, struct state *state, struct step *step)
{
	__u32 said;

	if (is_entry(&step->frame))
		return ap_walk__stop(state, AP_END_COMPLETE, true);
	said = code__says(state->pc);
	if (said & SAYS_EPILOGUE)
		return ap_walk__step_epilogue(walker, state, said);
	if (said & SAYS_SIGNAL)
		return ap_walk__step_signal(walker, state);
	if (said & SAYS_END)
		return ap_walk__stop(state, AP_END_COMPLETE, true);
	return ap_walk__step_frame_pointer(walker, state);
}

/* Changes the walker's range to the stack that contains @sp. */
static __attribute__((noinline)) void change_stack(struct walker *walker, __u64 sp, __u32 n_fresh)
{
	__u32 left = AP_MAX_DEPTH - n_fresh;

	if (sp - walker->own.start < walker->own.end - walker->own.start) {
		walker->range = walker->own;
		return;
	}
	/* The unused end of the array of steps serves as a buffer. */
	stack__range(sp, thread_data(), &walker->range, &walker->fresh[n_fresh],
		     left * sizeof(struct step));
	if (walker->range.own_end)
		walker->own = walker->range;
}

static int step_rule(struct walker *walker, struct state *state, struct step *step,
		     const struct unwind_rule *rule)
{
	struct ap_rule_step found;
	__u64 pc;

	if (rule->ra_where == UNWIND_UNDEFINED) {
		step->frame.flags &= ~(STEP_ONCE | STEP_USES_FP);
		return ap_walk__stop(state, AP_END_COMPLETE, false);
	}
	if (ap_walk__find_cfa(walker, state, rule, &found))
		return 1;
	/* The stack has to be found only for a caller on another stack: a frame that the thread is
	 * in is mapped, except for what a signal's frame refers to. */
	if (found.other_stack && !found.is_signal && !range__has(&walker->range, found.cfa - 8))
		change_stack(walker, found.cfa - 8, step - walker->fresh + 1);
	if (ap_walk__load_caller(walker, state, rule, found.cfa, &step->fp_slot, &step->ra_slot,
				 &pc))
		return 1;
	/* A step that has read memory outside of the stack is not reused: comparing that memory
	 * would take a system call. */
	if (!found.once && range__has(&walker->range, step->ra_slot) &&
	    (!step->fp_slot || range__has(&walker->range, step->fp_slot)))
		step->frame.flags &= ~STEP_ONCE;
	if (!pc) {
		/* The walk ends because of the word's value, but a remembered word is compared
		 * only if a step follows it. */
		step->frame.flags |= STEP_ONCE;
		return ap_walk__stop(state, AP_END_COMPLETE, true);
	}
	state->sp = found.cfa;
	state->pc = pc;
	state->call = !found.is_signal;
	return 0;
}

static inline struct known_code *walker__slot(struct walker *walker, __u64 address)
{
	return &walker->known[(address ^ address >> 9) & (KNOWN_CODES - 1)];
}

/* Unwinds one frame by any kind of rule. Returns 1 if the walk ends. */
static __attribute__((noinline)) int step_any(struct walker *walker, struct state *state,
					      struct step *step)
{
	__u64 address = state->pc - state->call;
	struct known_code *known = walker__slot(walker, address), found;

	*step = (struct step){
		.pc = state->pc,
		.sp = state->sp,
		.fp = state->fp,
		.frame.flags = STEP_ONCE | STEP_USES_FP | (state->call ? 0 : AP_FRAME_INTERRUPTED),
	};
	if (known->address != address || !state->call) {
		walker->lookups += 2;
		walker->work.may_be_unmapped = state->over_fp;
		if (!known_code__find(walker, state->pc, state->call, &found)) {
			step->frame.offset = state->pc;
			return ap_walk__stop(state, AP_END_NO_MAPPING, true);
		}
		if (found.address != NO_ADDRESS && state->call)
			*known = found;
		known = &found;
	}
	step->frame.module = known->module;
	step->frame.offset = known->offset;
	step->frame.flags |= known->within & AP_FRAME_WITHIN;
	step->frame.flags |= known->within & CODE_ASYNC ? STEP_ASYNC : 0;
	if (known->state == UNWIND_TABLE_AWAITED)
		return ap_walk__stop(state, AP_END_NO_TABLE, true);
	if (known->state == UNWIND_TABLE_NONE)
		return step_fp(walker, state, step);
	if (known->rule.cfa == UNWIND_CFA_NONE) {
		if (state->call && known->made_up)
			return ap_walk__stop(state, AP_END_COMPLETE, true);
		return step_fp(walker, state, step);
	}
	if (known->rule.cfa == UNWIND_CFA_SP && known->rule.fp_where <= UNWIND_AT_CFA &&
	    known->rule.ra_where == UNWIND_AT_CFA)
		step->frame.flags &= ~STEP_USES_FP;
	return step_rule(walker, state, step, &known->rule);
}

/* Unwinds one frame by the rule that most frames have. Returns false if the frame has another
 * rule. */
static inline __attribute__((always_inline)) bool
step_simple(struct walker *walker, struct state *state, struct step *step)
{
	const struct known_code *known = walker__slot(walker, state->pc - 1);
	__u64 end = unlikely(state->over_fp) ? walker->range.own_end : walker->range.end;
	__u64 cfa, slot;
	bool by_fp;

	if (unlikely(known->address != state->pc - 1 || !known->simple || !state->call ||
		     (AP_HAS_LINK && state->over_fp)))
		return false;
	by_fp = known->rule.cfa == UNWIND_CFA_FP;
	cfa = (by_fp ? state->fp : state->sp) + known->rule.cfa_offset;
	slot = cfa + PLAIN_RA_OFFSET(&known->rule);
	if (unlikely(cfa <= state->sp || slot < walker->range.start || cfa > end || cfa & 7))
		return false;
	step->pc = state->pc;
	step->sp = state->sp;
	step->fp = state->fp;
	step->ra_slot = slot;
	step->fp_slot = 0;
	step->frame.module = known->module;
	step->frame.offset = known->offset;
	step->frame.flags = (by_fp ? STEP_USES_FP : 0) | known->within;
	if (known->rule.fp_where == UNWIND_AT_CFA) {
		__u64 fp_slot = cfa + known->rule.fp_offset;

		if (unlikely(!range__has(&walker->range, fp_slot) || fp_slot >= end))
			return false;
		step->fp_slot = fp_slot;
		state->fp = stack__word(fp_slot);
	}
	state->pc = processor__code_address(stack__word(slot));
	state->link = 0;
	state->sp = cfa;
	return true;
}

static inline bool fp_matters(const struct step *step)
{
	return step->frame.flags & STEP_FP_MATTERS;
}

static inline bool is_reusable(const struct step *step)
{
	return !(step->frame.flags & (STEP_ONCE | AP_FRAME_INTERRUPTED));
}

/* Returns whether the remembered step starts from the walk's state. */
static inline bool step__repeats(const struct step *step, const struct state *state)
{
	return step->sp == state->sp && step->pc == state->pc && state->call && is_reusable(step) &&
	       (step->fp == state->fp || !fp_matters(step));
}

/* Returns whether all remembered steps from @cursor outwards repeat. May return false though they
 * do. */
static inline bool follow_plain(const struct walker *walker, __u32 cursor)
{
	const struct word *words = walker->words;

	if (cursor >= walker->n_plain)
		return false;
	for (__u32 i = walker->n_words[cursor]; i-- > 0;)
		if (stack__word(words[i].address) != words[i].value)
			return false;
	return true;
}

/* Returns the outermost remembered step, from @cursor outwards, up to which all steps start from
 * the same states, judged by the words that they read. Its frame pointer is stored in *@fp, unless
 * nothing has changed. */
static inline __attribute__((always_inline)) __u32 follow(const struct walker *walker, __u32 cursor,
							  __u64 *fp)
{
	const struct step *step = &walker->steps[cursor];
	__u64 run_fp = *fp;

	if (likely(follow_plain(walker, cursor)))
		return 0;
	while (step > walker->steps) {
		const struct step *outer = step - 1;
		__u64 next_fp = step->fp_slot ? stack__word(step->fp_slot) : run_fp;

		if (processor__code_address(stack__word(step->ra_slot)) != outer->pc ||
		    !is_reusable(outer) || (fp_matters(outer) && next_fp != outer->fp))
			break;
		step = outer;
		run_fp = next_fp;
	}
	*fp = run_fp;
	return step - walker->steps;
}

static inline bool is_in_own(const struct walker *walker, __u64 address)
{
	return address >= walker->own.start && address < walker->own.own_end;
}

/* Notes which words step @i reads, if all steps further out are plain. */
static inline void note_words(struct walker *walker, __u32 i)
{
	const struct step *step = &walker->steps[i], *outer = step - 1;
	__u64 value;
	__u32 n = 0;

	if (walker->n_plain != i)
		return;
	if (i) {
		n = walker->n_words[i - 1];
		if (!is_reusable(outer) || !is_in_own(walker, step->ra_slot))
			return;
		value = stack__word(step->ra_slot);
		if (processor__code_address(value) != outer->pc)
			return;
		walker->words[n++] = (struct word){ step->ra_slot, value };
		if (fp_matters(outer) && step->fp_slot) {
			if (!is_in_own(walker, step->fp_slot))
				return;
			walker->words[n++] = (struct word){ step->fp_slot, outer->fp };
		} else if (fp_matters(outer) && step->fp != outer->fp) {
			return;
		}
	}
	walker->n_words[i] = n;
	walker->n_plain = i + 1;
}

/* Puts the @n_fresh steps of this walk in front of the @kept outermost remembered ones. Returns
 * the hash of the stack. */
static __u64 remember(struct walker *walker, const struct state *state, __u32 kept, __u32 n_fresh)
{
	__u64 hash = kept ? walker->steps[kept - 1].hash : ap_stack__mix(state->end + 1);
	struct step *to = walker->steps + kept;
	bool matters = kept && fp_matters(&walker->steps[kept - 1]);
	bool within = kept && walker->steps[kept - 1].frame.flags & STEP_WITHIN;
	__u32 has_async = kept ? walker->steps[kept - 1].frame.flags & STEP_HAS_ASYNC : 0;

	if (walker->n_plain > kept)
		walker->n_plain = kept;
	while (n_fresh) {
		*to = walker->fresh[--n_fresh];
		hash = ap_stack__mix(hash ^ to->frame.offset ^ (__u64)to->frame.module << 48 ^
				     (__u64)(to->frame.flags & ~STEP_FLAGS) << 40);
		to->hash = hash;
		matters = to->frame.flags & STEP_USES_FP || (!to->fp_slot && matters);
		within |= to->frame.flags & AP_FRAME_WITHIN;
		has_async |= to->frame.flags & STEP_ASYNC ? STEP_HAS_ASYNC : 0;
		to->frame.flags &= ~(STEP_FP_MATTERS | STEP_WITHIN | STEP_HAS_ASYNC);
		to->frame.flags |=
			(matters ? STEP_FP_MATTERS : 0) | (within ? STEP_WITHIN : 0) | has_async;
		note_words(walker, to - walker->steps);
		to++;
	}
	/* If the end depends on more than the words, it must be worked out in each walk. */
	if (state->end_once)
		walker->n_plain = 0;
	walker->n = to - walker->steps;
	walker->end = state->end;
	walker->end_once = state->end_once;
	return hash;
}

__u64 walker__walk(struct walker *walker, __u64 pc, __u64 sp, __u64 fp)
{
	struct state state = {
		.pc = pc,
		.sp = sp,
		.fp = fp,
		.call = 1,
		.end = AP_END_MAX_DEPTH,
		.end_once = 1,
	};
	__u32 n_fresh = 0, kept = 0, cursor, generation;

	if (!walker->max_depth)
		return ap_stack__mix(AP_END_COMPLETE + 1);
	generation = code__generation();
	walker->lookups = 0;
	if (unlikely(walker->generation != generation)) {
		walker->generation = generation;
		walker__forget(walker);
	}
	if (unlikely(walker->stacks != stack__generation())) {
		walker->stacks = stack__generation();
		if (!range__is_of_first(&walker->range))
			walker__leave_stack(walker);
	}
	if (unlikely(++walker->walks == MAX_WALKS)) {
		walker->walks = 0;
		code__forget_bytes();
		no_code__forget(&walker->no_code);
	}
	if (unlikely(sp < walker->range.start || sp >= walker->range.end)) {
		walker->n = 0;
		change_stack(walker, sp, 0);
	}
	walker->left_sp = 0;
	walker->copy.size = 0;
	cursor = walker->n;
	if (unlikely(!pc)) {
		state.end = AP_END_UNREADABLE;
		return remember(walker, &state, 0, 0);
	}
	while (n_fresh < walker->max_depth) {
		struct step *step;

		while (cursor && walker->steps[cursor - 1].sp < state.sp)
			cursor--;
		if (cursor && likely(!state.over_fp) &&
		    step__repeats(&walker->steps[cursor - 1], &state)) {
			__u32 last = follow(walker, cursor - 1, &state.fp);

			if (!last && !walker->end_once) {
				kept = cursor;
				state.end = walker->end;
				state.end_once = 0;
				break;
			}
			/* The steps further in than the last one that starts from the same state
			 * repeat; that one has read a changed word. */
			for (; cursor - 1 > last && n_fresh < walker->max_depth; cursor--)
				walker->fresh[n_fresh++] = walker->steps[cursor - 1];
			if (n_fresh == walker->max_depth)
				break;
			state.pc = walker->steps[last].pc;
			state.sp = walker->steps[last].sp;
		}
		step = &walker->fresh[n_fresh++];
		if (likely(step_simple(walker, &state, step))) {
			if (likely(state.pc))
				continue;
			step->frame.flags |= STEP_ONCE;
			ap_walk__stop(&state, AP_END_COMPLETE, true);
			break;
		}
		if (step_any(walker, &state, step))
			break;
		if (unlikely(state.sp < walker->range.start || state.sp >= walker->range.end) &&
		    n_fresh < AP_MAX_DEPTH)
			change_stack(walker, state.sp, n_fresh);
	}
	/* The remembered hashes include the former end of the walk, and there may be too many
	 * frames now. */
	if (unlikely(kept + n_fresh > walker->max_depth))
		ap_walk__stop(&state, AP_END_MAX_DEPTH, true);
	if (unlikely(state.over_fp && state.end == AP_END_COMPLETE))
		ap_walk__stop(&state, AP_END_FRAME_POINTERS, true);
	if (unlikely(kept && state.end_once)) {
		while (kept && n_fresh < walker->max_depth)
			walker->fresh[n_fresh++] = walker->steps[--kept];
		kept = 0;
	}
	if (likely(kept == walker->n && !n_fresh))
		return walker->n ? walker->steps[walker->n - 1].hash : ap_stack__mix(state.end + 1);
	return remember(walker, &state, kept, n_fresh);
}

__u32 walker__frames(const struct walker *walker, struct ap_frame *out)
{
	__u32 n = 0;

	for (__u32 i = walker->n; i-- > 0;) {
		const struct ap_frame *frame = &walker->steps[i].frame;

		if (walker->own_module && frame->module == walker->own_module)
			continue;
		out[n] = *frame;
		out[n++].flags &= ~STEP_FLAGS;
	}
	return n;
}
