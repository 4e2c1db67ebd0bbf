// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints a frame as a file's name and a distance, which do not depend on where things are loaded. */
#ifndef TARGETS_PRINT_FRAME_H
#define TARGETS_PRINT_FRAME_H

#include <dlfcn.h>
#include "raw.h"

static inline void print_frame(void *pc)
{
	const char *file;
	Dl_info info;

	if (!dladdr(pc, &info) || !info.dli_fname) {
		say("  unknown\n");
		return;
	}
	file = strrchr(info.dli_fname, '/');
	say("  ");
	say(file ? file + 1 : info.dli_fname);
	say_number("+", (char *)pc - (char *)info.dli_fbase, "\n");
}

#endif
