// SPDX-License-Identifier: GPL-3.0-or-later
#include "confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <linux/types.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "proc.h"
#include "user.h"

/* The system calls that a confined process may make, by a seccomp filter. */

/* System calls that computation needs, and libelf, libdw and the C library. */
static const int computing[] = {
	SCMP_SYS(read),
	SCMP_SYS(pread64),
	SCMP_SYS(readv),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(brk),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(poll),
	SCMP_SYS(sched_yield),
	SCMP_SYS(getrandom),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(sysinfo),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* System calls that raise SIGSYS: the handler of worker_trap__set() has the parent answer them, or
 * refuses them. */
static const int trapped[] = {
	SCMP_SYS(open),	      SCMP_SYS(openat),	   SCMP_SYS(openat2),	 SCMP_SYS(readlink),
	SCMP_SYS(readlinkat), SCMP_SYS(stat),	   SCMP_SYS(lstat),	 SCMP_SYS(statx),
	SCMP_SYS(access),     SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(getcwd),
	SCMP_SYS(ioctl),      SCMP_SYS(fstat),
};

/* System calls that a client may not make. It may make all others, since its libraries resolve
 * names, start threads and write files. */
static const int refused_to_clients[] = {
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(pidfd_open),
	SCMP_SYS(pidfd_send_signal),
	SCMP_SYS(kill),
	SCMP_SYS(tkill),
	SCMP_SYS(rt_sigqueueinfo),
	SCMP_SYS(rt_tgsigqueueinfo),
	SCMP_SYS(kcmp),
	SCMP_SYS(fork),
	SCMP_SYS(vfork),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(fsopen),
	SCMP_SYS(fsmount),
	SCMP_SYS(move_mount),
	SCMP_SYS(open_tree),
	SCMP_SYS(open_by_handle_at),
	SCMP_SYS(name_to_handle_at),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(reboot),
	SCMP_SYS(swapon),
	SCMP_SYS(swapoff),
	SCMP_SYS(quotactl),
	SCMP_SYS(acct),
	SCMP_SYS(syslog),
	SCMP_SYS(settimeofday),
	SCMP_SYS(clock_settime),
	SCMP_SYS(clock_adjtime),
	SCMP_SYS(adjtimex),
	SCMP_SYS(personality),
	SCMP_SYS(modify_ldt),
};

/* What is refused to a client that needs no program. One that executes some gains nothing by it: no_new_privs is set, and the
 * filter stays. */
static const int executing[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
};

/* What is refused to a server, too. */
static const int cloning[] = {
	SCMP_SYS(clone),
	SCMP_SYS(clone3),
};

static int add_all(scmp_filter_ctx filter, __u32 action, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int err = seccomp_rule_add(filter, action, calls[i], 0);

		if (err)
			return err;
	}
	return 0;
}

/* Adds the system calls that are allowed with some arguments only. */
static int add_conditional(scmp_filter_ctx filter)
{
	const struct {
		int call;
		struct scmp_arg_cmp condition;
	} rules[] = {
		{ SCMP_SYS(sendmsg), SCMP_A0(SCMP_CMP_EQ, CONFINED_FD) },
		{ SCMP_SYS(recvmsg), SCMP_A0(SCMP_CMP_EQ, CONFINED_FD) },
		/* Data must not become code. */
		{ SCMP_SYS(mprotect), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) },
		{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_DUPFD_CLOEXEC) },
		{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_DUPFD) },
		{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFD) },
		{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFL) },
		/* Resource limits may be read, not set. */
		{ SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0) },
		/* abort() signals its own process. */
		{ SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, getpid()) },
	};
	/* A mapping must not have new code, nor be shared: RLIMIT_DATA does not count shared
	 * memory. */
	const struct scmp_arg_cmp private_data[] = {
		SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
		SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_TYPE, MAP_PRIVATE),
	};
	int err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap),
					 ARRAY_SIZE(private_data), private_data);

	for (size_t i = 0; i < ARRAY_SIZE(rules) && !err; i++)
		err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, 1,
					     &rules[i].condition);
	/* With these flags newfstatat(2) is allowed: the trap's handler asks the kernel by it. */
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
				       SCMP_A3(SCMP_CMP_EQ, WORKER_STATUS_FLAGS));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_TRAP, SCMP_SYS(newfstatat), 1,
				       SCMP_A3(SCMP_CMP_NE, WORKER_STATUS_FLAGS));
	return err;
}

static int add_parser(scmp_filter_ctx filter)
{
	int err = add_all(filter, SCMP_ACT_ALLOW, computing, ARRAY_SIZE(computing));

	if (!err)
		err = add_all(filter, SCMP_ACT_TRAP, trapped, ARRAY_SIZE(trapped));
	return err ? err : add_conditional(filter);
}

