/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which file a command will run, found before it runs. */
#ifndef ALLOCPROF_COMMAND_PATH_H
#define ALLOCPROF_COMMAND_PATH_H

/*
 * Finds @name as execvp(3) would: as a path if it has a slash, else in the directories of @path_env
 * (the value of PATH; NULL: the system's default). *@out is the caller's to free.
 * -ENOENT: no such file; -EACCES: found, but it may not be executed.
 */
int command_path__find(const char *name, const char *path_env, char **out);

/*
 * Follows `#!` lines from @path to the ELF file whose code the command will run. `env` in such a
 * line is seen through with @path_env as in command_path__find(). *@elf_path is the caller's to free.
 * -ENOEXEC: neither ELF nor script; -ELOOP: more than five interpreters; else as opening a file
 * on the way failed.
 */
int command_path__elf(const char *path, const char *path_env, char **elf_path);

#endif
