/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One reason for or against a site in each function; test_allocator.c knows them by name. */
.macro function name
	.p2align 4
	.globl \name
	.type \name, @function
\name:
.endm
.macro end name
	.size \name, . - \name
.endm
	.section .note.GNU-stack, "", @progbits
	.text

/* +3: the je */
function malloc
	test %rdi, %rdi
	je 1f
	mov %rdi, %rax
1:	ret
end malloc

/* Entry: a loop leads back to the je. */
function calloc
	test %rdi, %rdi
1:	je 2f
	dec %rax
	jne 1b
2:	ret
end calloc

/* +6: mul writes rdx, which is no argument of realloc. */
function realloc
	mov %rsi, %rax
	mul %rdx
	push %rbx
	pop %rbx
	ret
end realloc

/* +17: nothing before the push changes what a probe reads. */
function reallocarray
	endbr64
	mov %rdi, %rax
	lea 8(%rsi), %r10
	nopw 0(%rax, %rax, 1)
	push %r12
	pop %r12
	ret
end reallocarray

/* +4: the return address is 8 bytes above the stack pointer. */
function posix_memalign
	sub $8, %rsp
	push %rbx
	pop %rbx
	add $8, %rsp
	ret
end posix_memalign

/* Entry: memory changes. */
function aligned_alloc
	mov %rdi, 8(%rsi)
	push %rbx
	pop %rbx
	ret
end aligned_alloc

/* Entry: the push is too far away. */
function memalign
	.rept 30
	mov %rdi, %rax
	.endr
	push %rbx
	pop %rbx
	ret
end memalign

/* Entry: a conditional jump that the kernel does not emulate because of its prefix. */
function valloc
	mov %rdi, %rax
	.byte 0x66, 0x74, 0x00
	push %rbx
	pop %rbx
	ret
end valloc

/* Entry: elsewhere() leads to its je. */
function pvalloc
	test %rdi, %rdi
	je 1f
	mov %rdi, %rax
1:	ret
end pvalloc

	.type elsewhere, @function
elsewhere:
	.byte 0xe9
	.long pvalloc + 3 - . - 4
end elsewhere

/* Entry: cpuid is not among the known instructions. */
function free
	cpuid
	push %rbx
	pop %rbx
	ret
end free
