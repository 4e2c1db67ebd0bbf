/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user that a command is launched as. */
#ifndef ALLOCPROF_TARGET_USER_H
#define ALLOCPROF_TARGET_USER_H

#include <sys/types.h>

struct error;

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

/* Also of a zeroed one. */
void target_user__release(struct target_user *user);

#endif
