// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counts calls of the functions of own.h. */
#include "call.h"
#include "counted.h"
#include "domains.h"
#include "entries.h"
#include "interface_abi.h"
#include "memory.h"

static __u64 argument(const struct own_frame *own, __u32 number)
{
	return number ? own->arguments[number - 1] : 0;
}

static struct call call_of(const struct interface_function *row, const struct own_frame *own)
{
	struct call call = {
		.function = row->function,
		.pointer = argument(own, row->pointer),
		.size = argument(own, row->size) + row->size_bytes,
	};

	/* The argument points to an old block only if the function takes a block. */
	if (!(AP_FREEING >> call.function & 1) && !(AP_REALLOCATING >> call.function & 1))
		call.pointer = 0;
	if (row->count)
		call.overflows =
			__builtin_mul_overflow(argument(own, row->count), call.size, &call.size);
	if (call.overflows)
		call.size = 0;
	return call;
}

/* Returns whether this call of jemalloc's mallctl is about to free all blocks of an arena:
 * arena.N.reset, arena.N.destroy. */
static bool is_end_of_arena(const char *name)
{
	const char *last = name;

	if (!name || !text__begins(name, "arena."))
		return false;
	for (; *name; name++)
		if (*name == '.')
			last = name + 1;
	return text__equal(last, "reset") || text__equal(last, "destroy");
}

