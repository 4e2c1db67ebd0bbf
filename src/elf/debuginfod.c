// SPDX-License-Identifier: GPL-3.0-or-later
#include "debuginfod.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/types.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "confinement.h"
#include "debuginfod_client.h"
#include "file.h"
#include "packet.h"
#include "user.h"
#include "wire.h"
#include "worker.h"

/* Opens the cache of debug files that elfutils' client uses, as the user to whom it belongs. */

/* elfutils' client takes build ids of up to this length. */
#define MAX_REQUEST 256

/* Numbers of bytes. Until a server has sent something, @done may be a number of steps. */
struct debuginfod_progress {
	long done, total;
};

static void debuginfod__serve(int socket, pid_t parent) __attribute__((noreturn));

/* The environment variable by which elfutils' client finds its cache. */
#define CACHE_VARIABLE "DEBUGINFOD_CACHE_PATH"
/* The subdirectory that belongs to the user nobody. */
#define OWN_NAME "allocprof-fetched"

/*
 * Returns whether the cache is root's, and root did not come by sudo. Then the client runs as the
 * user nobody, and gets a directory of its own below the one that elfutils' other clients use.
 */
static bool debuginfod_cache__is_roots(void)
{
	uid_t uid;
	gid_t gid;

	return !geteuid() && !sudo_user__find(&uid, &gid);
}

/* Finds the cache as elfutils' client does, except for a directory that early versions of it used.
 * Fails with -ENAMETOOLONG; -EINVAL if the path is not absolute. */
static int find_path(char path[PATH_MAX])
{
	const char *chosen = getenv(CACHE_VARIABLE), *base = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int size;

	if (chosen && *chosen)
		size = snprintf(path, PATH_MAX, "%s", chosen);
	else if (base && *base)
		size = snprintf(path, PATH_MAX, "%s/debuginfod_client", base);
	else if (home && *home)
		size = snprintf(path, PATH_MAX, "%s/.cache/debuginfod_client", home);
	else
		size = snprintf(path, PATH_MAX, "/var/cache/debuginfod_client");
	if (size >= PATH_MAX)
		return -ENAMETOOLONG;
	return *path == '/' ? 0 : -EINVAL;
}

/* Opens the cache if each part of its path is a directory of root's and none is a link, which
 * others might have made. @make: makes missing parts. Returns a descriptor or a negative errno. */
static int open_cache(bool make)
{
	char path[PATH_MAX], *rest = NULL;
	int fd, err = find_path(path);

	if (err)
		return err;
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	for (char *name = strtok_r(path, "/", &rest); fd >= 0 && name;
	     name = strtok_r(NULL, "/", &rest)) {
		int parent = fd;

		if (make)
			mkdirat(parent, name, 0700);
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		err = fd < 0 ? -errno : 0;
		close(parent);
		if (fd >= 0 && !directory__is_safe(fd, 0, true)) {
			close(fd);
			return -EPERM;
		}
	}
	return fd < 0 ? err : fd;
}

/* Opens the directory of the user nobody. Only a directory that this function has made is given to
 * that user. */
