// SPDX-License-Identifier: GPL-3.0-or-later
#include "debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/types.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "confinement.h"
#include "sudo_user.h"

/*
 * Loaded at run time, as libdw does, because it is optional. The types are those of debuginfod.h.
 */
#define LIBRARY "libdebuginfod.so.1"

/* Fewer bytes within the timeout do not count as progress. If nothing arrives, the client's
 * progress callback counts its own steps, one a second. */
#define LEAST_BYTES 4096
#define POLL_MS	    100
/* Minimum time between two messages of the child. */
#define REPORT_MS 50
/* elfutils' client takes build ids of up to this length. */
#define MAX_REQUEST 256

typedef struct debuginfod_client debuginfod_client;
typedef int (*progress_fn)(debuginfod_client *client, long done, long total);

struct debuginfod {
	struct debuginfod_options options;
	pid_t child;
	int fd;	 /* -1: the child has ended */
	int err; /* the reason, returned by all later calls */
	__u64 end_ms;
};

/* A reply has several of these; the last is the result. */
struct message {
	bool is_result;
	int err;	     /* of a result: 0 or a negative errno */
	char path[PATH_MAX]; /* of a result without error */
	long done, total;    /* of progress messages */
};

/* The functions up to serve() run in the child. */

struct server {
	int fd;
	debuginfod_client *client;
	int (*find)(debuginfod_client *client, const unsigned char *build_id, int size,
		    char **path);
	__u64 reported_ms;
};

/* ISO C cannot convert the result of dlsym() to a function pointer. */
static bool find_function(void *library, const char *name, void *function)
{
	*(void **)function = dlsym(library, name);
	return *(void **)function;
}

static bool say(const struct server *server, const struct message *message)
{
	return send(server->fd, message, sizeof(*message), MSG_NOSIGNAL) == sizeof(*message);
}

/* Progress callback of the client, which passes our server as its user data. */
static int report_progress(debuginfod_client *client, long done, long total)
{
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
	void *(*get_user_data)(debuginfod_client * client);
	struct message message = { .done = done, .total = total };
	struct server *server = NULL;

	if (library && find_function(library, "debuginfod_get_user_data", &get_user_data))
		server = get_user_data(client);
	if (library)
		dlclose(library);
	if (!server)
		return 1;
	if (clock__now_ns() / NS_PER_MS - server->reported_ms < REPORT_MS)
		return 0;
	server->reported_ms = clock__now_ns() / NS_PER_MS;
	return !say(server, &message);
}

static bool open_client(struct server *server)
{
	void (*set_progress)(debuginfod_client * client, progress_fn fn);
	void (*set_user_data)(debuginfod_client * client, void *data);
	debuginfod_client *(*begin)(void);
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NODELETE);

	if (!library || !find_function(library, "debuginfod_begin", &begin) ||
	    !find_function(library, "debuginfod_find_debuginfo", &server->find) ||
	    !find_function(library, "debuginfod_set_progressfn", &set_progress) ||
	    !find_function(library, "debuginfod_set_user_data", &set_user_data))
		return false;
	server->client = begin();
	if (!server->client)
		return false;
	set_user_data(server->client, server);
	set_progress(server->client, report_progress);
	return true;
}

static void answer(struct server *server, const char *build_id)
{
	_cleanup_(free_ptr) char *path = NULL;
	struct message message = { .is_result = true };
	/* Size 0: the id is a hex string. */
	int fd = server->find(server->client, (const unsigned char *)build_id, 0, &path);

	if (fd < 0 || !path)
		message.err = fd < 0 ? fd : -ENOMEM;
	else if (strlen(path) >= sizeof(message.path))
		message.err = -ENAMETOOLONG;
	else
		strcpy(message.path, path);
	if (fd >= 0)
		close(fd);
	if (!say(server, &message))
		_exit(1);
}

/* What is fetched is kept below the home of the user whom this process will have, not of root. */
static void find_home(void)
{
	const struct passwd *entry;
	uid_t uid;
	gid_t gid;

	if (!sudo_user__find(&uid, &gid))
		return;
	entry = getpwuid(uid);
	unsetenv("XDG_CACHE_HOME");
	if (entry)
		setenv("HOME", entry->pw_dir, 1);
}

static void __attribute__((noreturn)) serve(int fd, pid_t parent)
{
	const struct confinement confinement = {
		.kind = CONFINE_CLIENT,
		.name = "allocprof-fetch",
		.parent = parent,
		.fd = fd,
	};
	struct server server = { .fd = CONFINED_FD };
	char build_id[MAX_REQUEST];
	ssize_t len;

	find_home();
	if (confinement__enter(&confinement) || !open_client(&server) ||
	    confinement__close(CONFINE_CLIENT))
		_exit(1);
	while ((len = recv(server.fd, build_id, sizeof(build_id) - 1, 0)) > 0) {
		build_id[len] = '\0';
		answer(&server, build_id);
	}
	_exit(0);
}

