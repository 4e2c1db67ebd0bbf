/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System calls and the entry of a program for arm64, without a C library. */
#ifndef TARGETS_PRELOAD_EXEC_ARM64_H
#define TARGETS_PRELOAD_EXEC_ARM64_H

static inline long syscall3(long number, const void *a, const void *b, const void *c)
{
	register long x0 __asm__("x0") = (long)a;
	register const void *x1 __asm__("x1") = b;
	register const void *x2 __asm__("x2") = c;
	register long x8 __asm__("x8") = number;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
	return x0;
}

/* Calls start() with the stack as the kernel left it. */
#define START                                                                                      \
	".globl _start\n"                                                                          \
	"_start:\n"                                                                                \
	"	mov x29, xzr\n"                                                                          \
	"	mov x30, xzr\n"                                                                          \
	"	mov x0, sp\n"                                                                            \
	"	bl start\n"

#endif