/* Returns whether a copying function returns a copy of a text of single bytes. */
static bool own__returns_text(const char *name)
{
	static const char *const names[] = {
		"GC_strdup",   "GC_strndup",	  "GC_debug_strdup",
		"mi_strdup",   "mi_strndup",	  "mi_heap_strdup",
		"mi_realpath", "mi_heap_strndup", "mi_heap_realpath",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (text__equal(name, names[i]))
			return true;
	return false;
}

typedef __u64 (*own_t)(__u64, __u64, __u64, __u64, __u64, __u64);

static __u64 call_own(const struct own_function *function, const struct own_frame *own)
{
	const __u64 *arguments = own->arguments;

	return ((own_t)function->address)(arguments[0], arguments[1], arguments[2], arguments[3],
					  arguments[4], arguments[5]);
}

/* Calls a function that copies a text. If it has not called malloc by name, its result is counted
 * as a block that malloc has returned. */
static __u64 copy_text(const struct own_function *function, const struct own_frame *own,
		       const __u64 *frame, __u32 number)
{
	const struct thread *thread = thread__current();
	__u64 before = thread ? thread->shared->functions[AP_MALLOC].calls : 0, result;
	struct live_mark mark;
	struct call call;

	result = call_own(function, own);
	/* The function has called malloc by its name, which was counted, or this thread is not
	 * measured. */
	if (!result || !thread || thread->shared->functions[AP_MALLOC].calls != before)
		return result;
	call = (struct call){ AP_MALLOC, .size = text__length((const char *)result) + 1 };
	mark = call__enter(call, frame, number);
	if (mark__is_followed(mark))
		call__returned(mark, (void *)result, call.size, frame);
	return result;
}

/* A function that returns NULL instead of throwing may have one argument more, a std::nothrow_t, which has no value. */
static __u64 call_without_exception(const struct own_function *function,
				    const struct own_frame *own)
{
	const struct interface_function *row = function->row;
	__u32 n = row->size > row->count ? row->size : row->count;
	struct own_frame with = *own;

	n += text__contains(row->name, "align");
	for (; n < sizeof(with.arguments) / sizeof(with.arguments[0]); n++)
		with.arguments[n] = (__u64)&with.result;
	return call_own(function, &with);
}

/* Makes the call of an allocator's function and counts its result. Unlike with C's functions the
 * result may be stored in memory. Returns false if the function is to be called without that. */
static bool follow(const struct own_function *function, const struct interface_function *row,
		   struct own_frame *own, const __u64 *frame)
{
	const struct own_function *called = process.tid_offset ? function->returning : function;
	struct thread *current, *thread;
	struct live_move state;
	__u64 result = 0, block;
	struct claim claim;
	struct call call;

	call = call_of(row, own);
	state.function = call.function;
	state.is_outside = own->mark.record == MARK_OUTSIDE;
	live__move(&state, call.overflows ? 0 : call.pointer);
	if (called)
		result = called == function ? call_own(function, own)
					    : call_without_exception(called, own);
	if (!called || (called != function && !result)) {
		live__lose(thread__current(), mark__counted(own->mark),
			   state.has_old ? &state.old : NULL);
		return false;
	}
	own->result = block = result;
	if (row->function == AP_POSIX_MEMALIGN)
		block = (__u32)result ? 0 : *(__u64 *)own->arguments[0];
	else if (row->result == AP_RESULT_AT_POINTER)
		block = *(__u64 *)argument(own, row->pointer);
	else if (row->result == AP_RESULT_SIZE_IN_PLACE)
		block = result >= call.size ? call.pointer : 0;
	current = thread__current();
	thread = current ? thread__claim(current, &claim, frame) : NULL;
	if (!thread) {
		live__lose(current, mark__counted(own->mark), state.has_old ? &state.old : NULL);
		return true;
	}
	current->last_call.sp = 0;
	if (AP_REALLOCATING >> call.function & 1 && !call.overflows)
		live__moved(thread, &state, mark__counted(own->mark), block, call.size,
			    row->result == AP_RESULT_FREES);
	else
		live__return(thread, mark__counted(own->mark), block, call.size);
	thread__release(thread, &claim);
	return true;
}

/* Makes a call of a domain's function and counts it; calls beneath it are internal. Returns false if the function is
 * to be called without that. */
static bool enter_domain(const struct own_function *function, struct own_frame *own,
			 const __u64 *frame, __u32 number)
{
	struct thread *thread = thread__current();
	struct interface_function row;
	struct last_call before;
	struct call call;
	__u64 n_internal;

	if (!thread || !domains__called(function->row, &row))
		return false;
	if (call__is_beneath(thread, frame)) {
		counter__add(&thread__counts(thread, row.function)->internal, 1);
		return false;
	}
	call = call_of(&row, own);
	own->mark = call__enter(call, frame, number);
	n_internal = thread__counts(thread, row.function)->internal;
	before = thread->outermost;
	thread->outermost =
		(struct last_call){ .sp = frame__sp(frame), .return_address = frame[1] };
	if (!mark__is_followed(own->mark) || AP_FREEING >> call.function & 1) {
		if (mark__is_followed(own->mark))
			call__freed(own->mark, call.function, (void *)call.pointer, frame);
		own->result = call_own(function, own);
	} else if (!follow(function, &row, own, frame)) {
		own->result = call_own(function, own);
	}
	/* The measurement may have ended meanwhile, and the thread's memory gone with it; or another one may
	 * have begun. */
	thread = thread__current();
	if (!thread || !thread->defined)
		return true;
	thread->outermost = before;
	domains__returned(function->row,
			  thread__counts(thread, row.function)->internal != n_internal);
	return true;
}

bool own__enter(__u32 number, struct own_frame *own, const __u64 *frame)
{
	const struct own_function *function = &own_functions.list[number];
	const struct interface_function *row = function->row;
	struct call call;

	if (row && row->kind == INTERFACE_COUNTED) {
		call__count_only(row->function, frame);
		return false;
	}
	if (row && row->kind == INTERFACE_DOMAIN)
		return enter_domain(function, own, frame, number);
	if (row && row->kind == INTERFACE_LOOKUP) {
		counted__note_lookup((const char *)own->arguments[1]);
		return false;
	}
	if (!row || row->kind != INTERFACE_REQUEST) {
		bool is_by_name = row && row->kind == INTERFACE_IGNORED;

		if (row && row->kind == INTERFACE_THROUGH && own__returns_text(row->name)) {
			own->result = copy_text(function, own, frame, number);
			return true;
		}
		if (!(row && row->kind == INTERFACE_OWN && !row->ends) && !own__is_body(frame[1]) &&
		    !own__is_inner(frame[1]) &&
		    (is_by_name ? process.mode == INSIDE_LIVE &&
					  is_end_of_arena((const char *)own->arguments[0])
				: !row || !row->ends || process.mode == INSIDE_LIVE))
			memory__add_gap(INSIDE_GAP_FUNCTIONS);
		return false;
	}
	call = call_of(row, own);
	own->mark = call__enter(call, frame, number);
	if (!mark__is_followed(own->mark))
		return false;
	if (!(AP_FREEING >> call.function & 1))
		return follow(function, row, own, frame);
	call__freed(own->mark, call.function, (void *)call.pointer, frame);
	return false;
}
