// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names programs that the library cannot enter, and asks allocprof whether another engine counts their calls. */
#include <asm/unistd.h>

#include "memory.h"
#include "process.h"

static struct mapped_array refused_places;

/* The file behind a link of /proc, or the path itself. */
static void copy_path(char *out, const char *path)
{
	long n = -1;

	if (text__begins(path, "/proc/self/"))
		n = sys(__NR_readlink, (long)path, (long)out, INSIDE_PATH_BYTES - 1, 0, 0, 0);
	if (n < 0)
		text__append(out, out + INSIDE_PATH_BYTES, path);
}

static bool await_answer(const struct inside_refused *refused)
{
	if (!__atomic_load_n(&process.header->hands_over, __ATOMIC_RELAXED))
		return false;
	memory__wake();
	memory__await(&refused->answer, INSIDE_NO_ANSWER);
	return __atomic_load_n(&refused->answer, __ATOMIC_ACQUIRE) == INSIDE_TAKEN;
}

bool process__note_refusal(const char *path, enum inside_refusal reason)
{
	struct inside_refused *refused;
	__u32 index;

	memory__add_gap(INSIDE_GAP_EXECS);
	refused = mapped_array__add(&refused_places, &process.header->refused, sizeof(*refused),
				    &index);
	if (!refused)
		return false;
	refused->reason = reason;
	refused->image = process__is_itself() ? process.image : 0;
	refused->pid = sys__pid();
	refused->pid_namespace = sys__pid_namespace();
	copy_path(refused->path, path);
	__atomic_store_n(&refused->state, INSIDE_READY, __ATOMIC_RELEASE);
	return await_answer(refused);
}
