// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Unwinds one frame: by unwind rules, by its next instructions, or by frame pointers; and finds
 * the rules. */
#include "arch.bpf.h"
#include "blocks.bpf.h"
#include "gate.bpf.h"
#include "process.bpf.h"
#include "scratch.bpf.h"
#include "trampoline.bpf.h"
#include "waits.bpf.h"
#include "walk.bpf.h"

struct ap_waits waits;

__noinline int window__fill(struct scratch *scratch, __u64 start, __u32 wanted)
{
	__u32 bytes = wanted;

	if (!scratch)
		return -1;
	start &= ~7ULL;
	scratch->window_start = start;
	if (start < scratch->unreadable && scratch->unreadable - start < bytes)
		bytes = scratch->unreadable - start;
	for (int i = 0; i < 3; i++) {
		if (bytes > sizeof(scratch->window))
			bytes = sizeof(scratch->window);
		if (!bpf_probe_read_user(scratch->window, bytes, (void *)start)) {
			scratch->window_bytes = bytes;
			if (i)
				scratch->unreadable = start + bytes;
			return 0;
		}
		bytes = 4096 - (start & 4095);
		if (i == 0)
			bytes += 4096;
	}
	scratch->window_bytes = 0;
	scratch->absent = start;
	return -1;
}

static __always_inline bool table__is_awaited(const struct unwind_table *table)
{
	return LOAD(table->state) == UNWIND_TABLE_AWAITED;
}

struct table_wait {
	const struct unwind_table *table;
	__u64 until_ns;
};

static long table__look(__u32 index, struct table_wait *wait)
{
	return !table__is_awaited(wait->table) || bpf_ktime_get_ns() >= wait->until_ns;
}

/* Returns whether few more stack dumps can be sent, so that a stack without its table may stay
 * incomplete. */
static __always_inline bool dumps__are_few(void)
{
	if (!config.stack_dump ||
	    bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= config.dump_below_bytes / 2)
		return true;
	return config.live && (config.within || LOAD(live.n_dumps) >= config.max_dumped);
}

/* Returns the longest time that the process may wait for a table now; 0: it may not wait. */
static __always_inline __u64 table__most_ns(const struct process *process)
{
	__u64 shift = LOAD(process->vain_ns) / AP_VAIN_WAITS_NS;

	if (LOAD(process->waited_ns) >= AP_WAITS_BUDGET_NS)
		return 0;
	if (dumps__are_few())
		return AP_WAIT_NS;
	return AP_WAIT_NS >> (shift < AP_MAX_WAIT_SHIFT ? shift : AP_MAX_WAIT_SHIFT);
}

/* To be called where little of the BPF stack is in use, since Linux 6.1 counts the frames of
 * called functions, too. */
__noinline int table__await(__u32 module)
{
	struct unwind_table *table = bpf_map_lookup_elem(&unwind_tables, &module);
	struct table_wait wait = { .table = table };
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process *process = bpf_map_lookup_elem(&processes, &tgid);
	__u64 most_ns, waited_ns, vain_ns;

	if (!module || !table || !process)
		return 0;
	most_ns = table__most_ns(process);
	if (!most_ns)
		return 0;
	waits.module = module;
	waited_ns = wait__for(table__look, &wait, &wait.until_ns, most_ns);
	__sync_fetch_and_add(&process->waited_ns, waited_ns);
	if (!waited_ns)
		return 0;
	if (table__is_awaited(table)) {
		__sync_fetch_and_add(&process->vain_ns, waited_ns);
		return 0;
	}
	/* If two threads do so at once, one of the two changes is lost, which is tolerated. */
	vain_ns = LOAD(process->vain_ns);
	process->vain_ns = vain_ns > waited_ns ? vain_ns - waited_ns : 0;
	return 1;
}

