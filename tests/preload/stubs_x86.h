/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Assembly of the stubs for x86-64. */
#ifndef PRELOAD_STUBS_X86_H
#define PRELOAD_STUBS_X86_H

#include <stdint.h>

/* @sp is the stack pointer at a stub's entry. */
static inline uintptr_t stub__return_address(const uintptr_t *sp)
{
	return *sp;
}

/*
 * The start of a stub, up to its call of @handler with the arguments of the function, the stack
 * pointer as at the stub's entry, and the index. No function of the allocator has more than three
 * arguments, so that three pushes save them all and align the stack for the helper.
 */
#define STUB_ENTER(symbol, index, handler)                                                         \
	".pushsection .text\n"                                                                     \
	".globl " symbol "\n"                                                                      \
	".type " symbol ", @function\n"                                                            \
	".p2align 4\n" symbol ":\n"                                                                \
	".cfi_startproc\n"                                                                         \
	"	endbr64\n"                                                                               \
	"	mov %rsp, %rcx\n"                                                                        \
	"	push %rdi\n"                                                                             \
	"	.cfi_adjust_cfa_offset 8\n"                                                              \
	"	push %rsi\n"                                                                             \
	"	.cfi_adjust_cfa_offset 8\n"                                                              \
	"	push %rdx\n"                                                                             \
	"	.cfi_adjust_cfa_offset 8\n"                                                              \
	"	mov $" #index ", %r8d\n"                                                           \
	"	call " handler "\n"

/* Registers and stack are as at the stub's entry again, but for %rax, %rcx, %r8 to %r11. */
#define STUB_RESTORE                                                                               \
	"	pop %rdx\n"                                                                              \
	"	.cfi_adjust_cfa_offset -8\n"                                                             \
	"	pop %rsi\n"                                                                              \
	"	.cfi_adjust_cfa_offset -8\n"                                                             \
	"	pop %rdi\n"                                                                              \
	"	.cfi_adjust_cfa_offset -8\n"

/* Goes on where the handler said. */
#define STUB_LEAVE STUB_RESTORE "	jmp *%rax\n"

#define STUB_END(symbol)                                                                           \
	".cfi_endproc\n"                                                                           \
	".size " symbol ", . - " symbol "\n"                                                       \
	".popsection\n"

#endif
