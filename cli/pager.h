/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pipes long output through the user's pager, as git does. */
#ifndef ALLOCPROF_PAGER_H
#define ALLOCPROF_PAGER_H

#include <stdbool.h>

/*
 * Redirects standard output to $PAGER, or to less if that is unset. Does nothing if standard output
 * is no terminal or a dumb one, if $PAGER is empty or cat, or if the pager is not installed.
 */
void pager__begin(void);

/*
 * Waits until the user quits the pager, and restores standard output. @err is the result of the
 * writing; returns it, or 0 if the user quit before all was written.
 */
int pager__end(int err);

/* The terminal that the pager writes to, or -1 if no pager runs. */
int pager__terminal_fd(void);

#endif
