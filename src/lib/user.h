/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Users and privileges of this process, of the user who called sudo, and of the command that is
 * launched. */
#ifndef ALLOCPROF_USER_H
#define ALLOCPROF_USER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct error;

/* Finds the user who called sudo. Returns false if this process is not root's, or if root itself
 * called sudo. *@gid is -1 if sudo has named no group. */
bool sudo_user__find(uid_t *uid, gid_t *gid);

/* caller_files__begin() stores here what caller_files__end() has to restore. */
struct caller_files {
	bool is_another;
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int n_groups;
};

/* Has this thread, until caller_files__end(), open only files that the user who called sudo could
 * open; changes nothing if nobody did. Returns 0 or a negative errno, with which nothing is changed. */
int caller_files__begin(struct caller_files *caller);
void caller_files__end(struct caller_files *caller);

/*
 * Borrowed privileges are those that the program's file has and its user does not: capabilities of
 * the file (setcap(8)). They are used to set probes, but not to open files or processes that the
 * user could not open: all that goes beyond setting probes is given up.
 */

/* Returns whether this process has borrowed privileges, or had them before borrowed__reduce(). */
bool borrowed__is_any(void);

/* Gives up all borrowed privileges but CAP_BPF and CAP_PERFMON; to be called before all else.
 * Returns 0 or a negative errno with *@error set: -EPERM if the program's file is set-user-ID or
 * set-group-ID. */
int borrowed__reduce(struct error *error);

/*
 * Checks that the user could trace the process @pid, or that privileges are not borrowed:
 * CAP_PERFMON alone opens the maps of all processes (Linux 6.13). Returns 0, also if the process
 * has ended, which the caller has to notice, or -EPERM with *@error set.
 */
int borrowed__check_process(pid_t pid, struct error *error);

/* Sets *@error to the refusal of borrowed__check_process() and returns -EPERM. */
int borrowed__refuse(pid_t pid, struct error *error);

/* Looks up the id of the user @name, or a number, which no user of this machine need have: those of containers
 * have theirs. Returns 0, or -ENOENT with @error set. */
int user__find(const char *name, uid_t *out, struct error *error);

/* A user that a command is launched as. */
struct target_user {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* all groups that the user is in */
	int n_groups;
};

/* Looks up the user @name, which is a name or a number. Returns 0, and the caller releases *@out;
 * -ENOENT if there is no such user; or -EPERM if this process cannot become that user. */
int target_user__find(const char *name, struct target_user *out, struct error *error);

/* Makes this process one of @user. Returns 0 or a negative errno. */
int target_user__become(const struct target_user *user);

/* Releases the groups of @user, which may be zeroed. */
void target_user__release(struct target_user *user);

/* Signal mask, limits, environment and user that a launched command inherits: those that allocprof
 * itself was started with, unless an option names another user. */
struct target_inheritance {
	sigset_t signal_mask;
	struct rlimit files;
	char **environment;		/* NULL: the environment of this process */
	const struct target_user *user; /* NULL: the user of this process */
	/* The command runs in a mount namespace of its own, with copies of files. */
	bool isolates;
};

#endif
