/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of processor.h for arm64. */
#ifndef ALLOCPROF_INSIDE_PROCESSOR_ARM64_H
#define ALLOCPROF_INSIDE_PROCESSOR_ARM64_H

#include <elf.h>
#include <linux/audit.h>
#include <linux/types.h>
#include <stdbool.h>

/* Makes a system call. Returns a negative errno on failure. */
static inline __attribute__((always_inline)) long processor__call(long number, long a, long b,
								  long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

/* Seccomp filters see this number as the processor. */
#define PROCESSOR_AUDIT AUDIT_ARCH_AARCH64

/* Adds to a word. A signal handler that comes in between has the addition begin again, as the
 * exception ends the exclusive access. */
static inline void processor__add(__u64 *word, __u64 n)
{
	__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
}

/* Works like processor__add(). Returns whether the sum is negative, as a signed number. */
static inline bool processor__add_and_test(__u64 *word, __u64 n)
{
	return (__s64)__atomic_add_fetch(word, n, __ATOMIC_RELAXED) < 0;
}

/*
 * Replaces two words, aligned to 16 bytes, at once, as a full barrier. Returns false if they are not @was and
 * @was_next. Words that were read while they changed are never taken for those: then at one of the two moments the pair
 * was another one.
 */
static inline bool pair__replace(__u64 *pair, __u64 was, __u64 was_next, __u64 word, __u64 next)
{
	__u64 is, is_next;
	__u32 failed;

	__asm__ volatile("1:	ldaxp	%0, %1, %3\n"
			 "	cmp	%0, %4\n"
			 "	ccmp	%1, %5, #0, eq\n"
			 "	b.ne	2f\n"
			 "	stlxp	%w2, %6, %7, %3\n"
			 "	cbnz	%w2, 1b\n"
			 "	b	3f\n"
			 "2:	clrex\n"
			 "	mov	%w2, #1\n"
			 "3:	dmb	ish\n"
			 : "=&r"(is), "=&r"(is_next), "=&r"(failed), "+Q"(*(__u64(*)[2])pair)
			 : "r"(was), "r"(was_next), "r"(word), "r"(next)
			 : "memory", "cc");
	return !failed;
}

/* Copies and sets bytes. */
static inline void processor__copy(void *to, const void *from, __u64 size)
{
	volatile char *at = to;
	const char *of = from;

	for (; size >= 8 && !(((__u64)at | (__u64)of) & 7); size -= 8, at += 8, of += 8)
		*(volatile __u64 *)at = *(const __u64 *)of;
	while (size--)
		*at++ = *of++;
}

static inline void processor__set(void *to, int value, __u64 size)
{
	__u64 words = (__u8)value * 0x0101010101010101ULL;
	volatile char *at = to;

	for (; size >= 8 && !((__u64)at & 7); size -= 8, at += 8)
		*(volatile __u64 *)at = words;
	while (size--)
		*at++ = (char)value;
}

/* Reads the counter that the kernel's clock uses, too. It is not read before what comes before. */
static inline __u64 processor__ticks(void)
{
	__u64 ticks;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
	return ticks;
}

/* Returns the thread pointer, before which glibc's struct pthread is. */
static inline __u64 processor__thread_data(void)
{
	__u64 address;

	__asm__("mrs %0, tpidr_el0" : "=r"(address));
	return address;
}

/* Returns the word of 32 bits at @offset from there. */
static inline __u32 processor__thread_word(__u64 offset)
{
	return *(const volatile __u32 *)(processor__thread_data() + offset);
}

/* Where glibc has struct pthread, from that address, in all its releases so far: in front of it. The thread's number is
 * in no known place; it follows two pointers to other threads. */
#define PTHREAD_BEGIN -0x900LL
#define PTHREAD_END   0LL
/* Where the thread's number is in most builds of glibc; 0: it is searched. */
#define PTHREAD_TID 0LL

/* The size of a page; 0: the kernel decides. */
#define PROCESSOR_PAGE_BYTES 0ULL

/* Types of relocations: of slots of symbols, and of offsets of thread-local variables. */
#define PROCESSOR_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define PROCESSOR_GLOB_DAT  R_AARCH64_GLOB_DAT
#define PROCESSOR_ADDRESS   R_AARCH64_ABS64
#define PROCESSOR_THREAD    R_AARCH64_TLS_TPREL
#define PROCESSOR_MACHINE   EM_AARCH64

/*
 * A frame: the address of three words in the frame of the function that the program has called: the frame pointer and
 * the return address of its caller, and SP at the function's entry.
 */
#define FRAME_WORDS 3
#define FRAME                                                                                      \
	((const __u64[FRAME_WORDS]){ *(const __u64 *)__builtin_frame_address(0),                   \
				     (__u64)__builtin_return_address(0),                           \
				     (__u64)__builtin_dwarf_cfa() })

/* Returns SP of the caller when the function will have returned. */
static inline __u64 frame__sp(const __u64 *frame)
{
	return frame[2];
}

/* Returns SP at the function's entry. */
static inline __u64 frame__entry_sp(const __u64 *frame)
{
	return frame[2];
}

/* Whether a function saves the return address in a place of its own choice, and not where the caller has put it:
 * right below its SP. */
#define FRAME_SAVES_LINK 1

/* Returns the address that a return address on the stack stands for: pointer authentication uses
 * the upper bits. Where the processor lacks it the instruction, xpaclri, does nothing. */
static inline __u64 processor__code_address(__u64 address)
{
	register __u64 x30 __asm__("x30") = address;

	__asm__("hint #7" : "+r"(x30));
	return x30;
}

/* Where a rule for plain code has the return address, from the CFA. */
#define PLAIN_RA_OFFSET(rule)	 ((rule)->ra_offset)
#define IS_PLAIN_RA_OFFSET(rule) ((rule)->ra_offset < 0)

/* Async functions of Swift are not told here. */
#define PROCESSOR_ASYNC_WORDS 2

static inline bool processor__is_async(const __u64 *words)
{
	(void)words;
	return false;
}

#define PROCESSOR_ASYNC_CONTEXT -8

/* An argument of a USDT probe: the register, and how the note names it. */
#define PROCESSOR_NOTE_ARGUMENT	  "4@%w0"
#define PROCESSOR_NOTE_CONSTRAINT "r"

#endif