/* Returns the rule at @offset inside @slice; NULL only if the tables are corrupt. */
static __always_inline struct unwind_rule *slice__rule(const struct unwind_slice *slice,
						       __u32 offset)
{
	struct unwind_chunk *chunk;
	__u32 zero = 0, chunk_index = slice->chunk, rule;
	void *inner;

	inner = bpf_map_lookup_elem(&unwind_chunks, &chunk_index);
	if (!inner)
		return NULL;
	chunk = bpf_map_lookup_elem(inner, &zero);
	if (!chunk)
		return NULL;
	rule = unwind_slice__rule_index(slice, chunk, offset);
	return bpf_map_lookup_elem(&unwind_rules, &rule);
}

static __always_inline bool range__holds(const struct code_range *range, __u64 address)
{
	return address >= range->start && address < range->end;
}

/* Returns the index of the range that holds @address, from the scratch or just loaded; or minus
 * enum vma_result. */
static __always_inline int range__find(struct scratch *scratch, struct walk *walk, __u64 address)
{
	if (range__holds(&scratch->ranges[walk->range & (SCRATCH_MAPPINGS - 1)], address))
		return walk->range;
	for (int i = 0; i < SCRATCH_MAPPINGS; i++)
		if (range__holds(&scratch->ranges[i], address))
			return i;
	return range__load(scratch, address, walk->pid);
}

/* Returns whether the frame is code at a file's entry point without call frame information, such
 * as the dynamic linker's: then it is the outermost. */
static __always_inline bool is_entry(const struct ap_frame *frame)
{
	__u32 module = frame->module;
	struct unwind_table *table = bpf_map_lookup_elem(&unwind_tables, &module);

	return table && frame->offset - table->entry_offset < table->entry_size;
}

static __always_inline int load_other_word(struct scratch *scratch, __u64 address, __u64 *value)
{
	if (!bpf_probe_read_user(value, sizeof(*value), (void *)address))
		return 0;
	scratch->absent = address;
	return -1;
}

/* The rules of a step are shared with src/inside. */
#define AP_WALKER				struct scratch
#define AP_WALK					struct walk
#define AP_LOAD(scratch, walk, address, out)	window__read(scratch, (walk)->sp, address, out)
#define AP_LOAD_PC(scratch, walk, address, out) window__read_pc(scratch, (walk)->sp, address, out)
#define AP_LOAD_OTHER(scratch, address, out)	load_other_word(scratch, address, out)
#define AP_THREAD_DATA()			arch__thread_data(bpf_get_current_task_btf())
#define AP_FIND_GOROUTINE(scratch, rule, sp)	goroutine__find(scratch, rule, sp)

static int goroutine__find(struct scratch *scratch, const struct unwind_rule *rule, __u64 sp);

#include "walk_rules_abi.h"

/* Not inlined, so that the verifier checks it once. */
static __noinline int goroutine__find(struct scratch *scratch, const struct unwind_rule *rule,
				      __u64 sp)
{
	return scratch && rule ? ap_goroutine__find(scratch, rule, sp) : -1;
}

/* Unwinds one frame without call frame information, by its next instructions or by the frame pointer. */
static __always_inline long walk__step_fp(struct scratch *scratch, struct walk *walk,
					  struct step *step)
{
	int popped;

	step->fp_slot = STEP_ONCE;
	if (is_entry(&step->frame))
		return ap_walk__stop(walk, AP_END_COMPLETE, true);
	if (!bpf_probe_read_user(&scratch->code, sizeof(scratch->code), (void *)walk->pc)) {
		if (AP_IS_SIGNAL_RETURN(scratch->code))
			return ap_walk__step_signal(scratch, walk);
		popped = ap_code__epilogue(scratch->code);
		if (popped >= 0)
			return ap_walk__step_epilogue(scratch, walk, popped);
	}
	if (!bpf_probe_read_user(&scratch->code, sizeof(scratch->code),
				 (void *)(walk->pc - AP_CONTEXT_END_BYTES)) &&
	    ap_code__is_context_end(scratch->code))
		return ap_walk__stop(walk, AP_END_COMPLETE, true);
	return ap_walk__step_frame_pointer(scratch, walk);
}

static __always_inline long walk__step_rule(struct scratch *scratch, struct walk *walk,
					    struct step *step, const struct unwind_rule *rule)
{
	struct ap_rule_step found;
	__u64 pc;

