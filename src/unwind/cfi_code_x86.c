// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The x86-64 part of unwind tables: rules read from machine code that has no call frame information.
 */
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "cfi_internal.h"
#include "cleanup.h"
#include "disasm.h"

/* Finds the place of a function's return address from its instructions, where there is no call
 * frame information. */

#define UNKNOWN	  (-1)
#define MAX_DEPTH (1 << 30)

/* The state before an instruction, as far as it is known. */
struct code_state {
	__s32 depth;	/* bytes from the return address down to sp; UNKNOWN */
	__s32 fp_base;	/* @depth when sp was copied to the frame pointer; UNKNOWN: it was not */
	__s32 fp_saved; /* @depth after the caller's frame pointer was pushed; UNKNOWN: still in
			 * its register */
	bool is_met;
	bool is_pending;
	__u8 length; /* length of the instruction */
};

struct code_scan {
	__u64 lo;
	const __u8 *bytes;
	size_t size;
	struct code_state *states; /* states by offset */
	/* Offsets of instructions that are still to be looked at, each at most once. */
	__u32 *pending;
	size_t n_pending;
};

static bool is_same(const struct code_state *a, const struct code_state *b)
{
	return a->depth == b->depth && a->fp_base == b->fp_base && a->fp_saved == b->fp_saved;
}

/* Notes the state with which the instruction at @vaddr is reached. If two paths disagree, a value
 * is UNKNOWN from there on; so a state changes at most twice. */
static void reach(struct code_scan *code, __u64 vaddr, const struct code_state *from)
{
	static const struct code_state none = { UNKNOWN, UNKNOWN, UNKNOWN, false, false, 0 };
	__u64 at = vaddr - code->lo;
	struct code_state *state;

	if (at >= code->size)
		return;
	state = &code->states[at];
	if (state->is_met && (is_same(state, from) || is_same(state, &none)))
		return;
	if (state->is_met)
		from = &none;
	state->depth = from->depth;
	state->fp_base = from->fp_base;
	state->fp_saved = from->fp_saved;
	state->is_met = true;
	if (!state->is_pending)
		code->pending[code->n_pending++] = (__u32)at;
	state->is_pending = true;
}

/* Applies the instruction's effect on sp and the frame pointer. */
static void step(const struct disasm_insn *insn, struct code_state *state)
{
	__s64 depth = insn->sp == DISASM_SP_FROM_FP ? state->fp_base : state->depth;

	if (insn->fp == DISASM_FP_POPPED && depth == state->fp_saved)
		state->fp_saved = UNKNOWN;
	if (depth != UNKNOWN)
		depth -= insn->sp_offset;
	if (insn->sp == DISASM_SP_UNKNOWN || depth < 0 || depth > MAX_DEPTH)
		depth = UNKNOWN;
	state->depth = (__s32)depth;
	if (insn->fp == DISASM_FP_PUSHED && state->fp_saved == UNKNOWN)
		state->fp_saved = state->depth;
	else if (insn->fp == DISASM_FP_FROM_SP)
		state->fp_base = state->depth;
	else if (insn->fp == DISASM_FP_POPPED || insn->fp == DISASM_FP_UNKNOWN)
		state->fp_base = UNKNOWN;
}

static void follow(struct code_scan *code)
{
	while (code->n_pending) {
		__u32 at = code->pending[--code->n_pending];
		struct code_state state = code->states[at];
		struct disasm_insn insn;

		code->states[at].is_pending = false;
		if (disasm__decode(code->bytes + at, code->size - at, code->lo + at, &insn))
			continue;
		code->states[at].length = (__u8)insn.length;
		step(&insn, &state);
		if (insn.has_target &&
		    (insn.class == DISASM_JUMP || insn.class == DISASM_JUMP_CONDITIONAL))
			reach(code, insn.target, &state);
		if (disasm_insn__continues(&insn))
			reach(code, insn.vaddr + insn.length, &state);
	}
}

static struct unwind_rule rule_of(const struct code_state *state)
{
	struct unwind_rule rule = { .flags = UNWIND_OF_CODE,
				    .ra_where = UNWIND_AT_CFA,
				    .ra_offset = -8 };

	if (state->depth == UNKNOWN && state->fp_base == UNKNOWN)
		return (struct unwind_rule){ 0 };
	rule.cfa = state->depth == UNKNOWN ? UNWIND_CFA_FP : UNWIND_CFA_SP;
	rule.cfa_offset = (state->depth == UNKNOWN ? state->fp_base : state->depth) + 8;
	if (state->fp_saved != UNKNOWN) {
		rule.fp_where = UNWIND_AT_CFA;
		rule.fp_offset = -8 - state->fp_saved;
	}
	return rule;
}

