// SPDX-License-Identifier: GPL-3.0-or-later
#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "message.h"

static const int quiet_signals[] = { SIGINT, SIGQUIT, SIGPIPE };

#define N_QUIET_SIGNALS (ARRAY_SIZE(quiet_signals))

/* A process has one standard output. */
static struct {
	pid_t pid; /* 0: no pager runs */
	int terminal_fd;
	struct sigaction actions[N_QUIET_SIGNALS]; /* the original ones */
} running;

/* Whether $PATH has the program that @command begins with. */
static bool is_there(const char *command)
{
	const char *path = getenv("PATH");
	size_t len = strcspn(command, " \t");
	char name[4096];

	/* Only the shell can tell what a command with special characters runs. */
	if (strpbrk(command, "$`'\"\\;|&<>(){}=*?~"))
		return true;
	if (memchr(command, '/', len)) {
		snprintf(name, sizeof(name), "%.*s", (int)len, command);
		return !access(name, X_OK);
	}
	while (path && *path) {
		size_t n = strcspn(path, ":");

		snprintf(name, sizeof(name), "%.*s/%.*s", (int)n, n ? path : ".", (int)len,
			 command);
		if (!access(name, X_OK))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

static const char *choose_pager(void)
{
	const char *term = getenv("TERM"), *pager = getenv("PAGER");

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb"))
		return NULL;
	if (!pager)
		return is_there("less") ? "less" : NULL;
	if (!*pager || !strcmp(pager, "cat"))
		return NULL;
	if (is_there(pager))
		return pager;
	message__print("cannot run the pager '%s' that PAGER names; printing without", pager);
	return NULL;
}

static void run_pager(const char *pager, const int pipe_fds[2])
{
	for (size_t i = 0; i < N_QUIET_SIGNALS; i++)
		sigaction(quiet_signals[i], &running.actions[i], NULL);
	if (dup2(pipe_fds[0], STDIN_FILENO) < 0)
		_exit(126);
	/* As git: quit if the output fits one screen, pass colours on, do not clear the screen. */
	setenv("LESS", "FRX", false);
	setenv("LV", "-c", false);
	execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
	_exit(127);
}

void pager__begin(void)
{
	const char *pager = choose_pager();
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	int pipe_fds[2], terminal_fd;

	if (running.pid || !pager || pipe2(pipe_fds, O_CLOEXEC))
		return;
	fflush(stdout);
	terminal_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	/* The terminal's signals are left to the pager. */
	for (size_t i = 0; i < N_QUIET_SIGNALS; i++)
		sigaction(quiet_signals[i], &ignore, &running.actions[i]);
	running.pid = terminal_fd < 0 ? -1 : fork();
	if (!running.pid)
		run_pager(pager, pipe_fds);
	if (running.pid > 0 && dup2(pipe_fds[1], STDOUT_FILENO) >= 0) {
		running.terminal_fd = terminal_fd;
	} else {
		for (size_t i = 0; i < N_QUIET_SIGNALS; i++)
			sigaction(quiet_signals[i], &running.actions[i], NULL);
		if (terminal_fd >= 0)
			close(terminal_fd);
		running.pid = 0;
	}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

int pager__end(int err)
{
	if (!running.pid)
		return err;
	/* The pager has quit: discard the buffered rest. */
	__fpurge(stdout);
	clearerr(stdout);
	dup2(running.terminal_fd, STDOUT_FILENO);
	close(running.terminal_fd);
	while (waitpid(running.pid, NULL, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < N_QUIET_SIGNALS; i++)
		sigaction(quiet_signals[i], &running.actions[i], NULL);
	running.pid = 0;
	return err == -EPIPE ? 0 : err;
}

int pager__terminal_fd(void)
{
	return running.pid ? running.terminal_fd : -1;
}
