// SPDX-License-Identifier: GPL-3.0-or-later
#include "target_user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"

/* NULL: there is none. Valid until the next call. */
static const struct passwd *find(const char *name)
{
	const struct passwd *entry = getpwnam(name);
	unsigned long number;
	char *end;

	if (entry || *name < '0' || *name > '9')
		return entry;
	number = strtoul(name, &end, 10);
	return *end || number >= (uid_t)-1 ? NULL : getpwuid(number);
}

int target_user__find(const char *name, struct target_user *out, struct error *error)
{
	const struct passwd *entry = find(name);
	struct target_user user = { 0 };

	if (!entry)
		return error__set(error, -ENOENT,
				  "there is no user '%s'; getent passwd lists those that there are",
				  name);
	user.uid = entry->pw_uid;
	user.gid = entry->pw_gid;
	if (geteuid() && (user.uid != getuid() || user.uid != geteuid()))
		return error__set(
			error, -EPERM,
			"cannot run a command as '%s' without being root; run allocprof with "
			"sudo, or as that user",
			name);
	getgrouplist(entry->pw_name, user.gid, NULL, &user.n_groups);
	user.groups = calloc(user.n_groups ? user.n_groups : 1, sizeof(*user.groups));
	if (!user.groups)
		return -ENOMEM;
	if (getgrouplist(entry->pw_name, user.gid, user.groups, &user.n_groups) < 0) {
		free(user.groups);
		return error__set(error, -EAGAIN, "the groups of '%s' changed meanwhile; try again",
				  name);
	}
	*out = user;
	return 0;
}

int target_user__become(const struct target_user *user)
{
	/* A process that already has this uid may lack the right to set groups. */
	if (geteuid() && getuid() == user->uid)
		return 0;
	if (setgroups(user->n_groups, user->groups) || setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid))
		return -errno;
	return 0;
}

void target_user__release(struct target_user *user)
{
	free(user->groups);
	*user = (struct target_user){ 0 };
}
