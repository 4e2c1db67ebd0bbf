// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls what allocprof's library defines, and knows what work a thread is in. */
#include "CAllocprof.h"

static __thread struct allocprof_swift_work *current;

void allocprof_swift_begin(const char *name)
{
	(void)name;
#ifdef ALLOCPROF_CALL_
	ALLOCPROF_CALL_(4, name);
#endif
}

void allocprof_swift_end(const char *name)
{
	(void)name;
#ifdef ALLOCPROF_CALL_
	ALLOCPROF_CALL_(2, name);
#endif
}

void allocprof_swift_enter(struct allocprof_swift_work *work)
{
	allocprof_swift_begin(work->name);
	allocprof_task_enter_(&work->task);
	current = work;
}

void allocprof_swift_leave(struct allocprof_swift_work *work)
{
	if (current != work)
		return;
	current = 0;
	allocprof_task_leave_(&work->task);
	allocprof_swift_end(work->name);
}

struct allocprof_swift_work *allocprof_swift_pause(void)
{
	struct allocprof_swift_work *work = current;

	if (work)
		allocprof_swift_leave(work);
	return work;
}
