// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds where Go's runtime switches stacks on x86-64, by machine code: runtime/asm_amd64.s of Go
 * 1.18 to 1.24, and runtime/cgo/asm_amd64.s. Code that does not match gets no rule of its own. */
#include "cfi_internal.h"

#include <stdint.h>
#include <string.h>

#define NOWHERE ((size_t)-1)

enum {
	RDX = 2,
	RBP = 5,
	RDI = 7
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

/* Offset after the first match of @bytes at or after @from. */
static size_t behind(const struct go_code *code, size_t from, const __u8 *bytes, size_t n)
{
	for (; from < code->size; from++)
		if (is_at(code, from, bytes, n))
			return from + n;
	return NOWHERE;
}

/* mov @reg, n(%rsp): sets n and returns the offset after it. */
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

/* mov 0x38(%reg), %rsp: loads the saved sp of a goroutine (g.sched.sp). */
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

/* Depth of the stack where sp is copied to rdx; -1: nowhere. */
static __s64 kept_depth(const struct go_code *code)
{
	static const __u8 keep[] = { 0x48, 0x89, 0xe2 }; /* mov %rsp, %rdx */
	size_t at = behind(code, 0, keep, sizeof(keep));

	return at == NOWHERE ? -1 : go_function__depth(code->function, address(code, at));
}

/* sub $n, %rsp; and $-16, %rsp: sets n and returns the offset after the first. */
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
		size_t loaded = behind_store(code, at, RDI, &g);

		if (loaded == NOWHERE || !is_at(code, loaded, load_end, sizeof(load_end)))
			continue;
		begin = behind_store(code, loaded + sizeof(load_end), RDI, &kept);
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
	begin = at == NOWHERE ? NOWHERE : behind_store(code, at + 5, RDX, &kept);
	if (begin == NOWHERE)
		return;
	rule.cfa = UNWIND_CFA_AT_SP;
	rule.cfa_offset = (__s32)kept;
	rule.fp_offset = 0;
	at = behind(code, begin, leave, sizeof(leave));
	cfi_go__add_switch(go, address(code, switched), address(code, begin), &broken);
	cfi_go__add_switch(go, address(code, begin), address(code, at), &rule);
}

/* C code calls Go through crosscall2, which pushes rbp (Go 1.21 and later) or saves it among the
 * other registers. */
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
		saved = behind_store(code, at, RBP, &offset);
		depth = go_function__depth(code->function, address(code, at));
		rule.fp_offset = (__s32)(offset - depth - 8);
	}
	if (saved == NOWHERE || depth < 0 || called == NOWHERE || called < saved)
		return;
	go->crosscall_bytes = go_function__depth(code->function, address(code, called));
	/* Up to the return address of the call. */
	cfi_go__add_switch(go, address(code, saved), address(code, called + 4), &rule);
}

/*
 * cgocallback switches from the system stack, where asmcgocall began it, back to the goroutine's.
 * Its frame there is a copy; its caller's frame is where asmcgocall left the system stack.
 * asmcgocall has rounded sp down to 16 bytes; C code calls with an aligned sp, so what crosscall2
 * and cgocallback have pushed gives sp modulo 16.
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

/* mov 0x30(%rax), %rbx; mov n(%rbx), %rax: offset of the current g in m. Before that, offset of the
 * thread's g: mov %fs:n, %rax, or mov $n, %rcx; mov %fs:(%rcx), %rax. */
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

/* systemstack calls a function on the system stack and returns. */
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

/* The goroutine that is left here is not the caller: it is parked, and may continue elsewhere. */
static void find_leaving(struct cfi_go *go, const struct go_code *code)
{
	static const struct unwind_rule rule = { .cfa = UNWIND_CFA_SP,
						 .cfa_offset = 8,
						 .ra_where = UNWIND_UNDEFINED };
	size_t begin = behind_sched_sp(code, 0);

	if (begin != NOWHERE)
		cfi_go__add_switch(go, address(code, begin), address(code, code->size), &rule);
}

void cfi_go__find_switches_x86_64(struct cfi_go *go, enum go_runtime which,
				  const struct go_function *function, const __u8 *bytes,
				  size_t size)
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
