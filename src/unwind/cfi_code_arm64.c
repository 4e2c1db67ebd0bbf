// SPDX-License-Identifier: GPL-3.0-or-later
/* The arm64 part of unwind tables: rules for machine code that has no call frame information. */
#include <stdint.h>
#include <ucontext.h>

#include "cfi_internal.h"

/*
 * A frame of Go's has the return address at sp, and below that, where signal handlers leave it alone, the caller's frame
 * pointer: cmd/internal/obj/arm64/obj7.go. Without a frame both are in their registers.
 */
struct unwind_rule cfi_go__depth_rule(const struct go_function *function, __s64 depth_bytes)
{
	struct unwind_rule rule = { .flags = UNWIND_OF_CODE, .cfa = UNWIND_CFA_SP };

	if (depth_bytes < 0 || depth_bytes > INT32_MAX) {
		rule.cfa = UNWIND_CFA_UNSUPPORTED;
		rule.cfa_offset = UNWIND_UNSUPPORTED_OFFSET;
		return rule;
	}
	rule.cfa_offset = (__s32)depth_bytes;
	if (depth_bytes) {
		rule.ra_where = UNWIND_AT_SP;
		rule.fp_where = UNWIND_AT_SP;
		rule.fp_offset = -8;
	}
	if (function->outermost)
		rule.ra_where = UNWIND_UNDEFINED;
	return rule;
}

/* Nothing is known of the frames of functions that have no call frame information: those who follow a stack there try the
 * frame pointer. */
int cfi_code__run(__u64 lo, const __u8 *code, size_t size, cfi_rule_fn take, void *ctx)
{
	static const struct unwind_rule none = { 0 };

	return take(ctx, lo, &none);
}

static bool ends_thread(const __u8 *code, size_t size, size_t at, __u64 vaddr,
			const struct cfi_bare *bare)
{
	return false;
}

/* Stacks end where Go's runtime switches them. */
static void find_go_switches(struct cfi_go *go, enum go_runtime which,
			     const struct go_function *function, const __u8 *bytes, size_t size)
{
}

/* mov x8, #139 (rt_sigreturn); svc #0: what __kernel_rt_sigreturn of the vDSO is, and what C libraries have without it. */
static const __u8 signal_return[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };

/* Where the interrupted registers are from sp: struct rt_sigframe of arch/arm64/kernel/signal.c. */
#define INTERRUPTED(name) (128 + (int)offsetof(ucontext_t, uc_mcontext.name))

const struct cfi_code_arch cfi_code_host = {
	.find_go_switches = find_go_switches,
	.ends_thread = ends_thread,
	.signal_return = signal_return,
	.signal_return_bytes = sizeof(signal_return),
	.signal_rule = { .cfa = UNWIND_CFA_AT_SP,
			 .cfa_offset = INTERRUPTED(sp),
			 .fp_where = UNWIND_AT_SP,
			 .fp_offset = INTERRUPTED(regs[29]),
			 .ra_where = UNWIND_AT_SP,
			 .ra_offset = INTERRUPTED(pc),
			 .flags = UNWIND_SIGNAL_FRAME | UNWIND_OF_CODE },
};
