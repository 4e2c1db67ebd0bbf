/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds out what a command runs on, for a recording's meta and for the conditions of budgets: how many
 * allocations a program makes depends on it. */
#ifndef ALLOCPROF_PLATFORM_H
#define ALLOCPROF_PLATFORM_H

struct parser;

/* Owned, and printable; NULL: not known. */
struct platform {
	char *system;	/* PRETTY_NAME of /etc/os-release */
	char *libc;	/* "GNU C Library (...) stable release version 2.36.", or "musl" */
	char *compiler; /* what the program's file says of its compilers */
	char *libraries; /* real paths, one a line, of the program and the libraries that it starts with */
};

/* Reads what is known of the command @argv; NULL: of the machine alone. */
void platform__read(struct parser *parser, char *const argv[], struct platform *out);
void platform__release(struct platform *platform);

#endif
