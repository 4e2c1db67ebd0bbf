// SPDX-License-Identifier: GPL-3.0-or-later
/* What src/inside has on the host in the place of the processor and of the dynamic linker. */
#include "inside_host.h"

#include "objects.h"
#include "process.h"
#include "stack.h"

static host_answer_fn answer;

void host__answer_by(host_answer_fn fn)
{
	answer = fn;
}

long host__ask_kernel(long number, const long arguments[6])
{
	register long r10 __asm__("r10") = arguments[3];
	register long r8 __asm__("r8") = arguments[4];
	register long r9 __asm__("r9") = arguments[5];
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]),
			   "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

long host__system_call(long number, long a, long b, long c, long d, long e, long f)
{
	const long arguments[] = { a, b, c, d, e, f };

	return (answer ? answer : host__ask_kernel)(number, arguments);
}

/* Words that others have written are none that ASan knows. */
__u64 host__word(__u64 address)
{
	__u64 word;

	__asm__ volatile("movq (%1), %0" : "=r"(word) : "r"(address));
	return word;
}

void host__load(char *path)
{
	/* The program has no path in the list. */
	objects__own()->path = path;
	process__loaded();
}
