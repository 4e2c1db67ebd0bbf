// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * confined HOW: allocates after it has forbidden itself system calls. 3000 stacks before, and as many others after.
 *
 *   strict: all but read, write and exit, by prctl(2)
 *   kill: all that malloc does not need, by prctl(2)
 *   trap: the same, by seccomp(2); a handler prints which were made
 *   errno: the same; they fail
 *   wrong: a filter that does not exist, which fails
 *   exec: what loading a library needs beside others is forbidden, and a program is executed
 *   child: a child confines itself, and its parent does not
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "raw.h"

static __attribute__((noinline)) void use(size_t size)
{
	void *volatile block = malloc(size);

	free(block);
}

static __attribute__((noinline)) void left(int bits, int depth);

static __attribute__((noinline)) void right(int bits, int depth)
{
	if (depth)
		(bits & 1 ? left : right)(bits >> 1, depth - 1);
	else
		use(20);
	__asm__ volatile("");
}

static __attribute__((noinline)) void left(int bits, int depth)
{
	if (depth)
		(bits & 1 ? left : right)(bits >> 1, depth - 1);
	else
		use(30);
	__asm__ volatile("");
}

static __attribute__((noinline)) void use_stacks(int depth)
{
	for (int i = 0; i < 3000; i++)
		left(i, depth);
}

static void report(int signal, siginfo_t *info, void *context)
{
	say_number("forbidden call ", info->si_syscall, "\n");
	_exit(1);
}

static void confine(unsigned int otherwise, int by_seccomp)
{
	static const int permitted[] = { SYS_read,	 SYS_write, SYS_exit,
					 SYS_exit_group, SYS_brk,   SYS_rt_sigreturn };
	struct sock_filter filter[16] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	const int n = sizeof(permitted) / sizeof(permitted[0]);
	struct sock_fprog program = { 4 + n + 2, filter };

	for (int i = 0; i < n; i++)
		filter[4 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							     permitted[i], n - i, 0);
	filter[4 + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	filter[4 + n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    (by_seccomp ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
			: prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)))
		_exit(2);
}

/* Only what a program needs to start is left, and little else. */
static void forbid_moving(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		_exit(2);
}

static int confine_as(const char *how)
{
	const struct sigaction action = { .sa_sigaction = report, .sa_flags = SA_SIGINFO };
	char *argv[] = { (char *)"echo", (char *)"executed", NULL };

	if (!strcmp(how, "strict"))
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
	if (!strcmp(how, "wrong"))
		return !(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
			 prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void *)8, 0, 0) == -1 &&
			 errno == EFAULT &&
			 syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (void *)8) == -1 &&
			 errno == EFAULT);
	if (!strcmp(how, "exec")) {
		forbid_moving();
		execv("/bin/echo", argv);
		return 3;
	}
	sigaction(SIGSYS, &action, NULL);
	confine(!strcmp(how, "trap")	? SECCOMP_RET_TRAP
		: !strcmp(how, "errno") ? SECCOMP_RET_ERRNO | EPERM
					: SECCOMP_RET_KILL_PROCESS,
		!strcmp(how, "trap"));
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	/* Nothing that malloc needs later. */
	free(malloc(100000));
	use_stacks(12);
	if (argc < 2)
		return 64;
	if (!strcmp(argv[1], "child")) {
		pid_t pid = fork();

		if (!pid)
			return confine_as("kill") || (use_stacks(13), 0);
		waitpid(pid, &status, 0);
		say_number("child ", status, "\n");
	} else if (confine_as(argv[1])) {
		return 2;
	}
	use_stacks(13);
	say("allocated\n");
	/* exit_group(2), which exit(3) makes, is forbidden, too. */
	if (!strcmp(argv[1], "strict"))
		syscall(SYS_exit, 7);
	return 7;
}