int cfi_code__run(__u64 lo, const __u8 *bytes, size_t size, cfi_rule_fn take, void *ctx)
{
	static const struct code_state entry = { 0, UNKNOWN, UNKNOWN, false, false, 0 };
	static const struct unwind_rule none = { 0 };
	_cleanup_(free_ptr) struct code_state *states = calloc(size, sizeof(*states));
	_cleanup_(free_ptr) __u32 *pending = calloc(size, sizeof(*pending));
	struct code_scan code = {
		.lo = lo, .bytes = bytes, .size = size, .states = states, .pending = pending
	};
	int err;

	if (!states || !pending)
		return -ENOMEM;
	reach(&code, lo, &entry);
	follow(&code);
	err = states[0].is_met ? 0 : take(ctx, lo, &none);
	for (size_t at = 0, end = 0; at < size && !err; at++) {
		struct unwind_rule rule = rule_of(&states[at]);

		if (states[at].is_met) {
			err = take(ctx, lo + at, &rule);
			end = at + states[at].length;
		} else if (at == end) {
			err = take(ctx, lo + at, &none); /* unreachable code */
		}
	}
	return err;
}

/* Matches the instructions by which a C library ends a thread or the process with the result of a
 * called function. */

#define HAS(at, bytes) (!memcmp(at, bytes, sizeof(bytes) - 1))

/* Matches call *%reg, call *(%reg), and call *disp8(%reg). */
static bool is_indirect_call(const __u8 *code, size_t at)
{
	if (at >= 2 && code[at - 2] == 0xff &&
	    ((code[at - 1] & 0xf8) == 0xd0 || (code[at - 1] & 0xf8) == 0x10))
		return true;
	return at >= 3 && code[at - 3] == 0xff && (code[at - 2] & 0xf8) == 0x50;
}

/* Skips the instruction by which the result becomes the first argument. Returns NULL if it is
 * another instruction. */
static const __u8 *skip_move(const __u8 *code)
{
	static const struct {
		const char *bytes;
		size_t size;
	} moves[] = {
		{ "\x89\xc7", 2 },	       /* mov %eax, %edi */
		{ "\x48\x89\xc7", 3 },	       /* mov %rax, %rdi */
		{ "\x48\x63\xf8", 3 },	       /* movslq %eax, %rdi */
		{ "\x48\x98\x48\x89\xc7", 5 }, /* cltq; mov %rax, %rdi */
	};

	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (!memcmp(code, moves[i].bytes, moves[i].size))
			return code + moves[i].size;
	return NULL;
}

/* Matches exit(2): mov of its number to eax, and syscall. */
static bool is_exit(const __u8 *code)
{
	_Static_assert(SYS_exit == 0x3c, "the number is in the bytes below");

	return HAS(code, "\x31\xc0\xb0\x3c\x0f\x05") || HAS(code, "\xb8\x3c\x00\x00\x00\x0f\x05");
}

static bool ends_thread(const __u8 *code, size_t size, size_t at, __u64 vaddr,
			const struct cfi_bare *bare)
{
	const __u8 *next;
	__s32 distance;
	__u64 target;

	/* The longest move, and the longest sequence that follows. */
	if (size - at < 5 + 7 || !is_indirect_call(code, at))
		return false;
	next = skip_move(code + at);
	if (!next)
		return false;
	if (is_exit(next))
		return true;
	if (*next != 0xe8 && *next != 0xe9)
		return false;
	memcpy(&distance, next + 1, sizeof(distance));
	target = vaddr + (__u64)(next - code) + 5 + (__u64)(__s64)distance;
	for (__u32 i = 0; i < bare->n_ends; i++)
		if (bare->ends[i] == target)
			return true;
	return false;
}

struct unwind_rule cfi_go__depth_rule(const struct go_function *function, __s64 depth_bytes)
{
	struct unwind_rule rule = { .flags = UNWIND_OF_CODE };

	if (depth_bytes < 0 || depth_bytes > INT32_MAX - 8) {
		rule.cfa = UNWIND_CFA_UNSUPPORTED;
		rule.cfa_offset = UNWIND_UNSUPPORTED_OFFSET;
		return rule;
	}
	rule.cfa = UNWIND_CFA_SP;
	rule.cfa_offset = (__s32)depth_bytes + 8;
	rule.ra_where = UNWIND_AT_CFA;
	rule.ra_offset = -8;
	if (function->outermost) {
		rule.ra_where = UNWIND_UNDEFINED;
		rule.ra_offset = 0;
	}
	return rule;
}

