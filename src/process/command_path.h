/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds out which command another one executes, and the file of a command before it runs. */
#ifndef ALLOCPROF_COMMAND_PATH_H
#define ALLOCPROF_COMMAND_PATH_H

#include <stdbool.h>

#include "libraries.h"

/* The command that another one executes in its place or as its child, such as "env NAME=VALUE COMMAND". */

struct inner_command {
	/* The command's words, among those of the outer command. */
	char *const *argv;
	struct libraries_environment changes; /* changes that env(1) is asked for; else unchanged */
};

/*
 * Replaces *@command by the command that it names, if it is one of env(1), nice(1), timeout(1) and
 * others that are known to execute the first of their arguments that is a program. The result is a
 * guess, good enough to look at files that may be needed. Returns false if it names none.
 */
bool inner_command__find(struct inner_command *command);

/* Finds the file that a command will execute, before it runs. */

/*
 * Finds @name as execvp(3) does: as a path if it has a slash, else in the directories of @path_env
 * (the value of PATH; NULL: the system's default). The caller frees *@out. Fails with -ENOENT if
 * there is no such file; -EACCES if it was found, but is not executable.
 */
int command_path__find(const char *name, const char *path_env, char **out);

/*
 * Follows `#!` lines from @path to the ELF file that the kernel will run; resolves `env` in such a
 * line with @path_env. The caller frees *@elf_path. Fails with -ENOEXEC if they lead to a file
 * that is neither ELF nor a script; -ELOOP if there are more than five interpreters; or the error
 * of opening a file on the way.
 */
int command_path__elf(const char *path, const char *path_env, char **elf_path);

#endif
