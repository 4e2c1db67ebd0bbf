// SPDX-License-Identifier: GPL-3.0-or-later
/* How a C library ends a thread, or the process, with what a called function returned: the instructions. */
#include "cfi_internal.h"

#include <string.h>
#include <sys/syscall.h>

#define HAS(at, bytes) (!memcmp(at, bytes, sizeof(bytes) - 1))

/* call *%reg, call *(%reg), or call *disp8(%reg) */
static bool is_indirect_call(const __u8 *code, size_t at)
{
	if (at >= 2 && code[at - 2] == 0xff &&
	    ((code[at - 1] & 0xf8) == 0xd0 || (code[at - 1] & 0xf8) == 0x10))
		return true;
	return at >= 3 && code[at - 3] == 0xff && (code[at - 2] & 0xf8) == 0x50;
}

/* Skips the instruction by which the result becomes the first argument; NULL if it is another. */
static const __u8 *skip_move(const __u8 *code)
{
	static const struct {
		const char *bytes;
		size_t size;
	} moves[] = {
		{ "\x89\xc7", 2 },	       /* mov %eax, %edi */
		{ "\x48\x89\xc7", 3 },	       /* mov %rax, %rdi */
		{ "\x48\x63\xf8", 3 },	       /* movslq %eax, %rdi */
		{ "\x48\x98\x48\x89\xc7", 5 }, /* cltq; mov %rax, %rdi */
	};

	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (!memcmp(code, moves[i].bytes, moves[i].size))
			return code + moves[i].size;
	return NULL;
}

/* exit(2): mov of its number to eax, and syscall. */
static bool is_exit(const __u8 *code)
{
	_Static_assert(SYS_exit == 0x3c, "the number is in the bytes below");

	return HAS(code, "\x31\xc0\xb0\x3c\x0f\x05") || HAS(code, "\xb8\x3c\x00\x00\x00\x0f\x05");
}

bool cfi_bare__ends_thread_x86_64(const __u8 *code, size_t size, size_t at, __u64 vaddr,
				  const struct cfi_bare *bare)
{
	const __u8 *next;
	__s32 distance;
	__u64 target;

	/* The longest move, and the longest of what follows. */
	if (size - at < 5 + 7 || !is_indirect_call(code, at))
		return false;
	next = skip_move(code + at);
	if (!next)
		return false;
	if (is_exit(next))
		return true;
	if (*next != 0xe8 && *next != 0xe9)
		return false;
	memcpy(&distance, next + 1, sizeof(distance));
	target = vaddr + (__u64)(next - code) + 5 + (__u64)(__s64)distance;
	for (__u32 i = 0; i < bare->n_ends; i++)
		if (bare->ends[i] == target)
			return true;
	return false;
}
