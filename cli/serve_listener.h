/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The address of `allocprof serve`, and the token that its clients have to know. */
#ifndef ALLOCPROF_SERVE_LISTENER_H
#define ALLOCPROF_SERVE_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct error;

struct serve_listener {
	int fd;	      /* -1: there is none */
	char *path;   /* of a UNIX socket, which close removes; or NULL */
	dev_t device; /* of the socket at the path */
	ino_t inode;
	char name[320]; /* the address for people, "http://127.0.0.1:9100" */
};

/* Listens at @address, "ADDRESS:PORT" or "unix:PATH". Without @has_token only at addresses that nobody from
 * elsewhere reaches. Returns 0, or a negative errno with @error set. */
int serve_listener__open(struct serve_listener *listener, const char *address, bool has_token,
			 struct error *error);
void serve_listener__close(struct serve_listener *listener);

/* Reads the first line of the file. Returns 0, or a negative errno with @error set. */
int serve_token__read(const char *path, char *token, size_t size, struct error *error);

#endif
