// SPDX-License-Identifier: GPL-3.0-or-later
/* Starts a process that answers requests or pushes profiles, and exchanges messages with it. */
#include "http_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "confinement.h"
#include "curl_library.h"
#include "error.h"
#include "http_channel.h"
#include "http_library.h"
#include "http_server.h"
#include "otlp_pusher.h"
#include "wrappers.h"

/* What the process may use beyond what it inherits: copies of large recordings, and what is made of them. */
#define MEMORY_BYTES (4ULL << 30)
/* Messages that are taken before the caller goes on, which has more to do: a process that has been taken over
 * may send any number. */
#define MOST_MESSAGES 16

struct libraries {
	struct http_library http; /* of one that answers */
	struct curl_library curl; /* of one that pushes */
};

static void run(const struct http_options *options, const struct libraries *libraries,
		const struct wrappers *wrappers, int channel, pid_t parent)
{
	/* libcurl looks names up in a thread. */
	const struct confinement confinement = {
		.kind = options->otlp ? CONFINE_CLIENT : CONFINE_SERVER,
		.name = options->otlp ? "allocprof-otlp" : "allocprof-http",
		.parent = parent,
		.fd = channel,
		.memory_bytes = MEMORY_BYTES,
	};

	if (confinement__enter(&confinement) || confinement__close(confinement.kind))
		_exit(1);
	_exit(options->otlp ? otlp_pusher__run(&libraries->curl, wrappers, options->otlp,
					       options->is_restart, CONFINED_FD)
			    : http_server__run(&libraries->http, wrappers, CONFINED_FD));
}

/* Tells one that answers where it listens, and whom it answers. */
static int introduce(const struct http_options *options, int channel)
{
	struct http_message first = {
		.kind = HTTP_LISTEN,
		.most_series = options->most_series,
		.is_restart = options->is_restart,
	};

	if (options->otlp)
		return 0;
	snprintf(first.text, sizeof(first.text), "%s", options->token);
	return http_channel__send(channel, &first, options->listener);
}

static int start(const struct http_options *options, const struct libraries *libraries,
		 const struct wrappers *wrappers, struct http_process *out)
{
	pid_t parent = getpid(), pid;
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	fflush(NULL);
	pid = fork();
	if (!pid)
		run(options, libraries, wrappers, pair[1], parent);
	err = pid < 0 ? -errno : 0;
	close_fd(&pair[1]);
	if (!err)
		err = introduce(options, pair[0]);
	if (err) {
		close_fd(&pair[0]);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		return err;
	}
	*out = (struct http_process){ .pid = pid, .channel = pair[0] };
	return 0;
}

int http_process__start(const struct http_options *options, struct http_process *out,
			struct error *error)
{
	struct libraries libraries;
	struct wrappers *wrappers;
	int err = options->otlp ? curl_library__load(&libraries.curl, error)
				: http_library__load(&libraries.http, error);

	if (!err)
		err = wrappers__load(NULL, &wrappers, error);
	if (err)
		return err;
	err = start(options, &libraries, wrappers, out);
	wrappers__free(wrappers);
	return err ? error__set(error, err, "cannot start the process that %s: %s",
				options->otlp ? "pushes" : "answers", strerror(-err))
		   : 0;
}

int http_process__take(struct http_process *process)
{
	struct http_message message;
	bool wants = false;
	int got = 1;

	for (int i = 0; i < MOST_MESSAGES && got > 0; i++) {
		got = http_channel__receive(process->channel, &message, NULL);
		wants |= got > 0 && message.kind == HTTP_WANTS_COPY;
	}
	return got < 0 ? -EPIPE : wants;
}

int http_process__take_push(struct http_process *process, struct otlp_push *push, char *text,
			    size_t size)
{
	struct http_message message;
	int got = http_channel__receive(process->channel, &message, NULL);

	if (got <= 0)
		return got ? -EPIPE : 0;
	if (message.kind != HTTP_PUSHED)
		return 0;
	*push = message.push;
	snprintf(text, size, "%s", message.text);
	return 1;
}

int http_process__give(struct http_process *process, int fd, const struct http_costs *costs)
{
	const struct http_message message = { .kind = HTTP_COPY, .costs = *costs };

	return http_channel__send(process->channel, &message, fd);
}

static int say(struct http_process *process, enum http_message_kind kind, const char *text)
{
	struct http_message message = { .kind = kind };

	snprintf(message.text, sizeof(message.text), "%s", text);
	return http_channel__send(process->channel, &message, -1);
}

int http_process__refuse(struct http_process *process, const char *why)
{
	return say(process, HTTP_NO_COPY, why);
}

int http_process__set_token(struct http_process *process, const char *token)
{
	return say(process, HTTP_TOKEN, token);
}

int http_process__end(struct http_process *process)
{
	int status = 0;

	if (process->pid <= 0)
		return 0;
	/* One that has begun to end keeps its status. */
	kill(process->pid, SIGKILL);
	while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
		;
	close_fd(&process->channel);
	*process = (struct http_process){ .channel = -1 };
	return status;
}
