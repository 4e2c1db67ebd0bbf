// SPDX-License-Identifier: GPL-3.0-or-later
#include "libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"

extern char **environ;

/* Others may take --list for an option of the program, and run it. */
static bool has_list_option(const char *interpreter)
{
	const char *name = strrchr(interpreter, '/');

	name = name ? name + 1 : interpreter;
	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-musl-", 8);
}

/* "\tlibc.so.6 => /lib/libc.so.6 (0x7f…)" or "\t/lib64/ld-linux-x86-64.so.2 (0x7f…)" */
static char *path_in(char *line)
{
	char *path = strstr(line, "=> "), *end;

	path = path ? path + 3 : line + strspn(line, " \t");
	end = strstr(path, " (0x");
	if (path[0] != '/' || !end)
		return NULL;
	*end = '\0';
	return path;
}

static int start(const char *interpreter, const char *program, int out, pid_t *pid)
{
	char *argv[] = { (char *)interpreter, (char *)"--list", (char *)program, NULL };
	posix_spawn_file_actions_t actions;
	int err;

	err = posix_spawn_file_actions_init(&actions);
	if (err)
		return -err;
	err = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
						       O_WRONLY, 0);
	if (!err)
		err = posix_spawn(pid, interpreter, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

int libraries__list(const char *interpreter, const char *program,
		    void (*fn)(const char *path, void *context), void *context)
{
	_cleanup_(free_ptr) char *line = NULL;
	_cleanup_(close_file) FILE *lines = NULL;
	size_t capacity = 0;
	int pipes[2], err;
	pid_t pid;

	if (!has_list_option(interpreter))
		return -ENOTSUP;
	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	err = start(interpreter, program, pipes[1], &pid);
	close(pipes[1]);
	if (err) {
		close(pipes[0]);
		return err;
	}
	lines = fdopen(pipes[0], "r");
	if (!lines)
		close(pipes[0]);
	while (lines && getline(&line, &capacity, lines) > 0) {
		const char *path = path_in(line);

		if (path)
			fn(path, context);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return lines ? 0 : -ENOMEM;
}