/* Finds where Go's runtime switches stacks on x86-64, by machine code: runtime/asm_amd64.s of Go
 * 1.18 to 1.24, and runtime/cgo/asm_amd64.s. Code that does not match gets no rule of its own. */

#define NOWHERE ((size_t)-1)

/* Numbers of registers in the encoding of instructions. */
enum {
	INSN_RDX = 2,
	INSN_RBP = 5,
	INSN_RDI = 7
};

struct go_code {
	const struct go_function *function;
	const __u8 *bytes;
	size_t size;
};

static bool is_at(const struct go_code *code, size_t at, const __u8 *bytes, size_t n)
{
	return at < code->size && code->size - at >= n && !memcmp(code->bytes + at, bytes, n);
}

/* Returns the offset behind the first match of @bytes at or after @from. */
static size_t behind(const struct go_code *code, size_t from, const __u8 *bytes, size_t n)
{
	for (; from < code->size; from++)
		if (is_at(code, from, bytes, n))
			return from + n;
	return NOWHERE;
}

/* Matches mov @reg, n(%rsp). Sets n and returns the offset behind it. */
static size_t behind_store(const struct go_code *code, size_t at, __u8 reg, __s64 *offset)
{
	const __u8 without[] = { 0x48, 0x89, (__u8)(0x04 | reg << 3), 0x24 };
	const __u8 with[] = { 0x48, 0x89, (__u8)(0x44 | reg << 3), 0x24 };

	*offset = 0;
	if (is_at(code, at, without, sizeof(without)))
		return at + sizeof(without);
	if (!is_at(code, at, with, sizeof(with)) || code->size - at == sizeof(with))
		return NOWHERE;
	*offset = (signed char)code->bytes[at + sizeof(with)];
	return at + sizeof(with) + 1;
}

/* Matches mov 0x38(%reg), %rsp, which loads the saved sp of a goroutine (g.sched.sp). */
static size_t behind_sched_sp(const struct go_code *code, size_t from)
{
	for (; from < code->size && code->size - from >= 4; from++) {
		const __u8 *bytes = code->bytes + from;

		if ((bytes[0] & 0xfe) == 0x48 && bytes[1] == 0x8b && (bytes[2] & 0xf8) == 0x60 &&
		    bytes[3] == 0x38)
			return from + 4;
	}
	return NOWHERE;
}

static size_t either(size_t at, size_t other)
{
	return at < other ? at : other;
}

static __u64 address(const struct go_code *code, size_t at)
{
	return code->function->lo + (at < code->size ? at : code->size);
}

/* Returns the depth of the stack where sp is copied to rdx; -1: nowhere. */
static __s64 kept_depth(const struct go_code *code)
{
	static const __u8 keep[] = { 0x48, 0x89, 0xe2 }; /* mov %rsp, %rdx */
	size_t at = behind(code, 0, keep, sizeof(keep));

	return at == NOWHERE ? -1 : go_function__depth(code->function, address(code, at));
}

/* Matches sub $n, %rsp; and $-16, %rsp. Sets n and returns the offset behind the first. */
static size_t behind_align(const struct go_code *code, size_t from, __s64 *n)
{
	static const __u8 align[] = { 0x48, 0x83, 0xe4, 0xf0 };
	size_t at = behind(code, from, align, sizeof(align));

	if (at == NOWHERE || at < 8 || memcmp(code->bytes + at - 8, "\x48\x83\xec", 3) != 0)
		return NOWHERE;
	*n = code->bytes[at - 5];
	return at - 4;
}

/*
 * asmcgocall calls C from two places. On a goroutine's stack it switches to the system stack and
 * saves struct g and the distance of the goroutine's sp from the end of its stack. On the system
 * stack it saves sp.
 */