static int add_client(scmp_filter_ctx filter, enum confinement_kind kind)
{
	/* The worker may signal its own threads, as abort() does. */
	const struct scmp_arg_cmp others = SCMP_A0(SCMP_CMP_NE, getpid());
	int err = add_all(filter, SCMP_ACT_ERRNO(EPERM), refused_to_clients,
			  ARRAY_SIZE(refused_to_clients));

	if (!err && kind != CONFINE_CLIENT_PROGRAM)
		err = add_all(filter, SCMP_ACT_ERRNO(EPERM), executing, ARRAY_SIZE(executing));
	if (!err && kind == CONFINE_SERVER)
		err = add_all(filter, SCMP_ACT_ERRNO(EPERM), cloning, ARRAY_SIZE(cloning));
	if (!err)
		err = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1,
					     &others);
	return err;
}

/* Returns the errno that tells why seccomp_init() has failed, which does not set errno itself. */
static int refusal(void)
{
	__u32 action = SECCOMP_RET_KILL_PROCESS;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) ? errno : ENOMEM;
}

int confinement__close(enum confinement_kind kind)
{
	bool is_parser = kind == CONFINE_PARSER;
	scmp_filter_ctx filter = seccomp_init(is_parser ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ALLOW);
	int err;

	if (!filter)
		return -refusal();
	err = is_parser ? add_parser(filter) : add_client(filter, kind);
	if (!err && is_parser)
		worker_trap__set();
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

bool confinement__is_filtered(void)
{
	_cleanup_(close_file) FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	int mode = 0;

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	return mode == SECCOMP_MODE_FILTER;
}

bool confinement__outlives(void (*call)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		/* Otherwise SIGSYS would leave a core file. */
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		call();
		_exit(0);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || WIFEXITED(status);
}

/* Maximum number of open files; a large process has mapped as many. */
#define MAX_FILES 4096

void confinement__reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Makes @kept the descriptor CONFINED_FD, and closes all others. */
static int close_files(int kept)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int above;

	if (null < 0)
		return -errno;
	/* Move it above the descriptors that are replaced below. */
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
 * Unmaps shared memory: a forked process would go on to see and change maps of BPF programs and
 * memory of measured processes. Reads /proc/self/maps to its end first, since unmapping changes
 * it.
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

/* Returns the number of pages of data that this process has. */
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

/* Returns the last id that this user namespace has, according to @map of /proc/self; 0 if that is
 * unknown. */
static __u32 last_id(const char *map)
{
	_cleanup_(close_file) FILE *file = fopen(map, "re");
	__u32 inside, n, last = 0;

	while (file && fscanf(file, "%u %*u %u", &inside, &n) == 2)
		if (n && inside + n - 1 > last)
			last = inside + n - 1;
	return last;
}

/* Returns @wanted, or the last id of the user namespace if that is less. */
static __u32 id_within(const char *map, __u32 wanted)
{
	__u32 last = last_id(map);

	return last && last < wanted ? last : wanted;
}

/*
 * Chooses the user of the confined process. A parser or a server gets a user that no other process has, not
 * even another parser, since processes of one user may signal each other. A client becomes the
 * user who called sudo, whose network and cache it uses, or else nobody.
 */
static void choose_user(enum confinement_kind kind, uid_t *uid, gid_t *gid)
{
	*uid = *gid = CONFINED_NOBODY;
	if (kind == CONFINE_PARSER || kind == CONFINE_SERVER)
		*uid = *gid = CONFINED_FIRST + getpid();
	else
		sudo_user__find(uid, gid);
	if (*gid == (gid_t)-1)
		*gid = CONFINED_NOBODY;
	*uid = id_within("/proc/self/uid_map", *uid);
	*gid = id_within("/proc/self/gid_map", *gid);
}

/*
 * Changes the user, if possible. In a user namespace there may be no other user, and a container's
 * root may not be allowed to become one: then the process keeps its user, without capabilities,
 * and the filter of system calls refuses the rest.
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

/* Empties the capability bounding set. That needs CAP_SETPCAP, so it comes before the capabilities
 * are dropped. If it fails, the process still cannot regain any, since no_new_privs is set. */
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

/* Changes to @uid and @gid and drops all capabilities. With @uid 0 the user stays. */
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

/* Has the kernel kill this process when its parent ends, and makes it undumpable. To be called
 * after the change of the user, which resets both. */
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

	/* Ctrl-C is meant for the parent, which ends this process. */
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
