/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What truth_shapes knows of x86-64; the rest is in truth_x86.S. */
#ifndef TARGETS_TRUTH_X86_H
#define TARGETS_TRUTH_X86_H

#include <ucontext.h>

#define FORCE_ALIGN __attribute__((force_align_arg_pointer))

/* Behind the ud2 that raised SIGILL. */
static inline void step_over_trap(ucontext_t *context)
{
	context->uc_mcontext.gregs[REG_RIP] += 2;
}

/* sub $8,%rsp; call *%rdi; nop; add $8,%rsp; ret. */
#define GENERATED 0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x90, 0x48, 0x83, 0xc4, 0x08, 0xc3

/* The same without the nop: what follows the call only leaves. */
#define GENERATED_LEAVING 0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3

/* allocate() of truth_lib, which calls where "here" leads. */
#define ALLOCATE_FROM_KEPT                                                                         \
	".text\n"                                                                                  \
	".globl allocate\n"                                                                        \
	".hidden allocate\n"                                                                       \
	".type allocate, @function\n"                                                              \
	"allocate:\n"                                                                              \
	".cfi_startproc\n"                                                                         \
	"push %rbx\n"                                                                              \
	".cfi_def_cfa_offset 16\n"                                                                 \
	".cfi_offset 3, -16\n"                                                                     \
	"mov %rsp, %rbx\n"                                                                         \
	".cfi_def_cfa_register 3\n"                                                                \
	"call *here(%rip)\n"                                                                       \
	"pop %rbx\n"                                                                               \
	".cfi_def_cfa 7, 8\n"                                                                      \
	"ret\n"                                                                                    \
	".cfi_endproc\n"                                                                           \
	".size allocate, . - allocate\n"

#endif
