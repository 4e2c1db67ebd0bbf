/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of processor.h for x86-64. */
#ifndef ALLOCPROF_INSIDE_PROCESSOR_X86_H
#define ALLOCPROF_INSIDE_PROCESSOR_X86_H

#include <elf.h>
#include <linux/audit.h>
#include <linux/types.h>
#include <stdbool.h>

/* Makes a system call. Returns a negative errno on failure. */
static inline __attribute__((always_inline)) long processor__call(long number, long a, long b,
								  long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* Seccomp filters see this number as the processor. */
#define PROCESSOR_AUDIT AUDIT_ARCH_X86_64

/* Adds to a word by one instruction. */
static inline void processor__add(__u64 *word, __u64 n)
{
	__asm__("addq %1, %0" : "+m"(*word) : "re"(n) : "cc");
}

/* Works like processor__add(). Returns whether the sum is negative, as a signed number. */
static inline bool processor__add_and_test(__u64 *word, __u64 n)
{
	bool is_negative;

	__asm__("addq %2, %0" : "+m"(*word), "=@ccs"(is_negative) : "re"(n));
	return is_negative;
}

/* Replaces two words, aligned to 16 bytes, by one instruction. Returns false if they are not @was
 * and @was_next. */
static inline bool pair__replace(__u64 *pair, __u64 was, __u64 was_next, __u64 word, __u64 next)
{
	bool done;

	__asm__ volatile("lock cmpxchg16b %1\n\tsete %0"
			 : "=q"(done), "+m"(*(__u64(*)[2])pair), "+a"(was), "+d"(was_next)
			 : "b"(word), "c"(next)
			 : "memory", "cc");
	return done;
}

/* Copies and sets bytes. */
static inline void processor__copy(void *to, const void *from, __u64 size)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static inline void processor__set(void *to, int value, __u64 size)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
}

/* Reads the processor's counter. */
static inline __u64 processor__ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* Returns the address to which FS points, of glibc's struct pthread. */
static inline __u64 processor__thread_data(void)
{
	__u64 address;

	__asm__("mov %%fs:0, %0" : "=r"(address));
	return address;
}

/* Returns the word of 32 bits at @offset from there. */
static inline __u32 processor__thread_word(__u64 offset)
{
	__u32 word;

	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(word) : "r"(offset));
	return word;
}

/* Where glibc has struct pthread, from that address, in all its releases so far, and what follows two pointers to
 * other threads there: the thread's number. */
#define PTHREAD_BEGIN 0LL
#define PTHREAD_END   0x700LL
/* Where the thread's number is in most builds of glibc. Words before it may be as small, such as that which is 1 in a process
 * with threads. */
#define PTHREAD_TID 0x2d0LL

/* The size of a page; 0: the kernel decides. */
#define PROCESSOR_PAGE_BYTES 4096ULL

/* Types of relocations: of slots of symbols, and of offsets of thread-local variables. */
#define PROCESSOR_JUMP_SLOT R_X86_64_JUMP_SLOT
#define PROCESSOR_GLOB_DAT  R_X86_64_GLOB_DAT
#define PROCESSOR_ADDRESS   R_X86_64_64
#define PROCESSOR_THREAD    R_X86_64_TPOFF64
#define PROCESSOR_MACHINE   EM_X86_64

/*
 * A frame: the address of two words in the frame of the function that the program has called, the frame pointer
 * and the return address of its caller. At the function's entry SP points to the second one.
 */
#define FRAME_WORDS 2
#define FRAME	    ((const __u64 *)__builtin_frame_address(0))

/* Returns SP of the caller when the function will have returned. */
static inline __u64 frame__sp(const __u64 *frame)
{
	return (__u64)&frame[2];
}

/* Returns SP at the function's entry. */
static inline __u64 frame__entry_sp(const __u64 *frame)
{
	return (__u64)&frame[1];
}

/* Whether a function saves the return address in a place of its own choice, and not where the caller has put it:
 * right below its SP. */
#define FRAME_SAVES_LINK 0

/* Returns the address that a return address on the stack stands for. */
static inline __u64 processor__code_address(__u64 address)
{
	return address;
}

/* Where a rule for plain code has the return address, from the CFA. */
#define PLAIN_RA_OFFSET(rule)	 -8
#define IS_PLAIN_RA_OFFSET(rule) ((rule)->ra_offset == -8)

/* How many words from its beginning tell an async function of Swift. */
#define PROCESSOR_ASYNC_WORDS 2

/* Returns whether code begins as such a function does that has a frame pointer: push %rbp; push %r14; lea 8(%rsp),%rbp. All others
 * have set the frame pointer before they save R14, which is the context here. */
static inline bool processor__is_async(const __u64 *words)
{
	const __u64 endbr = 0xfa1e0ff3, async = 0x08246c8d48564155;

	return words[0] == async ||
	       ((__u32)words[0] == endbr && (words[0] >> 32 | words[1] << 32) == async);
}

/* Its frame has the context here, counted from the frame pointer in bytes. */
#define PROCESSOR_ASYNC_CONTEXT -8

/* An argument of a USDT probe: the register, and how the note names it. */
#define PROCESSOR_NOTE_ARGUMENT	  "4@%%edi"
#define PROCESSOR_NOTE_CONSTRAINT "D"

#endif
