// SPDX-License-Identifier: GPL-3.0-or-later
#include "confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <linux/types.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "proc.h"
#include "user.h"

/* Those that a large process has mapped, at once. */
#define MAX_FILES 4096

void confinement__reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Leaves @kept as CONFINED_FD. */
static int close_files(int kept)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int above;

	if (null < 0)
		return -errno;
	/* Moved above the descriptors that are replaced below. */
	above = fcntl(kept, F_DUPFD_CLOEXEC, CONFINED_FD + 1);
	if (above < 0)
		return -errno;
	for (int fd = 0; fd < CONFINED_FD; fd++)
		if (null != fd && dup3(null, fd, O_CLOEXEC) < 0)
			return -errno;
	if (dup3(above, CONFINED_FD, O_CLOEXEC) < 0 || close_range(CONFINED_FD + 1, UINT_MAX, 0))
		return -errno;
	return 0;
}

struct range {
	void *start;
	size_t size;
};

struct shared_mappings {
	struct range *list;
	size_t n, room;
};

static int note_shared(void *context, const struct proc_mapping *mapping)
{
	struct shared_mappings *shared = context;

	if (!mapping->is_shared)
		return 0;
	if (array__reserve(&shared->list, &shared->room, shared->n + 1, sizeof(*shared->list)))
		return -ENOMEM;
	shared->list[shared->n++] = (struct range){
		.start = (void *)(uintptr_t)mapping->start,
		.size = mapping->end - mapping->start,
	};
	return 0;
}

/*
 * Maps of BPF programs and memory of measured processes are shared, and a fork would go on to see and change them.
 * /proc/self/maps is read to its end first, since unmapping changes it.
 */
static int unmap_shared(void)
{
	struct shared_mappings shared = { 0 };
	int err = proc_maps__each(0, note_shared, &shared);

	for (size_t i = 0; i < shared.n && !err; i++)
		if (munmap(shared.list[i].start, shared.list[i].size))
			err = -errno;
	free(shared.list);
	return err;
}

/* Pages of data that this process has. */
static unsigned long data_pages(void)
{
	_cleanup_(close_file) FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages;

	return file && fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) == 1 ? pages : 0;
}

static int limit(int resource, rlim_t most)
{
	struct rlimit now;

	if (getrlimit(resource, &now))
		return -errno;
	if (now.rlim_max != RLIM_INFINITY && now.rlim_max < most)
		most = now.rlim_max;
	now.rlim_cur = now.rlim_max = most;
	return setrlimit(resource, &now) ? -errno : 0;
}

static int set_limits(const struct confinement *confinement)
{
	rlim_t data = data_pages() * sysconf(_SC_PAGESIZE) + confinement->memory_bytes;
	int err = limit(RLIMIT_CORE, 0);

	if (!err && confinement->memory_bytes)
		err = limit(RLIMIT_DATA, data);
	if (!err && confinement->cpu_seconds)
		err = limit(RLIMIT_CPU, confinement->cpu_seconds);
	if (!err)
		err = limit(RLIMIT_NOFILE, MAX_FILES);
	if (!err && confinement->kind == CONFINE_PARSER)
		err = limit(RLIMIT_FSIZE, 0);
	return err;
}

/* The last id that this user namespace has, by @map of /proc/self; 0 if that is unknown. */
static __u32 last_id(const char *map)
{
	_cleanup_(close_file) FILE *file = fopen(map, "re");
	__u32 inside, n, last = 0;

	while (file && fscanf(file, "%u %*u %u", &inside, &n) == 2)
		if (n && inside + n - 1 > last)
			last = inside + n - 1;
	return last;
}

/* The id that is @wanted, or the namespace's last one where that is less. */
static __u32 id_within(const char *map, __u32 wanted)
{
	__u32 last = last_id(map);

	return last && last < wanted ? last : wanted;
}

/*
 * A parser gets a user that no other process has, not even another parser, since processes of one user may signal each other. A
 * client becomes the user who called sudo, whose network and cache it uses, or else nobody.
 */
static void choose_user(enum confinement_kind kind, uid_t *uid, gid_t *gid)
{
	*uid = *gid = CONFINED_NOBODY;
	if (kind == CONFINE_CLIENT)
		sudo_user__find(uid, gid);
	else
		*uid = *gid = CONFINED_FIRST + getpid();
	if (*gid == (gid_t)-1)
		*gid = CONFINED_NOBODY;
	*uid = id_within("/proc/self/uid_map", *uid);
	*gid = id_within("/proc/self/gid_map", *gid);
}

/*
 * In a user namespace there may be no other user, and a container's root may not be allowed to become one: then the user
 * stays, without capabilities, and the list of system calls refuses the rest.
 */
static int change_user(uid_t uid, gid_t gid)
{
	if (setgroups(0, NULL) && errno != EPERM)
		return -errno;
	if (setresgid(gid, gid, gid) && errno != EPERM && errno != EINVAL)
		return -errno;
	if (setresuid(uid, uid, uid) && errno != EPERM && errno != EINVAL)
		return -errno;
	return 0;
}

/* Needs CAP_SETPCAP, so it comes before the capabilities go; without it, there is nothing to regain, for want of new
 * privileges. */
static void drop_bounds(void)
{
	for (int capability = 0; capability <= CAP_LAST_CAP; capability++)
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	prctl(PR_SET_SECUREBITS,
	      SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
		      SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
	      0, 0, 0);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

/* @uid 0: the user stays. */
static int drop_privileges(uid_t uid, gid_t gid)
{
	int err = 0;

	drop_bounds();
	if (uid)
		err = change_user(uid, gid);
	if (!err)
		err = drop_capabilities();
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	return err;
}

int confinement__drop_privileges(void)
{
	uid_t uid = 0;
	gid_t gid = CONFINED_NOBODY;

	sudo_user__find(&uid, &gid);
	return drop_privileges(uid, gid == (gid_t)-1 ? CONFINED_NOBODY : gid);
}

/* After the change of the user, which resets both. */
static int stay_with_parent(pid_t parent)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

int confinement__enter(const struct confinement *confinement)
{
	uid_t uid = 0;
	gid_t gid = 0;
	int err;

	/* Ctrl-C is for the parent, which ends this process. */
	setpgid(0, 0);
	confinement__reset_signals();
	prctl(PR_SET_NAME, confinement->name, 0, 0, 0);
	if (!geteuid())
		choose_user(confinement->kind, &uid, &gid);
	err = close_files(confinement->fd);
	if (!err)
		err = unmap_shared();
	if (!err)
		err = set_limits(confinement);
	if (!err)
		err = drop_privileges(uid, gid);
	return err ? err : stay_with_parent(confinement->parent);
}