static void find_asmcgocall(struct cfi_go *go, const struct go_code *code)
{
	static const __u8 load_end[] = { 0x48, 0x8b, 0x7f, 0x08, 0x48, 0x29, 0xd7 };
	static const __u8 leave[] = { 0x48, 0x89, 0xf4 }; /* mov %rsi, %rsp */
	static const __u8 no_g[] = { 0x48, 0xc7, 0x44, 0x24 };
	struct unwind_rule broken = { .cfa = UNWIND_CFA_UNSUPPORTED,
				      .cfa_offset = UNWIND_UNSUPPORTED_SP };
	struct unwind_rule rule = { .ra_where = UNWIND_AT_CFA, .ra_offset = -8 };
	__s64 depth = kept_depth(code), g, kept, n;
	size_t switched = behind_sched_sp(code, 0), at, begin;

	if (depth < 0 || depth > INT16_MAX - 8 || switched == NOWHERE)
		return;
	rule.cfa_add = (__s16)(depth + 8);
	for (at = switched; at < code->size; at++) {
		size_t loaded = behind_store(code, at, INSN_RDI, &g);

		if (loaded == NOWHERE || !is_at(code, loaded, load_end, sizeof(load_end)))
			continue;
		begin = behind_store(code, loaded + sizeof(load_end), INSN_RDI, &kept);
		if (begin == NOWHERE || behind_align(code, switched, &go->system_bytes) == NOWHERE)
			return;
		rule.cfa = UNWIND_CFA_GOROUTINE;
		rule.cfa_offset = (__s32)g;
		rule.fp_offset = (__s32)kept;
		at = behind(code, begin, leave, sizeof(leave));
		cfi_go__add_switch(go, address(code, switched), address(code, begin), &broken);
		cfi_go__add_switch(go, address(code, begin), address(code, at), &rule);
		break;
	}
	switched = at < code->size ? behind_align(code, at, &n) : NOWHERE;
	if (switched == NOWHERE)
		return;
	at = behind(code, switched, no_g, sizeof(no_g));
	begin = at == NOWHERE ? NOWHERE : behind_store(code, at + 5, INSN_RDX, &kept);
	if (begin == NOWHERE)
		return;
	rule.cfa = UNWIND_CFA_AT_SP;
	rule.cfa_offset = (__s32)kept;
	rule.fp_offset = 0;
	at = behind(code, begin, leave, sizeof(leave));
	cfi_go__add_switch(go, address(code, switched), address(code, begin), &broken);
	cfi_go__add_switch(go, address(code, begin), address(code, at), &rule);
}

/* Finds the frame of crosscall2, by which C code calls Go, and which pushes rbp (Go 1.21 and
 * later) or saves it among the other registers. */
static void find_crosscall2(struct cfi_go *go, const struct go_code *code)
{
	static const __u8 push[] = { 0x55 };
	static const __u8 call[] = { 0xe8 };
	size_t called = behind(code, 0, call, sizeof(call)), saved = NOWHERE;
	struct unwind_rule rule = { .fp_where = UNWIND_AT_CFA, .fp_offset = -16 };
	__s64 offset = 0, depth = 0;

	if (is_at(code, 0, push, sizeof(push)))
		saved = sizeof(push);
	for (size_t at = 0; saved == NOWHERE && at < code->size; at++) {
		saved = behind_store(code, at, INSN_RBP, &offset);
		depth = go_function__depth(code->function, address(code, at));
		rule.fp_offset = (__s32)(offset - depth - 8);
	}
	if (saved == NOWHERE || depth < 0 || called == NOWHERE || called < saved)
		return;
	go->crosscall_bytes = go_function__depth(code->function, address(code, called));
	/* The range ends with the return address of the call. */
	cfi_go__add_switch(go, address(code, saved), address(code, called + 4), &rule);
}

/*
 * Handles cgocallback, which switches from the system stack, where asmcgocall began it, back to
 * the goroutine's. Its frame there is a copy; its caller's frame is where asmcgocall left the
 * system stack. asmcgocall has rounded sp down to 16 bytes, and C code calls with an aligned sp,
 * so the bytes that crosscall2 and cgocallback have pushed give sp modulo 16.
 */
static void find_cgocallback(struct cfi_go *go, const struct go_code *code)
{
	static const __u8 enter[] = { 0x48, 0x89, 0xfc }; /* mov %rdi, %rsp */
	struct unwind_rule rule = { .cfa = UNWIND_CFA_LEFT,
				    .ra_where = UNWIND_AT_CFA,
				    .ra_offset = -8 };
	size_t begin = behind(code, 0, enter, sizeof(enter)), end;
	__s64 depth;

	if (begin == NOWHERE)
		return;
	depth = go_function__depth(code->function, address(code, begin));
	end = behind_sched_sp(code, begin);
	if (depth < 0 || end == NOWHERE || !go->system_bytes || go->crosscall_bytes <= 0) {
		rule = (struct unwind_rule){ .cfa = UNWIND_CFA_OTHER_STACK };
	} else {
		rule.cfa_offset = (__s32)(go->system_bytes + depth + 8);
		rule.cfa_add = (__s16)(-(go->crosscall_bytes + depth) & 15);
	}
	cfi_go__add_switch(go, address(code, begin), address(code, end), &rule);
}

