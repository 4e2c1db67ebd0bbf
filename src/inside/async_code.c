// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds the beginnings of functions, and looks at their code. */
#include "async_code.h"

#include "objects.h"
#include "processor.h"
#include "stack.h"

bool async_is_there;
static __u64 runtime; /* the address of a function of the library */

void async_code__look(void)
{
	struct definition found;

	if (async_is_there || !objects__find_function("swift_task_alloc", &found))
		return;
	__atomic_store_n(&runtime, (__u64)found.address, __ATOMIC_RELAXED);
	__atomic_store_n(&async_is_there, true, __ATOMIC_RELEASE);
}

static bool is_runtime(const struct code_range *range)
{
	struct code_range its;

	return code__find(__atomic_load_n(&runtime, __ATOMIC_RELAXED), &its) ||
	       its.module == range->module;
}

bool async_code__has(struct frame_work *work, __u64 address, const struct code_range *range)
{
	__u64 begin = frame_rules__function(work, address, range), words[PROCESSOR_ASYNC_WORDS];

	return begin && memory__read(begin, words, sizeof(words)) && processor__is_async(words) &&
	       !is_runtime(range);
}
