// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * ends_unnoticed: prints the process id of a child that has ended and that nobody waits for, and then
 * the id of a thread that is not the leader, one a line; exits at the end of its input, status 0.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "raw.h"

static void *work(void *unused)
{
	say_number("", (unsigned long)syscall(SYS_gettid), "\n");
	for (;;)
		pause();
	return NULL;
}

int main(void)
{
	pthread_t thread;
	siginfo_t info;
	pid_t pid = fork();
	char line[8];

	if (!pid)
		_exit(0);
	/* Ended, and left as it is. */
	if (pid < 0 || waitid(P_PID, pid, &info, WEXITED | WNOWAIT))
		return 1;
	say_number("", pid, "\n");
	if (pthread_create(&thread, NULL, work, NULL))
		return 1;
	read_line(line, sizeof(line));
	_exit(0);
}
