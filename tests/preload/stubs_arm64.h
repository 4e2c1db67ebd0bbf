/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Assembly of the stubs for arm64. */
#ifndef PRELOAD_STUBS_ARM64_H
#define PRELOAD_STUBS_ARM64_H

#include <stdint.h>

/* @sp is the stack pointer at a stub's entry, which keeps x30 below it. */
static inline uintptr_t stub__return_address(const uintptr_t *sp)
{
	return sp[-5];
}

/*
 * The start of a stub, up to its call of @handler with the arguments of the function, the stack
 * pointer as at the stub's entry, and the index. No function of the allocator has more than three
 * arguments.
 */
#define STUB_ENTER(symbol, index, handler)                                                         \
	".pushsection .text\n"                                                                     \
	".globl " symbol "\n"                                                                      \
	".type " symbol ", %function\n"                                                            \
	".p2align 4\n" symbol ":\n"                                                                \
	".cfi_startproc\n"                                                                         \
	"	hint #34\n"                                                                              \
	"	mov x3, sp\n"                                                                            \
	"	stp x29, x30, [sp, #-48]!\n"                                                             \
	"	.cfi_adjust_cfa_offset 48\n"                                                             \
	"	.cfi_rel_offset x29, 0\n"                                                                \
	"	.cfi_rel_offset x30, 8\n"                                                                \
	"	mov x29, sp\n"                                                                           \
	"	stp x0, x1, [sp, #16]\n"                                                                 \
	"	str x2, [sp, #32]\n"                                                                     \
	"	mov w4, #" #index "\n"                                                             \
	"	bl " handler "\n"

/* Goes on where the handler said; registers and stack are as at the stub's entry again, but for those that calls
 * do not keep either. */
#define STUB_LEAVE                                                                                 \
	"	mov x16, x0\n"                                                                           \
	"	ldp x0, x1, [sp, #16]\n"                                                                 \
	"	ldr x2, [sp, #32]\n"                                                                     \
	"	ldp x29, x30, [sp], #48\n"                                                               \
	"	.cfi_adjust_cfa_offset -48\n"                                                            \
	"	.cfi_restore x29\n"                                                                      \
	"	.cfi_restore x30\n"                                                                      \
	"	br x16\n"

#define STUB_END(symbol)                                                                           \
	".cfi_endproc\n"                                                                           \
	".size " symbol ", . - " symbol "\n"                                                       \
	".popsection\n"

#endif
