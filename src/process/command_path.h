/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the file that a command will execute, before it runs. */
#ifndef ALLOCPROF_COMMAND_PATH_H
#define ALLOCPROF_COMMAND_PATH_H

/*
 * Finds @name as execvp(3) does: as a path if it has a slash, else in the directories of @path_env
 * (the value of PATH; NULL: the system's default). *@out is to be freed. -ENOENT: no such file;
 * -EACCES: found, but not executable.
 */
int command_path__find(const char *name, const char *path_env, char **out);

/*
 * Follows `#!` lines from @path to the ELF file that the kernel will run; resolves `env` in such a
 * line with @path_env. *@elf_path is to be freed. -ENOEXEC: neither ELF nor script; -ELOOP: more
 * than five interpreters; else the error of opening a file on the way.
 */
int command_path__elf(const char *path, const char *path_env, char **elf_path);

#endif
