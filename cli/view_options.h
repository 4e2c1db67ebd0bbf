/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options that say how stacks are printed. */
#ifndef ALLOCPROF_VIEW_OPTIONS_H
#define ALLOCPROF_VIEW_OPTIONS_H

enum {
	OPT_LINES = 0x200,
};

#define VIEW_OPTIONS                                                                               \
	{                                                                                          \
		"lines", OPT_LINES, NULL, 0, "Tell source lines apart and print them"              \
	}

#endif
