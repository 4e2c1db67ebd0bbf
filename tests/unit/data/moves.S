/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions that move their arguments before the first instruction that the kernel emulates; test_allocator.c knows
 * them by name. With these names arguments are read as they are described, from any register of an argument. */
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

/* Bytes that look like a jump into mi_cfree. */
	.type elsewhere, @function
elsewhere:
	.byte 0xe9
	.long mi_cfree + 1 - . - 4
end elsewhere

/* +12: the size is in rsi. */
function malloc
	mov %rdi, %rsi
	mov %fs:0, %rdi
	push %rbx
	pop %rbx
	ret
end malloc

/* +7: other arguments may be overwritten. */
function free
	xor %esi, %esi
	xor %edx, %edx
	test %rdi, %rdi
	je 1f
1:	ret
end free

/* +9: pointer and size have changed places, by way of rax, which then is overwritten. */
function realloc
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rax, %rsi
	xor %eax, %eax
	push %rbx
	pop %rbx
	ret
end realloc

/* +6: the address of the result is where it was, and the size in rcx. */
function posix_memalign
	mov %rdx, %rcx
	mov %rsi, %rdx
	push %rbx
	pop %rbx
	ret
end posix_memalign

/* Entry: the programs read the address of the result from rdi alone. */
function mi_posix_memalign
	mov %rdi, %rcx
	mov %rsi, %rdi
	push %rbx
	pop %rbx
	ret
end mi_posix_memalign

/* +5: the size is in rax. */
function mi_malloc
	mov %rdi, %rax
	xor %edi, %edi
	push %rbx
	pop %rbx
	ret
end mi_malloc

/* Entry: rsi has the lower half of the size. */
function mi_zalloc
	mov %edi, %esi
	xor %edi, %edi
	push %rbx
	pop %rbx
	ret
end mi_zalloc

/* Entry: a part of the copy is overwritten. */
function mi_malloc_small
	mov %rdi, %rsi
	mov $1, %sil
	xor %edi, %edi
	push %rbx
	pop %rbx
	ret
end mi_malloc_small

/* Entry: what is copied is no longer the size. */
function mi_zalloc_small
	xor %edi, %edi
	mov %rdi, %rsi
	push %rbx
	pop %rbx
	ret
end mi_zalloc_small

/* +6: the count is in rax, and the size where it was, too. */
function mi_calloc
	mov %rdi, %rax
	mov %rsi, %rdi
	push %rbx
	mov %rax, %rsi
	push %r12
	pop %r12
	pop %rbx
	ret
end mi_calloc

/* Entry: the size is in r10 alone. */
function mi_umalloc
	mov %rdi, %r10
	xor %edi, %edi
	push %rbx
	pop %rbx
	ret
end mi_umalloc

/* Entry: the count has been multiplied. */
function mi_mallocn
	mov %rdi, %rax
	mov %rsi, %rdi
	mul %rsi
	jo 1f
1:	ret
end mi_mallocn

/* +6: a conditional move of what is not read. */
function mi_realloc
	test %rsi, %rsi
	mov %rdi, %rdx
	je 1f
	cmove %rsi, %rdx
1:	ret
end mi_realloc

/* Entry: control comes back to the je by a table of addresses and a short jump. */
function mi_free
	test %rdi, %rdi
1:	je 2f
	mov table(%rip), %rax
	jmp *%rax
	.p2align 3
3:	dec %rdi
	jmp 1b
2:	ret
end mi_free
	.section .data.rel.local, "aw"
table:	.quad 3b
	.text

/* +4: what elsewhere() looks like would lead to the middle of endbr64. */
function mi_cfree
	endbr64
	push %rbx
	pop %rbx
	ret
end mi_cfree
