// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof ctl`: finds the directory of running recordings, and has the socket of each and both
 * of its sides. */
#include "control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "epoll.h"
#include "error.h"

/* Maximum number of clients; a new one replaces the oldest that has sent no request. */
#define MAX_CLIENTS 8

struct client {
	__u64 number; /* 0: free */
	int fd;
	bool has_asked;
	bool stays; /* it may ask again once it has been answered */
};

struct control {
	control_handle_fn handle;
	void *context;
	int epoll, directory, listener;
	char name[CONTROL_NAME_SIZE]; /* "" if the socket has no name */
	struct client clients[MAX_CLIENTS];
	__u64 last_number;
	bool is_left; /* the client that stays has closed its end */
};

static int listen_at(int directory, const char *name, struct error *error)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return error__set(error, -errno, "cannot make a socket: %s", strerror(errno));
	control_directory__address(directory, name, &address);
	unlinkat(directory, name, 0);
	if (!bind(fd, (const struct sockaddr *)&address, sizeof(address)) &&
	    !listen(fd, MAX_CLIENTS))
		return fd;
	err = error__set(error, -errno, "cannot listen at a socket: %s", strerror(errno));
	unlinkat(directory, name, 0);
	close(fd);
	return err;
}

/* Returns whether a recording in another PID namespace that shares the directory uses the name. */
static bool is_taken(int directory, const char *name)
{
	int fd = control_directory__connect(directory, name);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Returns the pid in a socket's name, 0 if the name has another form. */
static pid_t control_directory__pid(const char *name)
{
	char *end;
	long pid;

	if (*name < '1' || *name > '9')
		return 0;
	pid = strtol(name, &end, 10);
	return !strcmp(end, ".sock") && pid <= INT_MAX ? (pid_t)pid : 0;
}

/* Removes sockets of recordings that were killed. */
static void sweep(int directory)
{
	int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	while (entries && (entry = readdir(entries))) {
		pid_t pid = control_directory__pid(entry->d_name);
		_cleanup_(close_fd) int fd = -1;

		if (!pid || !kill(pid, 0) || errno != ESRCH)
			continue;
		/* The process may live in another PID namespace that shares the directory. */
		fd = control_directory__connect(directory, entry->d_name);
		if (fd == -ECONNREFUSED)
			unlinkat(directory, entry->d_name, 0);
	}
	if (entries)
		closedir(entries);
	else
		close_fd(&copy);
}

/* Names the socket only when it listens, since others remove sockets that refuse connections. */
static int listen_as_recording(struct control *control, struct error *error)
{
	char name[CONTROL_NAME_SIZE], hidden[CONTROL_NAME_SIZE + 1];
	int fd;

	sweep(control->directory);
	control_directory__name(getpid(), name);
	if (is_taken(control->directory, name))
		return error__set(error, -EEXIST, "another recording has the socket %s", name);
	snprintf(hidden, sizeof(hidden), ".%s", name);
	fd = listen_at(control->directory, hidden, error);
	if (fd < 0)
		return fd;
	control->listener = fd;
	if (renameat(control->directory, hidden, control->directory, name)) {
		int err = -errno;

		unlinkat(control->directory, hidden, 0);
		return error__set(error, err, "cannot name a socket: %s", strerror(-err));
	}
	strcpy(control->name, name);
	return 0;
}

int control__watch(struct control *control, int fd)
{
	return epoll__watch(control->epoll, fd);
}

int control__open(control_handle_fn handle, void *context, struct control **out,
		  struct error *error)
{
	struct control *control = calloc(1, sizeof(*control));
	int err;

	if (!control)
		return -ENOMEM;
	control->handle = handle;
	control->context = context;
	control->listener = control->epoll = -1;
	err = control->directory = control_directory__open(true, error);
	if (err >= 0)
		err = listen_as_recording(control, error);
	if (!err) {
		control->epoll = epoll_create1(EPOLL_CLOEXEC);
		err = control->epoll < 0 ? -errno : control__watch(control, control->listener);
	}
	if (err) {
		control__close(control);
		return err;
	}
	*out = control;
	return 0;
}

int control__open_for(int fd, control_handle_fn handle, void *context, struct control **out)
{
	struct control *control = calloc(1, sizeof(*control));
	struct client *client;
	int err;

	if (!control)
		return -ENOMEM;
	control->handle = handle;
	control->context = context;
	control->listener = control->directory = -1;
	control->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = control->epoll < 0 ? -errno : 0;
	client = &control->clients[0];
	client->fd = err ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (!err && client->fd < 0)
		err = -errno;
	if (!err) {
		client->number = ++control->last_number;
		client->stays = true;
		err = control__watch(control, client->fd);
	}
	if (err) {
		control__close(control);
		return err;
	}
	*out = control;
	return 0;
}

bool control__is_left(const struct control *control)
{
	return control->is_left;
}

int control__fd(const struct control *control)
{
	return control->epoll;
}

static void drop(struct client *client)
{
	close(client->fd);
	*client = (struct client){ 0 };
}

/* Returns a free slot, or the slot of the oldest client without a request; NULL if all have sent
 * one. */
static struct client *find_room(struct control *control)
{
	struct client *oldest = NULL;

	for (int i = 0; i < MAX_CLIENTS; i++) {
		struct client *client = &control->clients[i];

		if (!client->number)
			return client;
		if (!client->has_asked && (!oldest || client->number < oldest->number))
			oldest = client;
	}
	if (oldest)
		drop(oldest);
	return oldest;
}

static bool may_ask(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
	       (!peer.uid || peer.uid == geteuid());
}

static void accept_clients(struct control *control)
{
	int fd;

	for (int i = 0; i < MAX_CLIENTS; i++) {
		struct client *client;

		fd = accept4(control->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		client = may_ask(fd) ? find_room(control) : NULL;
		if (!client) {
			close(fd);
			continue;
		}
		*client = (struct client){ .number = ++control->last_number, .fd = fd };
		if (control__watch(control, fd))
			drop(client);
	}
}

static void read_request(struct control *control, struct client *client)
{
	char request[CONTROL_MAX_REQUEST + 1];
	ssize_t len = recv(client->fd, request, CONTROL_MAX_REQUEST, MSG_TRUNC | MSG_DONTWAIT);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* One request at a time: a client that sends more, or closes the connection, is dropped. */
	if (len <= 0 || client->has_asked) {
		control->is_left |= client->stays;
		drop(client);
		return;
	}
	client->has_asked = true;
	if (len > CONTROL_MAX_REQUEST) {
		control__reply(control, client->number, false, "a request of %zd bytes is too long",
			       len);
		return;
	}
	request[len] = '\0';
	/* A request is text: reject one with a NUL byte, instead of ignoring the bytes after it. */
	if (strlen(request) != (size_t)len)
		request[0] = '\0';
	control->handle(control->context, client->number, request);
}

void control__attend(struct control *control)
{
	struct epoll_event ready[MAX_CLIENTS + 2];
	int n = epoll_wait(control->epoll, ready, MAX_CLIENTS + 2, 0);

	for (int i = 0; i < n; i++) {
		int fd = ready[i].data.fd;

		if (fd == control->listener)
			continue;
		for (int j = 0; j < MAX_CLIENTS; j++)
			if (control->clients[j].number && control->clients[j].fd == fd)
				read_request(control, &control->clients[j]);
	}
	/* This comes last, since accept4() may reuse the descriptor of a client that was just
	 * dropped. */
	if (n > 0 && control->listener >= 0)
		accept_clients(control);
}

void control__reply(struct control *control, __u64 number, bool is_done, const char *format, ...)
{
	char text[CONTROL_MAX_REPLY];
	va_list args;
	int len;

	text[0] = is_done ? '0' : '1';
	text[1] = ' ';
	va_start(args, format);
	len = vsnprintf(text + 2, sizeof(text) - 2, format, args);
	va_end(args);
	if (len < 0)
		return;
	if ((size_t)len > sizeof(text) - 3)
		len = sizeof(text) - 3;
	for (int i = 0; i < MAX_CLIENTS; i++) {
		struct client *client = &control->clients[i];

		if (!number || client->number != number)
			continue;
		/* The socket's buffer is empty, so this only fails if the client has closed it. */
		send(client->fd, text, 2 + len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (client->stays)
			client->has_asked = false;
		else
			drop(client);
	}
}

void control__hide(struct control *control)
{
	if (control->name[0])
		unlinkat(control->directory, control->name, 0);
	control->name[0] = '\0';
	if (control->listener >= 0)
		close(control->listener);
	control->listener = -1;
}

void control__close(struct control *control)
{
	if (!control)
		return;
	if (control->directory >= 0) {
		control__hide(control);
		close(control->directory);
	}
	for (int i = 0; i < MAX_CLIENTS; i++)
		if (control->clients[i].number)
			drop(&control->clients[i]);
	if (control->epoll >= 0)
		close(control->epoll);
	free(control);
}

/* Returns /run/allocprof for root, a directory in XDG_RUNTIME_DIR for others, which the caller
 * frees. NULL if there is none. */
static char *control_directory__path(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char *path;

	if (!geteuid())
		return strdup("/run/allocprof");
	if (!runtime || *runtime != '/' || asprintf(&path, "%s/allocprof", runtime) < 0)
		return NULL;
	return path;
}

int control_directory__open(bool make, struct error *error)
{
	_cleanup_(free_ptr) char *path = control_directory__path();
	struct stat st;
	int fd;

	if (!path)
		return error__set(error, -ENOENT,
				  "there is no directory for the sockets of recordings; set "
				  "XDG_RUNTIME_DIR");
	if (make && mkdir(path, 0700) && errno != EEXIST)
		return error__set(error, -errno, "cannot make %s: %s", path, strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error__set(error, -errno, "cannot open %s: %s", path, strerror(errno));
	if (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return fd;
	close(fd);
	return error__set(error, -EPERM,
			  "%s is not used: it is another user's, or open to others; remove it",
			  path);
}

void control_directory__address(int directory, const char *name, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s", directory,
		 name);
}

void control_directory__name(pid_t pid, char name[CONTROL_NAME_SIZE])
{
	snprintf(name, CONTROL_NAME_SIZE, "%d.sock", pid);
}

int control_directory__connect(int directory, const char *name)
{
	struct timeval patience = { .tv_sec = CONTROL_PATIENCE_SECONDS };
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	control_directory__address(directory, name, &address);
	if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int ask(int fd, const char *request, bool *is_done, char reply[CONTROL_MAX_REPLY])
{
	ssize_t len;

	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		return -errno;
	do
		len = recv(fd, reply, CONTROL_MAX_REPLY - 1, 0);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	if (len < 2)
		return -ECONNRESET;
	reply[len] = '\0';
	*is_done = reply[0] == '0';
	memmove(reply, reply + 2, len - 1);
	return 0;
}

int control_client__ask(pid_t pid, const char *request, bool *is_done,
			char reply[CONTROL_MAX_REPLY], struct error *error)
{
	_cleanup_(close_fd) int directory = control_directory__open(false, error);
	_cleanup_(close_fd) int fd = -1;
	char name[CONTROL_NAME_SIZE];
	int err;

	if (directory < 0)
		return directory;
	control_directory__name(pid, name);
	fd = control_directory__connect(directory, name);
	err = fd < 0 ? fd : ask(fd, request, is_done, reply);
	if (err)
		return error__set(error, err,
				  "the recording %d does not answer: %s; it may have just ended",
				  pid, strerror(-err));
	return 0;
}

/* Parses an answer of the form "process\tstate\tsince\tcommand". */
static bool read_who(char *text, struct control_recording *one)
{
	const char *process = strsep(&text, "\t");
	const char *state = strsep(&text, "\t"), *since = strsep(&text, "\t");

	if (!text)
		return false;
	one->target = atoi(process);
	snprintf(one->state, sizeof(one->state), "%s", state);
	snprintf(one->since, sizeof(one->since), "%s", since);
	snprintf(one->command, sizeof(one->command), "%s", text);
	return true;
}

/* Asks the recording at @name what it records. Returns false if it does not answer. Removes stale
 * sockets. */
static bool ask_who(int directory, const char *name, struct control_recording *one)
{
	_cleanup_(close_fd) int fd = control_directory__connect(directory, name);
	struct timeval patience = { .tv_sec = CONTROL_PATIENCE_SECONDS };
	char reply[CONTROL_MAX_REPLY];
	bool is_done;

	if (fd == -ECONNREFUSED)
		unlinkat(directory, name, 0);
	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return !ask(fd, "who", &is_done, reply) && is_done && read_who(reply, one);
}

static int add(struct control_recordings *recordings, const struct control_recording *one)
{
	if (array__reserve(&recordings->list, &recordings->room, recordings->n + 1,
			   sizeof(*recordings->list)))
		return -ENOMEM;
	recordings->list[recordings->n++] = *one;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return ((const struct control_recording *)a)->pid -
	       ((const struct control_recording *)b)->pid;
}

int control_recordings__find(struct control_recordings *recordings, struct error *error)
{
	int directory = control_directory__open(false, error);
	const struct dirent *entry;
	DIR *entries;
	int err = 0;

	if (directory == -ENOENT) {
		/* There has been no recording yet. */
		if (error)
			error->text[0] = '\0';
		return 0;
	}
	if (directory < 0)
		return directory;
	entries = fdopendir(directory);
	if (!entries) {
		close(directory);
		return -ENOMEM;
	}
	while (!err && (entry = readdir(entries))) {
		struct control_recording one = { .pid = control_directory__pid(entry->d_name) };

		if (one.pid && ask_who(directory, entry->d_name, &one))
			err = add(recordings, &one);
	}
	closedir(entries);
	if (recordings->n)
		qsort(recordings->list, recordings->n, sizeof(*recordings->list), compare);
	return err;
}

void control_recordings__release(struct control_recordings *recordings)
{
	free(recordings->list);
	*recordings = (struct control_recordings){ 0 };
}