/* The functions from here on run in our process. */

static void end_child(struct debuginfod *debuginfod, int err)
{
	close_fd(&debuginfod->fd);
	debuginfod->fd = -1;
	debuginfod->err = err;
	kill(debuginfod->child, SIGKILL);
	waitpid(debuginfod->child, NULL, 0);
}

static int start_child(struct debuginfod *debuginfod)
{
	pid_t parent = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	debuginfod->child = fork();
	if (!debuginfod->child)
		serve(ends[1], parent);
	close(ends[1]);
	debuginfod->fd = ends[0];
	if (debuginfod->child > 0)
		return 0;
	close_fd(&debuginfod->fd);
	return -EAGAIN;
}

bool debuginfod__has_servers(void)
{
	const char *servers = getenv("DEBUGINFOD_URLS");

	return servers && *servers;
}

struct debuginfod *debuginfod__new(const struct debuginfod_options *options)
{
	struct debuginfod *debuginfod;

	if (!debuginfod__has_servers())
		return NULL;
	debuginfod = calloc(1, sizeof(*debuginfod));
	if (!debuginfod)
		return NULL;
	debuginfod->options = *options;
	debuginfod->end_ms = clock__now_ns() / NS_PER_MS + options->total_ms;
	if (start_child(debuginfod)) {
		free(debuginfod);
		return NULL;
	}
	return debuginfod;
}

void debuginfod__free(struct debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	if (debuginfod->fd >= 0)
		end_child(debuginfod, 0);
	free(debuginfod);
}

/* Progress of the current file. */
struct fetching {
	long done, total;    /* bytes; 0: unknown */
	long counted;	     /* value of done at the last progress */
	__u64 progressed_ms; /* time of the last progress */
};

static void note(struct fetching *fetching, const struct message *message)
{
	/* The client started over with another server. */
	if (message->done < fetching->counted)
		fetching->counted = message->done;
	if (message->done - fetching->counted >= LEAST_BYTES) {
		fetching->counted = message->done;
		fetching->progressed_ms = clock__now_ns() / NS_PER_MS;
	}
	/* Without a total size, done may not be in bytes. */
	fetching->total = message->total > 0 ? message->total : 0;
	fetching->done = fetching->total ? message->done : 0;
}

/* 1 with a message, 0 if none has arrived, or a negative errno. */
static int receive(const struct debuginfod *debuginfod, struct message *message)
{
	struct pollfd polled = { .fd = debuginfod->fd, .events = POLLIN };
	ssize_t len;

	if (poll(&polled, 1, POLL_MS) <= 0)
		return 0;
	len = recv(debuginfod->fd, message, sizeof(*message), MSG_DONTWAIT);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return len == sizeof(*message) ? 1 : -ECHILD;
}

/* 0 with the result in @message, or a negative errno if the child is to be killed. */
static int await(struct debuginfod *debuginfod, struct message *message)
{
	const struct debuginfod_options *options = &debuginfod->options;
	struct fetching fetching = { .progressed_ms = clock__now_ns() / NS_PER_MS };

	for (;;) {
		int got = receive(debuginfod, message);
		__u64 now = clock__now_ns() / NS_PER_MS;

		if (got < 0)
			return got;
		if (got && message->is_result)
			return 0;
		if (got)
			note(&fetching, message);
		if (now > debuginfod->end_ms)
			return -ETIME;
		if (now > fetching.progressed_ms + options->timeout_ms)
			return -ETIMEDOUT;
		if (options->progress(options->context, fetching.done, fetching.total))
			return -ECANCELED;
	}
}

int debuginfod__fetch(struct debuginfod *debuginfod, const char *build_id, char **path)
{
	struct message message;
	size_t size = strlen(build_id);
	int err;

	if (debuginfod->fd < 0)
		return debuginfod->err;
	if (!size || size >= MAX_REQUEST)
		return -EINVAL;
	err = send(debuginfod->fd, build_id, size, MSG_NOSIGNAL) < 0 ? -ECHILD
								     : await(debuginfod, &message);
	if (err) {
		end_child(debuginfod, err);
		return err;
	}
	/* The child answers to servers: what it says may be anything. */
	if (message.err)
		return message.err < 0 ? message.err : -EPROTO;
	*path = strndup(message.path, sizeof(message.path));
	return *path ? 0 : -ENOMEM;
}

bool debuginfod__is_ended(const struct debuginfod *debuginfod)
{
	return debuginfod->fd < 0;
}
