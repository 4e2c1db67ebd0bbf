/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes from a child process what it does not need, before it reads what others have written. */
#ifndef ALLOCPROF_CONFINEMENT_H
#define ALLOCPROF_CONFINEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The descriptor that a confined process is left with, beside 0 to 2, which are /dev/null. */
#define CONFINED_FD 3
/* The user and group nobody, of root's clients without a user of sudo. */
#define CONFINED_NOBODY 65534
/* User and group of root's parsers are this number and the process's id. It is the first of those of which systemd's list of
 * users (systemd.io/UIDS-GIDS) says that nothing uses them. */
#define CONFINED_FIRST 0x70000000

enum confinement_kind {
	CONFINE_PARSER, /* computes, and gets files from its parent */
	CONFINE_CLIENT, /* may use the network, and write files that its user may write */
};

struct confinement {
	enum confinement_kind kind;
	const char *name; /* of the process, 15 bytes at most */
	pid_t parent;	  /* which it does not outlive */
	int fd;		  /* becomes CONFINED_FD; all others are closed */
	/* Limits: data beyond what is inherited, and processor time. 0: none. */
	size_t memory_bytes;
	unsigned int cpu_seconds;
};

/*
 * Confines this process, which has just been forked and has one thread: signals as in a new program, a process group of
 * its own, no descriptors, no memory shared with other processes, another user where it is root, no capabilities,
 * limits. confinement__close() has to follow. 0 or a negative errno, after which the process must end.
 */
int confinement__enter(const struct confinement *confinement);

/* Sets default signal dispositions and an empty mask, as for a child of a shell. */
void confinement__reset_signals(void);

/* Becomes the user who called sudo, if this process is root's and there is one, and gives up all capabilities, for good.
 * 0 or a negative errno. */
int confinement__drop_privileges(void);

/* Limits this process to the system calls of @kind: any other kills a parser, and fails with EPERM in a client. Returns 0
 * or a negative errno. */
int confinement__close(enum confinement_kind kind);

/* Whether this process's surroundings have set a filter of system calls, as containers and systemd do. */
bool confinement__is_filtered(void);
/* Whether a child of this process outlives @call: the filter may end who makes a system call. */
bool confinement__outlives(void (*call)(void));

/* Flags by which newfstatat(2) is not trapped. */
#define WORKER_STATUS_FLAGS (AT_EMPTY_PATH | AT_NO_AUTOMOUNT)

/* Has the system calls by which libraries open files ask the parent, through the signal SIGSYS. */
void worker_trap__set(void);

#endif
