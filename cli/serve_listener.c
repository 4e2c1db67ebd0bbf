// SPDX-License-Identifier: GPL-3.0-or-later
/* Opens the socket at which `allocprof serve` listens. */
#include "serve_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cleanup.h"
#include "error.h"
#include "file.h"
#include "user.h"

/* Fewer bytes than this are no secret that takes long to guess. */
#define LEAST_TOKEN 16

/* An address of either family. */
union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t size_of(const union address *address)
{
	return address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

/* Reads a numeric address. */
static bool read_address(const char *host, unsigned short port, union address *address)
{
	*address = (union address){ .v4 = { .sin_family = AF_INET, .sin_port = htons(port) } };
	if (inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1",
		      &address->v4.sin_addr) == 1)
		return true;
	*address = (union address){ .v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) } };
	return inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1;
}

static int listen_at(const struct sockaddr *address, socklen_t len, int *out)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, address, len) || listen(fd, SOMAXCONN)) {
		err = -errno;
		close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

/* Removes the socket at @path, unless that is another one by now. */
static void remove_socket(const char *path, dev_t device, ino_t inode)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISSOCK(st.st_mode) && st.st_dev == device && st.st_ino == inode)
		unlink(path);
}

/* Removes the socket of a server that has been killed. */
static void remove_stale(const struct sockaddr_un *address)
{
	_cleanup_(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	/* Where one listens, and has more to take than it can, this is EAGAIN. */
	if (fd >= 0 && !lstat(address->sun_path, &st) && S_ISSOCK(st.st_mode) &&
	    connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
	    errno == ECONNREFUSED)
		remove_socket(address->sun_path, st.st_dev, st.st_ino);
}

/* Notes which socket bind(2) has made, and gives it to the user who called sudo: by a descriptor, since others may
 * have put something else at the path. */
static int take_socket(struct serve_listener *listener, const char *path)
{
	_cleanup_(close_fd) int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	gid_t gid;
	uid_t uid;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return -ESTALE;
	listener->path = strdup(path);
	if (!listener->path)
		return -ENOMEM;
	listener->device = st.st_dev;
	listener->inode = st.st_ino;
	return sudo_user__find(&uid, &gid) && fchownat(fd, "", uid, gid, AT_EMPTY_PATH) ? -errno
											: 0;
}

static int open_unix(struct serve_listener *listener, const char *path, struct error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t mask;
	int err;

	if (!*path || strlen(path) >= sizeof(address.sun_path))
		return error__set(error, -EINVAL,
				  "--listen unix:PATH takes a path of 1 to %zu bytes",
				  sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, path);
	remove_stale(&address);
	mask = umask(0177);
	err = listen_at((const struct sockaddr *)&address, sizeof(address), &listener->fd);
	umask(mask);
	if (err)
		return error__set(error, err, "cannot listen at %s: %s", path, strerror(-err));
	err = take_socket(listener, path);
	if (err)
		return error__set(error, err, "cannot give %s to its user: %s", path,
				  strerror(-err));
	snprintf(listener->name, sizeof(listener->name), "unix:%s", path);
	return 0;
}

/* Writes the address at which the socket listens, whose port may have been 0. */
static int name_address(struct serve_listener *listener)
{
	union address address;
	socklen_t len = sizeof(address);
	char host[INET6_ADDRSTRLEN];
	bool is_v4;

	if (getsockname(listener->fd, &address.any, &len))
		return -errno;
	is_v4 = address.any.sa_family == AF_INET;
	if (!inet_ntop(address.any.sa_family,
		       is_v4 ? (void *)&address.v4.sin_addr : (void *)&address.v6.sin6_addr, host,
		       sizeof(host)))
		return -errno;
	snprintf(listener->name, sizeof(listener->name), is_v4 ? "http://%s:%d" : "http://[%s]:%d",
		 host, ntohs(is_v4 ? address.v4.sin_port : address.v6.sin6_port));
	return 0;
}

/* Splits "ADDRESS:PORT", where ADDRESS may be in brackets. */
static bool split(char *text, char **host, char **port)
{
	char *colon = strrchr(text, ':');
	size_t len;

	if (!colon || colon == text || !colon[1])
		return false;
	*colon = '\0';
	*port = colon + 1;
	*host = text;
	len = strlen(text);
	if (text[0] == '[' && text[len - 1] == ']') {
		text[len - 1] = '\0';
		*host = text + 1;
	} else if (strchr(text, ':')) {
		return false;
	}
	return (*port)[strspn(*port, "0123456789")] == '\0' && strlen(*port) <= 5 &&
	       atoi(*port) <= 65535;
}

int serve_listener__open(struct serve_listener *listener, const char *address, bool has_token,
			 struct error *error)
{
	_cleanup_(free_ptr) char *copy = strdup(address);
	union address parsed;
	char *host, *port;
	int err;

	*listener = (struct serve_listener){ .fd = -1 };
	if (!copy)
		return error__set(error, -ENOMEM, "out of memory");
	if (!strncmp(address, "unix:", 5))
		return open_unix(listener, address + 5, error);
	if (!split(copy, &host, &port) || !read_address(host, atoi(port), &parsed))
		return error__set(error, -EINVAL,
				  "'%s' is no address; --listen takes such as 127.0.0.1:9100, "
				  "[::1]:9100 or unix:PATH",
				  address);
	if (!has_token && !is_loopback(&parsed))
		return error__set(
			error, -EINVAL,
			"%s can be reached from elsewhere; give --token-file, or listen at "
			"127.0.0.1 or unix:PATH",
			address);
	err = listen_at(&parsed.any, size_of(&parsed), &listener->fd);
	if (!err)
		err = name_address(listener);
	return err ? error__set(error, err, "cannot listen at %s: %s", address, strerror(-err)) : 0;
}

void serve_listener__close(struct serve_listener *listener)
{
	close_fd(&listener->fd);
	if (listener->path)
		remove_socket(listener->path, listener->device, listener->inode);
	free(listener->path);
	*listener = (struct serve_listener){ .fd = -1 };
}

int serve_token__read(const char *path, char *token, size_t size, struct error *error)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	_cleanup_(free_ptr) char *text = NULL;
	size_t len;
	int err = fd < 0 ? fd : text_file__read(fd, size + 1, &text, &len);

	if (err)
		return error__set(error, err, "cannot read the token in %s: %s", path,
				  strerror(-err));
	len = strcspn(text, "\r\n");
	text[len] = '\0';
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			len = 0;
	if (len < LEAST_TOKEN || len >= size)
		return error__set(
			error, -EINVAL,
			"the first line of %s is no token: it takes %d to %zu letters, digits or "
			"signs, without blanks",
			path, LEAST_TOKEN, size - 1);
	memcpy(token, text, len + 1);
	return 0;
}
