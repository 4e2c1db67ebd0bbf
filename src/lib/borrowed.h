/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Privileges that the program's file has and its user does not: capabilities of the file (setcap(8)). They set
 * probes, and open no file and no process that the user could not: what they would allow beyond that is given up.
 */
#ifndef ALLOCPROF_BORROWED_H
#define ALLOCPROF_BORROWED_H

#include <stdbool.h>
#include <sys/types.h>

struct error;

/* Whether this process has such privileges, or had them before borrowed__reduce(). */
bool borrowed__is_any(void);

/* To be called first: keeps CAP_BPF and CAP_PERFMON of them. 0 or a negative errno with *@error set; -EPERM: the file
 * is set-user-ID or set-group-ID. */
int borrowed__reduce(struct error *error);

/*
 * Checks that the user could trace the process @pid, or that privileges are not borrowed. CAP_PERFMON alone opens the maps
 * of all processes (Linux 6.13). 0, or -EPERM with *@error set. A process that has ended is left to the caller.
 */
int borrowed__check_process(pid_t pid, struct error *error);

/* Sets *@error to that refusal and returns -EPERM. */
int borrowed__refuse(pid_t pid, struct error *error);

#endif
