/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What truth_shapes knows of arm64; the rest is in truth_arm64.S. */
#ifndef TARGETS_TRUTH_ARM64_H
#define TARGETS_TRUTH_ARM64_H

#include <ucontext.h>

/* The stack is aligned at all times. */
#define FORCE_ALIGN

/* Behind the udf that raised SIGILL. */
static inline void step_over_trap(ucontext_t *context)
{
	context->uc_mcontext.pc += 4;
}

/* str x30,[sp,#-16]!; blr x0; nop; ldr x30,[sp],#16; ret. */
#define GENERATED                                                                                  \
	0xfe, 0x0f, 0x1f, 0xf8, 0x00, 0x00, 0x3f, 0xd6, 0x1f, 0x20, 0x03, 0xd5, 0xfe, 0x07, 0x41,  \
		0xf8, 0xc0, 0x03, 0x5f, 0xd6

/* The same without the nop: what follows the call only leaves. */
#define GENERATED_LEAVING                                                                          \
	0xfe, 0x0f, 0x1f, 0xf8, 0x00, 0x00, 0x3f, 0xd6, 0xfe, 0x07, 0x41, 0xf8, 0xc0, 0x03, 0x5f,  \
		0xd6

/* allocate() of truth_lib, which calls where "here" leads. */
#define ALLOCATE_FROM_KEPT                                                                         \
	".text\n"                                                                                  \
	".globl allocate\n"                                                                        \
	".hidden allocate\n"                                                                       \
	".type allocate, %function\n"                                                              \
	"allocate:\n"                                                                              \
	".cfi_startproc\n"                                                                         \
	"stp x19, x30, [sp, #-16]!\n"                                                              \
	".cfi_def_cfa_offset 16\n"                                                                 \
	".cfi_offset x19, -16\n"                                                                   \
	".cfi_offset x30, -8\n"                                                                    \
	"mov x19, sp\n"                                                                            \
	".cfi_def_cfa_register x19\n"                                                              \
	"adrp x9, here\n"                                                                          \
	"ldr x9, [x9, :lo12:here]\n"                                                               \
	"blr x9\n"                                                                                 \
	"ldp x19, x30, [sp], #16\n"                                                                \
	".cfi_def_cfa sp, 0\n"                                                                     \
	".cfi_restore x19\n"                                                                       \
	".cfi_restore x30\n"                                                                       \
	"ret\n"                                                                                    \
	".cfi_endproc\n"                                                                           \
	".size allocate, . - allocate\n"

#endif
