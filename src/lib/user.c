// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds out who called sudo, becomes another user, and gives up privileges that an allocprof with
 * file capabilities must not use. */
#include "user.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/types.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "error.h"

#define NO_ID UINT32_MAX

/* Files are opened with this group if sudo has named none. */
#define NOBODYS_GROUP 65534

/* The environment is trusted: the caller who set it is root. */
static uint32_t sudo_id(const char *variable)
{
	const char *text = getenv(variable);
	unsigned long long id;

	if (!text || !*text || strlen(text) > 10 || text[strspn(text, "0123456789")])
		return NO_ID;
	id = strtoull(text, NULL, 10);
	return id < NO_ID ? id : NO_ID;
}

bool sudo_user__find(uid_t *uid, gid_t *gid)
{
	uint32_t user = sudo_id("SUDO_UID");

	if (geteuid() || !user || user == NO_ID)
		return false;
	*uid = user;
	*gid = sudo_id("SUDO_GID");
	return true;
}

int caller_files__begin(struct caller_files *caller)
{
	uid_t uid;
	gid_t gid;
	int err;

	*caller = (struct caller_files){ .is_another = sudo_user__find(&uid, &gid) };
	if (!caller->is_another)
		return 0;
	caller->n_groups = getgroups(0, NULL);
	if (caller->n_groups < 0)
		return -errno;
	caller->groups = calloc(caller->n_groups + 1, sizeof(*caller->groups));
	if (!caller->groups)
		return -ENOMEM;
	/* Groups of the user that are not the first one are left out: fewer files can be opened. */
	if (getgroups(caller->n_groups, caller->groups) < 0 ||
	    setgroups(gid == NO_ID ? 0 : 1, &gid)) {
		err = -errno;
		free(caller->groups);
		return err;
	}
	if (gid == NO_ID)
		gid = NOBODYS_GROUP;
	caller->gid = setfsgid(gid);
	/* Once the user is not root, the capabilities that concern files have no effect either. */
	caller->uid = setfsuid(uid);
	/* These calls report no error, as for a user that the user namespace does not have. */
	if ((gid_t)setfsgid(NO_ID) != gid || (uid_t)setfsuid(NO_ID) != uid) {
		caller_files__end(caller);
		return -EPERM;
	}
	return 0;
}

void caller_files__end(struct caller_files *caller)
{
	if (!caller->is_another)
		return;
	setfsuid(caller->uid);
	setfsgid(caller->gid);
	/* This process has been root's all the time. */
	if (setgroups(caller->n_groups, caller->groups))
		abort();
	free(caller->groups);
}

bool borrowed__is_any(void)
{
	/* The kernel also sets this flag if a security module changes root's domain. */
	return getauxval(AT_SECURE) && getuid();
}

int borrowed__reduce(struct error *error)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (getuid() != geteuid() || getgid() != getegid())
		return error__set(
			error, -EPERM,
			"allocprof does not run set-user-ID or set-group-ID; remove these bits "
			"(chmod ug-s), and give it capabilities (allocprof(1), SECURITY)");
	if (!borrowed__is_any())
		return 0;
	if (!syscall(SYS_capget, &header, data)) {
		for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
			__u32 kept = i == CAP_TO_INDEX(CAP_BPF) ? CAP_TO_MASK(CAP_BPF) : 0;

			kept |= i == CAP_TO_INDEX(CAP_PERFMON) ? CAP_TO_MASK(CAP_PERFMON) : 0;
			data[i].effective &= kept;
			data[i].permitted &= kept;
			data[i].inheritable = 0;
		}
		/* Depending on fs.suid_dumpable, the user's other processes could otherwise read
		 * this process's memory. */
		if (!syscall(SYS_capset, &header, data) && !prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
			return 0;
	}
	return error__set(error, -errno, "cannot give up the capabilities of allocprof's file: %s",
			  strerror(errno));
}

int borrowed__check_process(pid_t pid, struct error *error)
{
	char name[64], none[1];

	if (!borrowed__is_any())
		return 0;
	/* Opening this link requires the same rights as reading by ptrace(2). */
	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	if (readlink(name, none, sizeof(none)) >= 0 || (errno != EACCES && errno != EPERM))
		return 0;
	return borrowed__refuse(pid, error);
}

int borrowed__refuse(pid_t pid, struct error *error)
{
	return error__set(error, -EPERM,
			  "process %d is another user's, or has more privileges than this user; "
			  "run allocprof as root, as by the capabilities of its file it measures "
			  "only what its user could trace",
			  pid);
}

static bool parse_uid(const char *text, uid_t *out)
{
	unsigned long number;
	char *end;

	number = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || number >= (uid_t)-1)
		return false;
	*out = number;
	return true;
}

/* Returns the user's entry, valid until the next call, or NULL if there is none. */
static const struct passwd *find_passwd(const char *name)
{
	const struct passwd *entry = getpwnam(name);
	uid_t uid;

	return entry || !parse_uid(name, &uid) ? entry : getpwuid(uid);
}

static int refuse_user(const char *name, struct error *error)
{
	return error__set(error, -ENOENT,
			  "there is no user '%s'; getent passwd lists those that there are", name);
}

int user__find(const char *name, uid_t *out, struct error *error)
{
	const struct passwd *entry = getpwnam(name);

	if (entry)
		*out = entry->pw_uid;
	return entry || parse_uid(name, out) ? 0 : refuse_user(name, error);
}

int target_user__find(const char *name, struct target_user *out, struct error *error)
{
	const struct passwd *entry = find_passwd(name);
	struct target_user user = { 0 };

	if (!entry)
		return refuse_user(name, error);
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
	/* A process that already has this uid may lack the right to set groups, so it sets none. */
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
