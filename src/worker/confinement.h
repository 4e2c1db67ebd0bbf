/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes from a child process all privileges that it does not need, before it reads data that
 * others have written. */
#ifndef ALLOCPROF_CONFINEMENT_H
#define ALLOCPROF_CONFINEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The only descriptor that a confined process keeps, beside 0 to 2, which are /dev/null. */
#define CONFINED_FD 3
/* The user and group "nobody", of root's clients if no user called sudo. */
#define CONFINED_NOBODY 65534
/* The user and group ids of root's parsers and servers are this number plus the process's id. It is the first
 * id of a range that nothing uses, according to systemd's list of users (systemd.io/UIDS-GIDS). */
#define CONFINED_FIRST 0x70000000

enum confinement_kind {
	CONFINE_PARSER, /* a process that only computes, and gets files from its parent */
	/* A process that may use the network, and write files that its user may write. */
	CONFINE_CLIENT,
	CONFINE_CLIENT_PROGRAM, /* a client that executes a program */
	/* A process that answers whoever reaches it: a client that starts no threads, of a user that no other process has. */
	CONFINE_SERVER,
};

struct confinement {
	enum confinement_kind kind;
	const char *name; /* name of the process, at most 15 bytes */
	pid_t parent;	  /* the process ends when this one ends */
	int fd;		  /* descriptor that becomes CONFINED_FD; all others are closed */
	/* Limits of data, in bytes beyond the inherited data, and of processor time, in seconds;
	 * 0: no limit. */
	size_t memory_bytes;
	unsigned int cpu_seconds;
};

/*
 * Confines this process, which has just been forked and has one thread. It gets the signal
 * handling of a new program, a process group of its own, no descriptors, no memory shared with
 * other processes, another user if it is root, no capabilities, and limits. confinement__close()
 * has to follow. Returns 0 or a negative errno, after which the process must end.
 */
int confinement__enter(const struct confinement *confinement);

/* Sets default signal dispositions and an empty signal mask, as a shell does for a child. */
void confinement__reset_signals(void);

/* Makes this process one of the user who called sudo, if it is root's and there is such a user,
 * and gives up all capabilities for good. Returns 0 or a negative errno. */
int confinement__drop_privileges(void);

/* Limits this process to the system calls of @kind: any other kills a parser, and fails with EPERM in the others. Returns 0
 * or a negative errno. */
int confinement__close(enum confinement_kind kind);

/* Returns whether a filter of system calls applies to this process that its surroundings have set,
 * as containers and systemd do. */
bool confinement__is_filtered(void);
/* Returns whether a child of this process survives @call: a filter may kill a process that makes a
 * system call. */
bool confinement__outlives(void (*call)(void));

/* With these flags newfstatat(2) is not trapped. */
#define WORKER_STATUS_FLAGS (AT_EMPTY_PATH | AT_NO_AUTOMOUNT)

/* Sets a handler of SIGSYS, so that the system calls by which libraries open files ask the parent. */
void worker_trap__set(void);

#endif