static int open_own(int cache)
{
	bool is_new = !mkdirat(cache, OWN_NAME, 0700);
	int fd = openat(cache, OWN_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	/* The group, which is root's, may write, too: where root cannot become another user, it
	 * enters the directory by the group. */
	if (is_new && !fchown(fd, CONFINED_NOBODY, 0) && !fchmod(fd, 0770))
		return fd;
	if (!fstat(fd, &st) && st.st_uid == CONFINED_NOBODY && !st.st_gid && !(st.st_mode & 07))
		return fd;
	close(fd);
	return -EPERM;
}

/* Runs in the child, before it becomes that user: makes the directory, and has the client use it.
 * If it cannot be made, or users other than root may write to a part of its path, the client gets
 * no directory. */
static void debuginfod_cache__enter(void)
{
	_cleanup_(close_fd) int cache = open_cache(true), own = -1;
	struct stat st;

	/* If others may write to a part of the path, the client gets none, since they could find
	 * out whose directory it is. */
	if (cache < 0 || fstat(cache, &st) || st.st_mode & 022)
		return;
	own = open_own(cache);
	if (own < 0 || fchdir(own))
		return;
	/* A relative path, since the user nobody may not be able to reach the directory by its
	 * path. */
	setenv(CACHE_VARIABLE, ".", 1);
}

/* Runs in the parent: opens a debug file that another client of root's has kept. Returns a
 * descriptor or a negative errno. */
static int debuginfod_cache__open(const char *build_id)
{
	_cleanup_(close_fd) int cache = -1, directory = -1, path_fd = -1;
	int fd;

	if (build_id[strspn(build_id, "0123456789abcdef")])
		return -ENOENT;
	cache = open_cache(false);
	if (cache < 0)
		return -ENOENT;
	directory = openat(cache, build_id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0 || !directory__is_safe(directory, 0, true))
		return -ENOENT;
	path_fd = openat(directory, "debuginfo", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	fd = path_fd < 0 ? -ENOENT : regular_file__reopen(path_fd);
	return fd < 0 ? fd : worker__only_elf(fd);
}

/* The child process that fetches debug files by elfutils' client. */

/* Minimum time between two messages. */
#define REPORT_MS 50

/* Sends the parent how far a download is, not too often. Its context is the time of the last message. */
static int report_progress(void *context, long done, long total)
{
	const struct debuginfod_progress progress = { .done = done, .total = total };
	struct packet packet = { .kind = PACKET_NOTE };
	__u64 *reported_ms = context;

	if (clock__now_ns() / NS_PER_MS - *reported_ms < REPORT_MS)
		return 0;
	*reported_ms = clock__now_ns() / NS_PER_MS;
	memcpy(packet.bytes, &progress, sizeof(progress));
	return packet__send(CONFINED_FD, &packet, sizeof(progress), NULL, 0) != 0;
}

static void answer(struct debuginfod_client *client, const char *build_id)
{
	struct packet packet = { .kind = PACKET_GIVE };
	int fd = debuginfod_client__find(client, build_id);

	packet.status = fd < 0 ? fd : 0;
	if (packet__send(CONFINED_FD, &packet, 0, &fd, fd >= 0))
		_exit(1);
	close_fd(&fd);
}

/* Sets the client's cache to a directory to which the user that this process becomes can write. */
static void find_cache(void)
{
	const struct passwd *entry;
	uid_t uid;
	gid_t gid;

	if (debuginfod_cache__is_roots()) {
		debuginfod_cache__enter();
		return;
	}
	if (!sudo_user__find(&uid, &gid))
		return;
	entry = getpwuid(uid);
	unsetenv("XDG_CACHE_HOME");
	if (entry)
		setenv("HOME", entry->pw_dir, 1);
}

/* Runs in the forked child. */
static void debuginfod__serve(int fd, pid_t parent)
{
	const struct confinement confinement = {
		.kind = debuginfod_client__confinement,
		.name = "allocprof-fetch",
		.parent = parent,
		.fd = fd,
	};
	__u64 reported_ms = 0;
	const struct debuginfod_reporter reporter = {
		.report = report_progress,
		.context = &reported_ms,
	};
	struct debuginfod_client *client;
	char build_id[MAX_REQUEST];
	ssize_t len;

	find_cache();
	if (confinement__enter(&confinement))
		_exit(1);
	client = debuginfod_client__open(&reporter);
	if (!client || confinement__close(debuginfod_client__confinement))
		_exit(1);
	while ((len = recv(CONFINED_FD, build_id, sizeof(build_id) - 1, 0)) > 0) {
		build_id[len] = '\0';
		answer(client, build_id);
	}
	_exit(0);
}

/* If fewer bytes than this arrive within the timeout, that does not count as progress. If none
 * arrive, the client's progress callback counts its own steps, one a second. */
#define LEAST_BYTES 4096
#define POLL_MS	    100

struct debuginfod {
	struct debuginfod_options options;
	pid_t child;
	int fd;	 /* -1: the child has ended */
	int err; /* reason of its end, which all later calls return */
	__u64 end_ms;
};

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
		debuginfod__serve(ends[1], parent);
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

static void note(struct fetching *fetching, const struct debuginfod_progress *progress)
{
	/* The client started over with another server. */
	if (progress->done < fetching->counted)
		fetching->counted = progress->done;
	if (progress->done - fetching->counted >= LEAST_BYTES) {
		fetching->counted = progress->done;
		fetching->progressed_ms = clock__now_ns() / NS_PER_MS;
	}
	/* Without a total size, done may not be in bytes. */
	fetching->total = progress->total > 0 ? progress->total : 0;
	fetching->done = fetching->total ? progress->done : 0;
}

/* Receives a packet. Returns 1 with one, 0 if none has come, or a negative errno. */
static int receive(const struct debuginfod *debuginfod, struct packet *packet,
		   struct received *received)
{
	struct pollfd polled = { .fd = debuginfod->fd, .events = POLLIN };
	int got;

	if (poll(&polled, 1, POLL_MS) <= 0)
		return 0;
	got = packet__receive(debuginfod->fd, packet, received, MSG_DONTWAIT);
	if (got == -EAGAIN)
		return 0;
	return got ? got : -ECHILD;
}

/* Handles a packet. The client talks to servers, so a packet may contain anything. Returns 1 with
 * the result's descriptor or error in *@result, 0, or a negative errno. */
static int handle(const struct packet *packet, struct received *received, struct fetching *fetching,
		  int *result)
{
	struct debuginfod_progress progress;

	if (packet->kind == PACKET_NOTE && received->size == sizeof(progress) && !received->n_fds) {
		memcpy(&progress, packet->bytes, sizeof(progress));
		if (progress.done < 0)
			return -ECHILD;
		note(fetching, &progress);
		return 0;
	}
	if (packet->kind == PACKET_GIVE && packet->status < 0 && packet->status >= -MAX_ERRNO &&
	    !received->n_fds)
		*result = packet->status;
	else if (packet->kind == PACKET_GIVE && !packet->status && received->n_fds == 1)
		*result = received->fds[0];
	else
		return -ECHILD;
	return 1;
}

/* Waits for a result. Returns 0 with a descriptor or an error of the client in *@result, or a
 * negative errno if the child has to be killed. */
static int await(struct debuginfod *debuginfod, int *result)
{
	const struct debuginfod_options *options = &debuginfod->options;
	struct fetching fetching = { .progressed_ms = clock__now_ns() / NS_PER_MS };
	struct packet packet;

	for (;;) {
		struct received received = { 0 };
		int got = receive(debuginfod, &packet, &received);
		__u64 now = clock__now_ns() / NS_PER_MS;

		if (got > 0)
			got = handle(&packet, &received, &fetching, result);
		if (got == 1)
			return 0;
		received__close(&received);
		if (got < 0)
			return -ECHILD;
		if (now > debuginfod->end_ms)
			return -ETIME;
		if (now > fetching.progressed_ms + options->timeout_ms)
			return -ETIMEDOUT;
		if (options->progress(options->context, fetching.done, fetching.total))
			return -ECANCELED;
	}
}

int debuginfod__fetch(struct debuginfod *debuginfod, const char *build_id)
{
	size_t size = strlen(build_id);
	int result = debuginfod_cache__is_roots() ? debuginfod_cache__open(build_id) : -ENOENT;
	int err;

	if (result >= 0)
		return result;
	if (debuginfod->fd < 0)
		return debuginfod->err;
	if (!size || size >= MAX_REQUEST)
		return -EINVAL;
	err = send(debuginfod->fd, build_id, size, MSG_NOSIGNAL) < 0 ? -ECHILD
								     : await(debuginfod, &result);
	if (err)
		end_child(debuginfod, err);
	if (err || result < 0)
		return err ? err : result;
	return worker__only_elf(result);
}

bool debuginfod__is_ended(const struct debuginfod *debuginfod)
{
	return debuginfod->fd < 0;
}
