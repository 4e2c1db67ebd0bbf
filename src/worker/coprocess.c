// SPDX-License-Identifier: GPL-3.0-or-later
#include "coprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "confinement.h"
#include "error.h"

#define READ_SIZE 65536

struct exchange {
	const struct coprocess *coprocess;
	pid_t child;
	int to, from; /* -1: closed */
	const char *input;
	size_t input_size;
	char *output;
	size_t output_size, output_room;
	__u64 deadline_ms;
};

static void close_once(int *fd)
{
	close_fd(fd);
	*fd = -1;
}

static void __attribute__((noreturn))
run_child(const struct coprocess *coprocess, int input, int output)
{
	/*
	 * Give the child a process group of its own: Ctrl-C does not reach the group, and one
	 * kill() ends all of it.
	 */
	setpgid(0, 0);
	confinement__reset_signals();
	/* Neither descriptor is 0 or 1 (above_standard()). */
	if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0)
		_exit(127);
	if (confinement__drop_privileges())
		_exit(127);
	execl("/bin/sh", "sh", "-c", coprocess->command, (char *)NULL);
	_exit(127);
}

/* Moves @fd above 2, where dup2() in the child does not close it. */
static int above_standard(int *fd)
{
	int moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (moved < 0)
		return -errno;
	close(*fd);
	*fd = moved;
	return 0;
}

static int make_pipe(int ends[2])
{
	int err;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	err = above_standard(&ends[0]);
	return err ? err : above_standard(&ends[1]);
}

static int start(struct exchange *exchange)
{
	_cleanup_(close_fd) int child_in = -1;
	_cleanup_(close_fd) int child_out = -1;
	int pipes[2][2] = { { -1, -1 }, { -1, -1 } };
	int err = make_pipe(pipes[0]);

	if (!err)
		err = make_pipe(pipes[1]);
	child_in = pipes[0][0];
	exchange->to = pipes[0][1];
	exchange->from = pipes[1][0];
	child_out = pipes[1][1];
	if (err)
		return err;
	exchange->child = fork();
	if (exchange->child < 0)
		return -errno;
	if (!exchange->child) {
		close(exchange->to);
		close(exchange->from);
		run_child(exchange->coprocess, child_in, child_out);
	}
	/* Parent and child both do this, because either may run first. */
	setpgid(exchange->child, exchange->child);
	if (fcntl(exchange->to, F_SETFL, O_NONBLOCK) || fcntl(exchange->from, F_SETFL, O_NONBLOCK))
		return -errno;
	return 0;
}

static void write_some(struct exchange *exchange)
{
	ssize_t written = write(exchange->to, exchange->input, exchange->input_size);

	if (written >= 0) {
		exchange->input += written;
		exchange->input_size -= written;
	} else if (errno != EAGAIN && errno != EINTR) {
		/* The child may have read as much as it needs; its output shows whether it has. */
		exchange->input_size = 0;
	}
	if (!exchange->input_size)
		close_once(&exchange->to);
}

static int read_some(struct exchange *exchange)
{
	ssize_t len;

	if (array__reserve(&exchange->output, &exchange->output_room,
			   exchange->output_size + READ_SIZE + 1, 1))
		return -ENOMEM;
	len = read(exchange->from, exchange->output + exchange->output_size, READ_SIZE);
	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!len) {
		close_once(&exchange->from);
		return 0;
	}
	exchange->output_size += len;
	return exchange->output_size > exchange->coprocess->max_output ? -EMSGSIZE : 0;
}

static int talk(struct exchange *exchange)
{
	while (exchange->from >= 0) {
		struct pollfd polled[] = { { .fd = exchange->from, .events = POLLIN },
					   { .fd = exchange->to, .events = POLLOUT } };
		__u64 now = clock__now_ns() / NS_PER_MS;
		int err = 0;

		if (now >= exchange->deadline_ms)
			return -ETIMEDOUT;
		if (poll(polled, 2, exchange->deadline_ms - now) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (polled[1].revents)
			write_some(exchange);
		if (polled[0].revents)
			err = read_some(exchange);
		if (err)
			return err;
	}
	return 0;
}

/* Waits until the child has ended, and does not reap it, so that its pid is not reused. Returns 0,
 * or -ETIMEDOUT if the child closed its output but runs on. */
static int await(const struct exchange *exchange)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (;;) {
		siginfo_t info = { 0 };

		/* With SIGCHLD ignored, the kernel reaps the child and its status is lost. */
		if (waitid(P_PID, exchange->child, &info, WEXITED | WNOHANG | WNOWAIT)
			    ? errno == ECHILD
			    : info.si_pid)
			return 0;
		if (clock__now_ns() / NS_PER_MS >= exchange->deadline_ms)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

static int explain(const struct exchange *exchange, int err, int status, struct error *error)
{
	const char *command = exchange->coprocess->command;

	switch (err) {
	case 0:
		break;
	case -ETIMEDOUT:
		return error__set(error, err, "`%.200s` did not end within %u ms", command,
				  exchange->coprocess->timeout_ms);
	case -EMSGSIZE:
		return error__set(error, err, "`%.200s` printed more than %zu bytes", command,
				  exchange->coprocess->max_output);
	default:
		return error__set(error, err, "cannot run `%.200s`: %s", command, strerror(-err));
	}
	if (WIFSIGNALED(status))
		return error__set(error, -ECHILD, "`%.200s` was killed by signal %d", command,
				  WTERMSIG(status));
	if (WEXITSTATUS(status))
		return error__set(error, -ECHILD, "`%.200s` ended with status %d", command,
				  WEXITSTATUS(status));
	return 0;
}

/* Runs the exchange with SIGPIPE blocked: a child that closes its input early would raise it. */
static int run(struct exchange *exchange, struct error *error)
{
	int status = 0, err = start(exchange);

	if (!err)
		err = talk(exchange);
	close_once(&exchange->to);
	if (!err)
		err = await(exchange);
	if (exchange->child > 0) {
		/* Kill the whole group, with the child's own children. */
		kill(-exchange->child, SIGKILL);
		waitpid(exchange->child, &status, 0);
	}
	close_once(&exchange->from);
	return explain(exchange, err, status, error);
}

int coprocess__run(const struct coprocess *coprocess, const char *input, size_t input_size,
		   char **output, size_t *output_size, struct error *error)
{
	struct exchange exchange = {
		.coprocess = coprocess,
		.child = -1,
		.to = -1,
		.from = -1,
		.input = input,
		.input_size = input_size,
		.deadline_ms = clock__now_ns() / NS_PER_MS + coprocess->timeout_ms,
	};
	const struct timespec now = { 0 };
	sigset_t sigpipe, before, pending;
	bool was_pending;
	int err;

	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE);
	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
	err = run(&exchange, error);
	if (!was_pending)
		sigtimedwait(&sigpipe, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (exchange.output)
		exchange.output[exchange.output_size] = '\0';
	*output = exchange.output;
	*output_size = exchange.output_size;
	return err;
}
