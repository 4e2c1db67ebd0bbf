// SPDX-License-Identifier: GPL-3.0-or-later
/* The system calls that a confined process may make, by a seccomp filter. */
#include "confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "worker_internal.h"

/* What computing, libelf, libdw and the C library need of a kernel. */
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

/* worker_trap__set() answers them: by the parent, or by a refusal. */
static const int trapped[] = {
	SCMP_SYS(open),	      SCMP_SYS(openat),	   SCMP_SYS(openat2),	 SCMP_SYS(readlink),
	SCMP_SYS(readlinkat), SCMP_SYS(stat),	   SCMP_SYS(lstat),	 SCMP_SYS(statx),
	SCMP_SYS(access),     SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(getcwd),
	SCMP_SYS(ioctl),      SCMP_SYS(fstat),
};

/* A client may make all calls but these, since its libraries resolve names, start threads and write files. */
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
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
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

static int add_all(scmp_filter_ctx filter, __u32 action, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int err = seccomp_rule_add(filter, action, calls[i], 0);

		if (err)
			return err;
	}
	return 0;
}

/* Calls that depend on their arguments. */
static int add_conditional(scmp_filter_ctx filter)
{
	const struct {
		int call;
		struct scmp_arg_cmp condition;
	} rules[] = {
		{ SCMP_SYS(sendmsg), SCMP_A0(SCMP_CMP_EQ, CONFINED_FD) },
		{ SCMP_SYS(recvmsg), SCMP_A0(SCMP_CMP_EQ, CONFINED_FD) },
		/* No code but that which is there. */
		{ SCMP_SYS(mprotect), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) },
		{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_DUPFD_CLOEXEC) },
		{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_DUPFD) },
		{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFD) },
		{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFL) },
		/* Limits are read, not set. */
		{ SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0) },
		/* abort() */
		{ SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, getpid()) },
	};
	/* No new code here, either, and no shared memory, which RLIMIT_DATA does not count. */
	const struct scmp_arg_cmp private_data[] = {
		SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
		SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_TYPE, MAP_PRIVATE),
	};
	int err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap),
					 ARRAY_SIZE(private_data), private_data);

	for (size_t i = 0; i < ARRAY_SIZE(rules) && !err; i++)
		err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, 1,
					     &rules[i].condition);
	/* The trap's own way to ask the kernel. */
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

static int add_client(scmp_filter_ctx filter)
{
	/* Its own threads may be signalled, as abort() does. */
	const struct scmp_arg_cmp others = SCMP_A0(SCMP_CMP_NE, getpid());
	int err = add_all(filter, SCMP_ACT_ERRNO(EPERM), refused_to_clients,
			  ARRAY_SIZE(refused_to_clients));

	if (!err)
		err = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1,
					     &others);
	return err;
}

/* Why seccomp_init() has failed, which does not say so. */
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
	err = is_parser ? add_parser(filter) : add_client(filter);
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
		/* SIGSYS would leave a core file. */
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		call();
		_exit(0);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || WIFEXITED(status);
}
