// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shown.h"

#include <linux/unistd.h>

#include "environment.h"
#include "memory.h"
#include "sys.h"

#define SIG_SETMASK 2

static struct {
	/* Process of the thread that holds the lock, or 0. In a forked child it may be the parent. */
	__u32 holder;
	__u32 callers; /* threads that are in system, popen or wordexp */
	/* The environment with the library; @before is what it was made of. */
	char **array, **before;
	char *text;
	char *others;		/* the entry that @text is in place of; NULL: none */
	size_t room, text_room; /* entries and bytes that there is memory for */
} shown;

/* No signal's handler may find the lock held by its own thread. */
static void lock(__u64 *mask)
{
	const __u64 all = ~0ULL;
	__u32 self = sys__pid(), holder = 0;

	sys(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)mask, sizeof(all), 0, 0);
	while (!__atomic_compare_exchange_n(&shown.holder, &holder, self, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (holder == self) {
			holder = 0;
			sys(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
		}
	}
}

static void unlock(const __u64 *mask)
{
	__atomic_store_n(&shown.holder, 0, __ATOMIC_RELEASE);
	sys(__NR_rt_sigprocmask, SIG_SETMASK, (long)mask, 0, sizeof(*mask), 0, 0);
}

/* An array that has become too small is not freed: other threads may still read it. */
static bool reserve(size_t n, size_t text_bytes)
{
	if (shown.array && n <= shown.room && text_bytes <= shown.text_room)
		return true;
	shown.room = n * 2;
	shown.text_room = text_bytes * 2;
	shown.array = memory__take_private(shown.room * sizeof(char *) + shown.text_room);
	shown.text = (char *)(shown.array + shown.room);
	return shown.array;
}

static bool show(char ***variable, const char *directory, const char *name)
{
	struct environment environment;

	if (!environment__look(&environment, *variable, directory))
		return false;
	/* The target has taken the array over, and removed the library from it. */
	if (*variable == shown.array)
		shown.array = NULL;
	if (!reserve(environment.n + 2, environment__text_bytes(&environment, directory, name)) ||
	    !environment__fill(&environment, directory, name, shown.array, shown.text))
		return false;
	shown.before = *variable;
	shown.others = environment.entry;
	__atomic_store_n(variable, shown.array, __ATOMIC_RELEASE);
	return true;
}

/* Returns whether the target has left the array as it was made; setenv(3) changes entries in place. */
static bool is_unchanged(void)
{
	char *none = NULL, **at = shown.array, **before = shown.before ?: &none;

	for (;; at++, before++) {
		if (*at == shown.text)
			at++;
		while (*before && environment__is_preload(*before))
			before++;
		if (*at != *before)
			return false;
		if (!*at)
			return true;
	}
}

/* Removes the library from an environment that the target has changed or copied, which is the target's now. */
static void take_out(char **entry)
{
	char **to = entry;

	for (; *entry; entry++) {
		if (*entry != shown.text)
			*to++ = *entry;
		else if (shown.others)
			*to++ = shown.others;
	}
	*to = NULL;
}

static void hide(char ***variable)
{
	if (*variable == shown.array && is_unchanged()) {
		*variable = shown.before;
		return;
	}
	if (*variable)
		take_out(*variable);
	if (*variable == shown.array)
		shown.array = NULL;
}

bool shown__begin(const char *directory, const char *name)
{
	char ***variable = environment__variable();
	bool is_shown;
	__u64 mask;

	if (!variable)
		return false;
	lock(&mask);
	is_shown = (shown.callers && environment__has(*variable, directory)) ||
		   show(variable, directory, name);
	shown.callers += is_shown;
	unlock(&mask);
	return is_shown;
}

void shown__end(void)
{
	__u64 mask;

	lock(&mask);
	/* It is 0 in a child that a signal's handler has forked in this thread. */
	if (shown.callers && !--shown.callers)
		hide(environment__variable());
	unlock(&mask);
}

void shown__forked(void)
{
	char ***variable = environment__variable();

	shown.holder = 0;
	if (variable && shown.array && *variable == shown.array)
		*variable = shown.before;
	shown.callers = 0;
}
