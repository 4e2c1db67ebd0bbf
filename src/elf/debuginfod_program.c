// SPDX-License-Identifier: GPL-3.0-or-later
/* Fetches debug files by the program of elfutils' client, debuginfod-find(1). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "debuginfod.h"
#include "debuginfod_client.h"

#define PROGRAM "debuginfod-find"
/* The exit status of a child that could not execute the program, as in sh(1). */
#define NOT_FOUND 127
/* What the program writes when it has failed, before the text of an errno. */
#define FAILED "Server query failed: "

struct debuginfod_client {
	const struct debuginfod_reporter *reporter;
};

const char *const debuginfod__client = PROGRAM;

const enum confinement_kind debuginfod_client__confinement = CONFINE_CLIENT_PROGRAM;

struct debuginfod_client *debuginfod_client__open(const struct debuginfod_reporter *reporter)
{
	struct debuginfod_client *client = calloc(1, sizeof(*client));

	if (client)
		client->reporter = reporter;
	return client;
}

/* Returns whether the variable is one of those that the program and its library look at. */
static bool is_needed(const char *variable)
{
	static const char *const needed[] = {
		"PATH=",      "HOME=",	     "XDG_CACHE_HOME=", "DEBUGINFOD_",
		"SSL_CERT_",  "http_proxy=", "https_proxy=",	"HTTPS_PROXY=",
		"all_proxy=", "ALL_PROXY=",  "no_proxy=",	"NO_PROXY="
	};

	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (!strncmp(variable, needed[i], strlen(needed[i])))
			return true;
	return false;
}

/* Leaves only these variables: others of the same user may read those of a program that it executes,
 * and this process's may have secrets of root's. */
static void reduce_environment(void)
{
	char **to = environ;

	for (char **from = environ; *from; from++)
		if (is_needed(*from))
			*to++ = *from;
	*to = NULL;
}

/* Runs in the child. All its other descriptors are closed when it is executed. */
static void execute(const char *build_id, int path, int messages, pid_t parent)
	__attribute__((noreturn));
static void execute(const char *build_id, int path, int messages, pid_t parent)
{
	reduce_environment();
	/* The texts of errors are looked for in what it writes. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent ||
	    setenv("LC_ALL", "C", 1) || dup2(path, STDOUT_FILENO) < 0 ||
	    dup2(messages, STDERR_FILENO) < 0)
		_exit(1);
	execlp(PROGRAM, PROGRAM, "-v", "debuginfo", build_id, NULL);
	_exit(NOT_FOUND);
}

static int errno_of(const char *text)
{
	for (int number = 1; number < 4096; number++) {
		const char *name = strerrorname_np(number);

		if (name && !strcmp(strerrordesc_np(number), text))
			return -number;
	}
	return -EIO;
}

/* Reads what the program writes beside the path, until it has ended. Returns the error that it tells, or -EIO. */
static int follow(const struct debuginfod_client *client, FILE *messages)
{
	const struct debuginfod_reporter *reporter = client->reporter;
	char line[1024];
	int err = -EIO;
	long done, total;

	while (fgets(line, sizeof(line), messages)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, FAILED, strlen(FAILED)))
			err = errno_of(line + strlen(FAILED));
		else if (sscanf(line, "Progress %ld / %ld", &done, &total) == 2 &&
			 reporter->report(reporter->context, done, total))
			_exit(1);
	}
	return err;
}

/* Opens the file whose path the program has written, with a line end. */
static int open_found(int fd)
{
	char path[PATH_MAX + 1];
	ssize_t len = read(fd, path, sizeof(path) - 1);

	if (len <= 1 || path[len - 1] != '\n')
		return -EIO;
	path[len - 1] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int debuginfod_client__find(struct debuginfod_client *client, const char *build_id)
{
	int path[2] = { -1, -1 }, messages[2] = { -1, -1 }, status, err;
	_cleanup_(close_file) FILE *file = NULL;
	_cleanup_(close_fd) int found = -1;
	pid_t self = getpid(), pid;

	if (pipe2(path, O_CLOEXEC))
		return -errno;
	found = path[0];
	if (pipe2(messages, O_CLOEXEC)) {
		err = -errno;
		close(path[1]);
		return err;
	}
	pid = fork();
	if (!pid)
		execute(build_id, path[1], messages[1], self);
	err = pid < 0 ? -errno : 0;
	close(path[1]);
	close(messages[1]);
	file = fdopen(messages[0], "r");
	if (!file)
		_exit(1);
	if (err)
		return err;
	/* A path is shorter than what a pipe holds, so nothing waits for it to be read. */
	err = follow(client, file);
	if (waitpid(pid, &status, 0) != pid ||
	    (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND))
		_exit(1);
	return WIFEXITED(status) && !WEXITSTATUS(status) ? open_found(found) : err;
}
