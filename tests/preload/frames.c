// SPDX-License-Identifier: GPL-3.0-or-later
#include "frames.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "common.h"

struct walk {
	uintptr_t *frames;
	size_t room;
	size_t n;
	uintptr_t first;
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *arg)
{
	struct walk *walk = arg;
	uintptr_t pc = _Unwind_GetIP(context);

	/* The innermost frames are this library's own. */
	if (!walk->n && pc != walk->first)
		return _URC_NO_REASON;
	if (walk->n == walk->room)
		die("the stack is too deep");
	walk->frames[walk->n++] = pc;
	return _URC_NO_REASON;
}

size_t frames__capture(uintptr_t *frames, size_t room, uintptr_t return_address)
{
	struct walk walk = { .frames = frames, .room = room, .first = return_address };

	_Unwind_Backtrace(add_frame, &walk);
	if (walk.n && !frames[walk.n - 1])
		walk.n--;
	if (!walk.n)
		die("libgcc does not find the allocator's caller");
	return walk.n;
}

/* The same for all threads and forked children: who writes it twice writes it the same. */
const char *frames__program(void)
{
	static char path[PATH_MAX];
	static atomic_bool known;
	long n;

	if (!atomic_load(&known)) {
		n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof(path) - 1);
		path[n < 0 ? 0 : n] = '\0';
		atomic_store(&known, true);
	}
	return path;
}

const char *frames__module(uintptr_t pc, uintptr_t *bias)
{
	struct dl_find_object found;

	*bias = 0;
	if (_dl_find_object((void *)pc, &found))
		return NULL;
	*bias = found.dlfo_link_map->l_addr;
	return found.dlfo_link_map->l_name[0] ? found.dlfo_link_map->l_name : frames__program();
}
