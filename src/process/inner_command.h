/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command that another one executes in its place or as its child, such as "env NAME=VALUE COMMAND". */
#ifndef ALLOCPROF_INNER_COMMAND_H
#define ALLOCPROF_INNER_COMMAND_H

#include <stdbool.h>

#include "libraries.h"

struct inner_command {
	char *const *argv;		      /* its words, among those of the outer command */
	struct libraries_environment changes; /* that env(1) is asked for, else as they were */
};

/*
 * Replaces *@command by the command that it names, if it is one of env(1), nice(1), timeout(1) and others that are known to
 * execute the first of their arguments that is a program. The result is a guess: files are looked at beforehand that may be
 * needed. False if there is none.
 */
bool inner_command__find(struct inner_command *command);

#endif
