/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds out which processes may write to our terminal. */
#ifndef ALLOCPROF_TERMINAL_USERS_H
#define ALLOCPROF_TERMINAL_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * The terminal devices that the user sees as one: the one of a descriptor, and those of our
 * ancestors, because sudo and script give a command a pty of its own and copy its output to theirs.
 */
struct terminal_users {
	dev_t devices[8];
	size_t n;
};

/* -ENOTTY if @fd is no terminal. */
int terminal_users__of(int fd, struct terminal_users *terminal);

/*
 * Returns whether process @pid has the terminal open for writing: as standard output or error or, if it is
 * its controlling terminal, by any descriptor but standard input. True if that cannot be
 * determined; false if the process has ended.
 */
bool terminal_users__has(const struct terminal_users *terminal, pid_t pid);

#endif
