/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The directory of running recordings, with a UNIX socket PID.sock for each. */
#ifndef ALLOCPROF_CONTROL_DIRECTORY_H
#define ALLOCPROF_CONTROL_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

struct error;

/* Maximum length of a request: a word and a path. */
#define CONTROL_MAX_REQUEST 4352
/* Maximum length of an answer: "0 " (done) or "1 " (failed), and one line. */
#define CONTROL_MAX_REPLY 8192

/* /run/allocprof for root, a directory in XDG_RUNTIME_DIR for others; to be freed by the caller.
 * NULL if there is none. */
char *control_directory__path(void);

/* Opens the directory, and with @make creates it. -ENOENT; -EPERM with *@error set if others could
 * write to it. */
int control_directory__open(bool make, struct error *error);

/* The address of @name in it, of any path length. */
void control_directory__address(int directory, const char *name, struct sockaddr_un *address);

/* Time limit to connect to a recording and to learn what it records. */
#define CONTROL_PATIENCE_SECONDS 5

/* "PID.sock" */
#define CONTROL_NAME_SIZE 32
void control_directory__name(pid_t pid, char name[CONTROL_NAME_SIZE]);
/* The pid in a socket's name, 0 if the name has another form. */
pid_t control_directory__pid(const char *name);

/* A socket connected to @name. -ECONNREFUSED: the socket is stale; -ENOENT, … */
int control_directory__connect(int directory, const char *name);

#endif
