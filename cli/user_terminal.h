/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user's terminal: what it can show, the pager in front of it, and which processes may write to it. */
#ifndef ALLOCPROF_USER_TERMINAL_H
#define ALLOCPROF_USER_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "terminal.h"

/* Returns the terminal that @to, or the pager behind it, writes to; a plain one if there is none. */
struct terminal terminal__of(FILE *to);

/*
 * Redirects standard output to $PAGER, or to less if that is unset. Does nothing if standard output
 * is no terminal or a dumb one, if $PAGER is empty or cat, or if the pager is not installed.
 */
void pager__begin(void);

/*
 * Waits until the user quits the pager, and restores standard output. @err is the result of the
 * writing. Returns @err, or 0 if the user quit before all was written.
 */
int pager__end(int err);

/*
 * The terminal devices that the user sees as one: the terminal of a descriptor, and the terminals
 * of allocprof's ancestors, because sudo and script give a command a pty of its own and copy its
 * output to theirs.
 */
struct terminal_users {
	dev_t devices[8];
	size_t n;
};

/* Finds the terminals that belong to the terminal @fd. Returns 0, -ENOTTY if @fd is no terminal,
 * or another negative errno. */
int terminal_users__of(int fd, struct terminal_users *terminal);

/*
 * Returns whether process @pid has the terminal open for writing: as standard output or standard
 * error or, if it is its controlling terminal, by any descriptor but standard input. Returns true
 * if that cannot be determined, and false if the process has ended.
 */
bool terminal_users__has(const struct terminal_users *terminal, pid_t pid);

#endif
