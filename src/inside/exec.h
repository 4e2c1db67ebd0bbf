/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interposes the functions that execute programs: each names this library to the executed program,
 * if that program can be measured. system(3), popen(3) and wordexp(3) execute a shell inside of
 * the C library, so LD_PRELOAD is in the process's environment while they run. */
#ifndef ALLOCPROF_INSIDE_EXEC_H
#define ALLOCPROF_INSIDE_EXEC_H

#include <stdbool.h>

/* Replaces syscall(2) with the numbers of execve(2) and execveat(2). */
long exec__by_number(long number, long a, long b, long c, long d, long e);

/*
 * system(3), popen(3) and wordexp(3) execute a shell with the process's own environment, by
 * functions inside of the C library, so LD_PRELOAD is put into it while they run.
 */

/* Puts the library @name, in @directory, into the process's environment, unless another thread has done so. Returns whether
 * shown__end() must be called when the function has returned. */
bool shown__begin(const char *directory, const char *name);

/* Removes the library from the environment, unless another thread still needs it there. */
void shown__end(void);

/* To be called in a forked child, which does not have the parent's threads that needed the
 * library. */
void shown__forked(void);

#endif
