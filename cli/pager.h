/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shows long output to a terminal in the user's pager, as git does. */
#ifndef ALLOCPROF_PAGER_H
#define ALLOCPROF_PAGER_H

#include <stdbool.h>

/*
 * From here on standard output goes through $PAGER, or less where that is unset. Nothing happens where
 * standard output is no terminal or a dumb one, where $PAGER is empty or cat, or where there is no pager.
 */
void pager__begin(void);

/*
 * Waits until the user has read, and gives standard output back. @err is what the writing returned; returns
 * it, or 0 where the user has left the pager before all was written.
 */
int pager__end(int err);

/* The terminal behind the pager, or -1 where there is none between it and standard output. */
int pager__terminal_fd(void);

#endif
