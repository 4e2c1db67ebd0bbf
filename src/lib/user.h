/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Users and privileges: of this process, of who called sudo, and of the command that is launched. */
#ifndef ALLOCPROF_USER_H
#define ALLOCPROF_USER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct error;

/* Finds the user who called sudo. False if this process is not root's, or if root itself called it. *@gid is -1 where sudo names no group. */
bool sudo_user__find(uid_t *uid, gid_t *gid);

/*
 * Privileges that the program's file has and its user does not: capabilities of the file (setcap(8)). They set
 * probes, and open no file and no process that the user could not: what they would allow beyond that is given up.
 */

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

/* The user that a command is launched as. */
struct target_user {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* all that the user is in */
	int n_groups;
};

/* Looks the user @name up, as a name or as a number. -ENOENT: there is none; -EPERM: this process cannot become
 * that user. The caller releases *@out. */
int target_user__find(const char *name, struct target_user *out, struct error *error);

/* Makes this process one of @user. 0 or a negative errno. */
int target_user__become(const struct target_user *user);

/* Accepts a zeroed @user. */
void target_user__release(struct target_user *user);

/* Signal mask, limits, environment and user that a launched command inherits: those that allocprof was started with. */
struct target_inheritance {
	sigset_t signal_mask;
	struct rlimit files;
	char **environment;		/* NULL: that of this process */
	const struct target_user *user; /* NULL: that of this process */
	bool isolates;			/* in a mount namespace of its own, with copies of files */
};

#endif