/* Matches mov 0x30(%rax), %rbx; mov n(%rbx), %rax, which has the offset of the current g in m.
 * Before that, matches mov %fs:n, %rax, or mov $n, %rcx; mov %fs:(%rcx), %rax, which have the
 * offset of the thread's g. */
static bool find_current_goroutine(const struct go_code *code, size_t from, __s32 *thread_data,
				   __s32 *in_m)
{
	static const __u8 load_m[] = { 0x48, 0x8b, 0x58, 0x30, 0x48, 0x8b, 0x83 };
	static const __u8 load_g[] = { 0x64, 0x48, 0x8b, 0x04, 0x25 };
	static const __u8 set_offset[] = { 0x48, 0xc7, 0xc1 };
	static const __u8 load_g_there[] = { 0x64, 0x48, 0x8b, 0x01 };
	const size_t n = sizeof(*thread_data);
	size_t end = behind(code, from, load_m, sizeof(load_m)), at = end - sizeof(load_m);

	if (end == NOWHERE || code->size - end < sizeof(*in_m) || at < 16)
		return false;
	memcpy(in_m, code->bytes + end, sizeof(*in_m));
	if (is_at(code, at - n - sizeof(load_g), load_g, sizeof(load_g))) {
		memcpy(thread_data, code->bytes + at - n, n);
		return true;
	}
	at -= sizeof(load_g_there);
	if (!is_at(code, at, load_g_there, sizeof(load_g_there)) ||
	    !is_at(code, at - n - sizeof(set_offset), set_offset, sizeof(set_offset)))
		return false;
	memcpy(thread_data, code->bytes + at - n, n);
	return true;
}

/* Handles systemstack, which calls a function on the system stack and returns. */
static void find_systemstack(struct cfi_go *go, const struct go_code *code)
{
	static const __u8 enter[] = { 0x48, 0x89, 0xdc }; /* mov %rbx, %rsp */
	struct unwind_rule rule = { .cfa = UNWIND_CFA_SYSTEMSTACK,
				    .ra_where = UNWIND_AT_CFA,
				    .ra_offset = -8 };
	size_t begin = either(behind(code, 0, enter, sizeof(enter)), behind_sched_sp(code, 0));
	__s64 depth;

	if (begin == NOWHERE)
		return;
	depth = go_function__depth(code->function, address(code, begin));
	rule.cfa_add = (__s16)(depth + 8);
	if (depth < 0 || depth > INT16_MAX - 8 ||
	    !find_current_goroutine(code, begin, &rule.cfa_offset, &rule.fp_offset))
		rule = (struct unwind_rule){ .cfa = UNWIND_CFA_OTHER_STACK };
	cfi_go__add_switch(go, address(code, begin), address(code, behind_sched_sp(code, begin)),
			   &rule);
}

/* Marks code that leaves a goroutine which is not the caller: it is parked, and may continue
 * elsewhere. */
static void find_leaving(struct cfi_go *go, const struct go_code *code)
{
	static const struct unwind_rule rule = { .cfa = UNWIND_CFA_SP,
						 .cfa_offset = 8,
						 .ra_where = UNWIND_UNDEFINED };
	size_t begin = behind_sched_sp(code, 0);

	if (begin != NOWHERE)
		cfi_go__add_switch(go, address(code, begin), address(code, code->size), &rule);
}

static void find_go_switches(struct cfi_go *go, enum go_runtime which,
			     const struct go_function *function, const __u8 *bytes, size_t size)
{
	const struct go_code code = { function, bytes, size };

	switch (which) {
	case GO_ASMCGOCALL:
		find_asmcgocall(go, &code);
		break;
	case GO_CROSSCALL2:
		find_crosscall2(go, &code);
		break;
	case GO_CGOCALLBACK:
		find_cgocallback(go, &code);
		break;
	case GO_SYSTEMSTACK:
		find_systemstack(go, &code);
		break;
	case GO_MCALL:
	case GO_MORESTACK:
		find_leaving(go, &code);
		break;
	case GO_RUNTIME_FUNCTIONS:
		break;
	}
}

const struct cfi_code_arch cfi_code_host = {
	.find_go_switches = find_go_switches,
	.ends_thread = ends_thread,
};
