/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System calls and the entry of a program for x86-64, without a C library. */
#ifndef TARGETS_PRELOAD_EXEC_X86_H
#define TARGETS_PRELOAD_EXEC_X86_H

static inline long syscall3(long number, const void *a, const void *b, const void *c)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}

/* Calls start() with the stack as the kernel left it. */
#define START                                                                                      \
	".globl _start\n"                                                                          \
	"_start:\n"                                                                                \
	"	xor %ebp, %ebp\n"                                                                        \
	"	mov %rsp, %rdi\n"                                                                        \
	"	and $-16, %rsp\n"                                                                        \
	"	call start\n"

#endif
