/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ALLOCPROF_INSIDE_EXEC_H
#define ALLOCPROF_INSIDE_EXEC_H

/* syscall(2) of execve or execveat. */
long exec__by_number(long number, long a, long b, long c, long d, long e);

#endif
