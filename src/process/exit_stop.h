/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stops a child process when it exits, while it still has its memory (PTRACE_O_TRACEEXIT of
 * ptrace(2)). Only its first thread is traced: signals to that thread take a little longer, and no
 * debugger can have it. If this process ends, the child goes on.
 */
#ifndef ALLOCPROF_EXIT_STOP_H
#define ALLOCPROF_EXIT_STOP_H

#include <stdbool.h>
#include <sys/types.h>

struct exit_stop {
	pid_t pid;  /* 0: no process is traced */
	int status; /* si_status of a stop that exit_stop__attend() has to handle first; 0: none */
};

/* Begins to trace @pid. Returns 0 or a negative errno, -EPERM if another process traces it. */
int exit_stop__begin(struct exit_stop *stop, pid_t pid);

/* Lets the process go on from stops for other reasons. To be called after each SIGCHLD. Returns
 * whether it is stopped at its end: it has no other thread that still runs. */
bool exit_stop__attend(struct exit_stop *stop);

/* Lets the process go on after it was held (hold__borrow()), unless it is at its end, which
 * exit_stop__attend() will say. @status is that of its stop; 0: it has not stopped. */
void exit_stop__resume(struct exit_stop *stop, int status);

/* Lets the process end. */
void exit_stop__release(struct exit_stop *stop);

/* Traces the process no longer, and lets it go on. */
void exit_stop__end(struct exit_stop *stop);

#endif
