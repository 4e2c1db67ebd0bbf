/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which processes may write to the terminal that we write to. */
#ifndef ALLOCPROF_TERMINAL_USERS_H
#define ALLOCPROF_TERMINAL_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The devices that a user sees as one terminal: the one behind a descriptor, and those of our ancestors. A command of
 * sudo or script has a terminal of its own, which they copy to theirs. */
struct terminal_users {
	dev_t devices[8];
	size_t n;
};

/* -ENOTTY where @fd is no terminal. */
int terminal_users__of(int fd, struct terminal_users *terminal);

/*
 * Whether process @pid has the terminal open to write to: as standard output or error, or, where it is
 * its controlling terminal, by any descriptor but standard input. What cannot be found out is taken for
 * yes, and a process that has ended for no.
 */
bool terminal_users__has(const struct terminal_users *terminal, pid_t pid);

#endif