	if (rule->ra_where == UNWIND_UNDEFINED) {
		step->fp_slot = 0;
		return ap_walk__stop(walk, AP_END_COMPLETE, false);
	}
	if (ap_walk__find_cfa(scratch, walk, rule, &found) ||
	    ap_walk__load_caller(scratch, walk, rule, found.cfa, &step->fp_slot, &step->ra_slot,
				 &pc))
		return 1;
	if (found.once)
		step->fp_slot = STEP_ONCE;
	/* The ABIs mark the outermost frame by a return address of 0. */
	if (!pc)
		return ap_walk__stop(walk, AP_END_COMPLETE, true);
	walk->sp = found.cfa;
	walk->pc = pc;
	walk->call = !found.is_signal;
	return 0;
}

/* Returns whether the return address is a function's first instruction, with no code before it
 * that could have called: it was stored there as the return address of the outermost function, as
 * makecontext(3) does. */
static __always_inline bool is_made_up(const struct code_range *range, __u64 pc)
{
	__u64 offset = pc + range->bias - range->slice.file_offset;
	struct unwind_rule *rule;

	if (offset >= range->slice.size)
		return false;
	rule = slice__rule(&range->slice, offset);
	return rule && rule->cfa != UNWIND_CFA_NONE;
}

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
			return ap_walk__stop(walk, AP_END_NO_TABLE, true);
		}
		return ap_walk__stop(walk, AP_END_NO_MAPPING, true);
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
		return ap_walk__stop(walk, AP_END_NO_TABLE, true);
	if (range->state == UNWIND_TABLE_NONE)
		return walk__step_fp(scratch, walk, step);
	rule = slice__rule(&range->slice, address + range->bias - range->slice.file_offset);
	if (!rule)
		return ap_walk__stop(walk, AP_END_NO_TABLE, true);
	if (rule->cfa == UNWIND_CFA_NONE) {
		if (walk->call && is_made_up(range, walk->pc))
			return ap_walk__stop(walk, AP_END_COMPLETE, true);
		return walk__step_fp(scratch, walk, step);
	}
	return walk__step_rule(scratch, walk, step, rule);
}

/* Returns the cached step that starts from the walk's state, or NULL. */
static __always_inline struct step *walk__cached(struct scratch *scratch, struct walk *walk)
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
	/* In an interrupted frame the same state means another pc. */
	if (step->sp != walk->sp || step->pc != walk->pc || step->fp != walk->fp || !walk->call ||
	    (step->frame.flags & AP_FRAME_INTERRUPTED) || step->fp_slot == STEP_ONCE)
		return NULL;
	return step;
}

/* Returns whether a walk that is at @step comes to @next again, since the words that @step has
 * read are unchanged. */
static __always_inline bool step__leads_to(const struct scratch *scratch, const struct step *step,
					   const struct step *next)
{
	__u64 ra = step->ra_slot - scratch->window_start;
	__u64 fp = step->fp_slot - scratch->window_start;
	__u64 most = scratch->window_bytes - 8;

	if (ra > most || scratch->window[(ra >> 3) & (WINDOW_WORDS - 1)] != next->pc)
		return false;
	if (!step->fp_slot)
		return true;
	return fp <= most && scratch->window[(fp >> 3) & (WINDOW_WORDS - 1)] == next->fp;
}

/* How many steps one call of repeat_steps() handles. The verifier checks each of them, and each
 * call costs a hit some 10 ns. */
#define REPEATED_AT_ONCE 16

struct repetition {
	struct scratch *scratch;
	__u32 cursor;
	int is_whole; /* 1: all steps up to the outermost frame are repeated */
};

static long repeat_steps(__u32 index, struct repetition *repetition)
{
	struct scratch *scratch = repetition->scratch;
	__u32 cursor = repetition->cursor;

	for (int i = 0; i < REPEATED_AT_ONCE; i++, cursor++) {
		const struct step *step, *next;

		if (cursor >= AP_MAX_DEPTH - 1) {
			repetition->is_whole = 1;
			return 1;
		}
		step = &scratch->steps[depth_index(cursor)];
		next = &scratch->steps[depth_index(cursor + 1)];
		if (next->fp_slot == STEP_ONCE || (next->frame.flags & AP_FRAME_INTERRUPTED) ||
		    !step__leads_to(scratch, step, next))
			return 1;
	}
	repetition->cursor = cursor;
	return 0;
}

