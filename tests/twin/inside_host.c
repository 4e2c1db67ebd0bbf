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
	return processor__call(number, arguments[0], arguments[1], arguments[2], arguments[3],
			       arguments[4], arguments[5]);
}

long host__system_call(long number, long a, long b, long c, long d, long e, long f)
{
	const long arguments[] = { a, b, c, d, e, f };

	return (answer ? answer : host__ask_kernel)(number, arguments);
}

/* Words that others have written are none that ASan knows. */
__attribute__((no_sanitize("address"))) __u64 host__word(__u64 address)
{
	return *(const volatile __u64 *)address;
}

void host__load(char *path)
{
	/* The program has no path in the list. */
	objects__own()->path = path;
	process__loaded();
}
