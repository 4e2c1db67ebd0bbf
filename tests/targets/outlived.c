// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * "outlived exec|exit": three times, one after the other, a process takes a block of 1,000,000 bytes and exits while a
 * process that shares its memory still runs. That one then executes this program, or exits.
 *
 *   malloc: 3 calls, 3000000 bytes
 *
 * Never more than one of these blocks is in use. Exit status 0.
 */
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "raw.h"

DEFINE_SINK;

static char stack[64 << 10] __attribute__((aligned(16)));

static pid_t owner;
static bool executes;

static int outlive(void *unused)
{
	char *args[] = { (char *)"outlived", (char *)"executed", NULL };

	while (getppid() == owner)
		sched_yield();
	if (executes)
		execv("/proc/self/exe", args);
	return executes;
}

static void own(void)
{
	owner = getpid();
	sink = malloc(1000000);
	_exit(!sink || clone(outlive, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL) < 0);
}

int main(int argc, char **argv)
{
	int status, failed = 0;

	if (argc != 2 || !strcmp(argv[1], "executed"))
		return argc != 2;
	executes = !strcmp(argv[1], "exec");
	/* The one that outlives is waited for here. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		return 1;
	for (int i = 0; i < 3; i++) {
		if (!fork())
			own();
		for (int n = 0; n < 2; n++)
			failed |= wait(&status) < 0 || status;
	}
	return failed;
}
