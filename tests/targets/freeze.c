// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * freeze PROG [ARGS...]: stops its parent by SIGSTOP, runs PROG while that stands still, and lets it
 * go on. Where the parent is allocprof, nobody reads what the kernel side sends meanwhile. Allocates
 * nothing above start-up. Prints nothing; exit status is PROG's (128 + signal where it died by one).
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include "raw.h"

DEFINE_SINK;

/* The letter behind the name in parentheses. */
static char state_of(pid_t pid)
{
	char path[32] = "/proc/", text[256], digits[16], *p = digits + sizeof(digits);
	ssize_t n;
	int fd;

	*--p = '\0';
	for (; pid; pid /= 10)
		*--p = '0' + pid % 10;
	strcat(path, p);
	strcat(path, "/stat");
	fd = open(path, O_RDONLY);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		_exit(101);
	text[n] = '\0';
	p = strrchr(text, ')');
	return p && p[1] ? p[2] : '?';
}

int main(int argc, char **argv)
{
	pid_t parent = getppid(), child;
	int status;

	if (argc < 2 || kill(parent, SIGSTOP))
		return 2;
	while (state_of(parent) != 'T')
		;
	child = fork();
	if (!child) {
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		status = 1 << 8;
	kill(parent, SIGCONT);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