/*
 * Returns 1 if a walk that is at the cached step @cursor would repeat all steps from there on, which a loop over the words
 * that they read finds in less than half the time. Returns 0 also if the window does not have all of these words.
 */
__noinline int walk__repeats(struct scratch *scratch, __u32 cursor)
{
	struct repetition repetition = { .scratch = scratch, .cursor = cursor };

	if (!scratch || scratch->end_once || scratch->end != AP_END_COMPLETE ||
	    scratch->window_bytes < 8)
		return 0;
	bpf_loop(AP_MAX_DEPTH / REPEATED_AT_ONCE, repeat_steps, &repetition, 0);
	return repetition.is_whole;
}

/* Waits for the table or the mapping that the step lacked. Returns false if it did not come in
 * time. */
static __always_inline bool walk__await(struct scratch *scratch, const struct walk *walk,
					const struct step *step)
{
	if (walk->locked)
		return false;
	if (step->frame.module)
		return table__await(step->frame.module);
	return vma__await(walk->pc - walk->call, scratch->process, walk->pid, scratch->generation,
			  scratch->seq);
}

static long walk_frame(__u32 index, struct scratch **scratch_at)
{
	struct scratch *scratch = *scratch_at;
	struct walk *walk = &scratch->walk;
	struct step *fresh, *known;
	int stop;

	/* Never true, since bpf_loop() stops before, but the verifier needs the check. */
	if (index >= AP_MAX_DEPTH)
		return 1;
	known = walk__cached(scratch, walk);
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
		/* The step may have to wait for the mapping first, and then for its table. */
		for (int i = 0; i < 2 && stop && walk->end == AP_END_NO_TABLE; i++) {
			if (!walk__await(scratch, walk, fresh))
				break;
			walk->end = AP_END_MAX_DEPTH;
			stop = walk__step(scratch, walk, index);
		}
		/* clang 19 knows that @stop is 0 or 1 and drops the comparison; the verifier does
		 * not know it. */
		barrier_var(stop);
		return stop != 0;
	}
	if (walk->matched == ~0U) {
		__u32 rest = AP_MAX_DEPTH - walk->cursor;

		walk->matched = index;
		walk->matched_cursor = walk->cursor;
		/* After a step by frame pointer the walk has another end, and all steps are cached
		 * anew. */
		if (!config.within && !walk->over_fp && index + rest <= config.max_depth &&
		    walk__repeats(scratch, walk->cursor)) {
			walk->n_frames = index + rest;
			walk->sp = scratch->steps[AP_MAX_DEPTH - 1].sp;
			return ap_walk__stop(walk, AP_END_COMPLETE, false);
		}
	}
	walk->n_frames = index + 1;
	walk->within |= known->frame.flags & AP_FRAME_WITHIN;
	if (!walk->sparing || walk->matched != 0) {
		fresh = &scratch->fresh[depth_index(index)];
		*fresh = *known;
	}
	/* The rule alone decided that this frame is the outermost. */
	if (walk->cursor == AP_MAX_DEPTH - 1)
		return ap_walk__stop(walk, AP_END_COMPLETE, false);
	walk->cursor++;
	if (known->fp_slot && window__read(scratch, walk->sp, known->fp_slot, &walk->fp))
		return ap_walk__stop(walk, AP_END_UNREADABLE, true);
	if (window__read_pc(scratch, walk->sp, known->ra_slot, &walk->pc))
		return ap_walk__stop(walk, AP_END_UNREADABLE, true);
	/* SP becomes the CFA, which the cached step's rule has given. */
	walk->sp = scratch->steps[depth_index(walk->cursor)].sp;
	if (!walk->pc)
		return ap_walk__stop(walk, AP_END_COMPLETE, true);
	return 0;
}

__noinline int walk__frames(struct scratch *scratch)
{
	if (scratch)
		bpf_loop(config.max_depth, walk_frame, &scratch, 0);
	return 0;
}
