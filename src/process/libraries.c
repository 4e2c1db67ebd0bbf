// SPDX-License-Identifier: GPL-3.0-or-later
#include "libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "elf_file.h"
#include "path.h"

extern char **environ;

/* Another interpreter may pass --list to the program, and run it. */
static bool has_list_option(const char *interpreter)
{
	const char *name = path__name(interpreter);

	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-musl-", 8);
}

/* Parses "\tlibc.so.6 => /lib/libc.so.6 (0x7f…)" or "\t/lib64/ld-linux-x86-64.so.2 (0x7f…)"; a name
 * without a slash, such as linux-vdso.so.1, is no path. */
static char *path_in(char *line)
{
	char *path = strstr(line, "=> "), *end;

	path = path ? path + 3 : line + strspn(line, " \t");
	end = strstr(path, " (0x");
	if (!end)
		return NULL;
	*end = '\0';
	return strchr(path, '/') ? path : NULL;
}

/* @arguments follow the option. */
static char **list_command(const char *interpreter, char *const arguments[])
{
	size_t n = 0;
	char **argv;

	while (arguments[n])
		n++;
	argv = calloc(n + 3, sizeof(*argv));
	if (!argv)
		return NULL;
	argv[0] = (char *)interpreter;
	argv[1] = (char *)"--list";
	memcpy(argv + 2, arguments, n * sizeof(*argv));
	return argv;
}

static int start(const char *interpreter, char *const arguments[], int out, pid_t *pid)
{
	_cleanup_(free_ptr) char **argv = list_command(interpreter, arguments);
	posix_spawn_file_actions_t actions;
	int err;

	if (!argv)
		return -ENOMEM;
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

static int list(const char *interpreter, char *const arguments[],
		void (*fn)(const char *path, void *context), void *context)
{
	_cleanup_(free_ptr) char *line = NULL;
	_cleanup_(close_file) FILE *lines = NULL;
	size_t capacity = 0;
	int pipes[2], err;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	err = start(interpreter, arguments, pipes[1], &pid);
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

int libraries__list(const char *interpreter, const char *program,
		    void (*fn)(const char *path, void *context), void *context)
{
	char *arguments[] = { (char *)program, NULL };

	if (!has_list_option(interpreter))
		return -ENOTSUP;
	return list(interpreter, arguments, fn, context);
}

/*
 * Whether @path is a program for a dynamic linker: not the library of an option such as --preload.
 */
static bool is_program(const char *path)
{
	_cleanup_(close_fd) int fd = -1;
	struct elf_file *elf;
	struct stat st;
	bool is;

	/* Opening other kinds of file may block. */
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || elf_file__open(fd, path, &elf, NULL))
		return false;
	is = elf_file__is_program(elf);
	elf_file__free(elf);
	return is;
}

int libraries__list_started(const char *linker, char *const argv[],
			    void (*fn)(const char *path, void *context), void *context)
{
	_cleanup_(free_ptr) char *real = realpath(linker, NULL);
	size_t program = 1;

	if (!real)
		return -errno;
	if (!has_list_option(real))
		return -ENOTSUP;
	while (argv[program] && !is_program(argv[program]))
		program++;
	if (!argv[program])
		return -ENOENT;
	fn(argv[program], context);
	return list(linker, argv + 1, fn, context);
}
