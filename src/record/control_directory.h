/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where recordings that run can be found: a directory with a UNIX socket for each, PID.sock. */
#ifndef ALLOCPROF_CONTROL_DIRECTORY_H
#define ALLOCPROF_CONTROL_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

struct error;

/* Bytes of a request at the most: a word and a path. */
#define CONTROL_MAX_REQUEST 4352
/* Of an answer: "0 " where it was done or "1 " where it was not, and a line. */
#define CONTROL_MAX_REPLY 8192

/* /run/allocprof for root, below XDG_RUNTIME_DIR for others; to be free()d. NULL where there is none. */
char *control_directory__path(void);

/* A descriptor of it, made first with @make. -ENOENT; -EPERM with a sentence where others could write
 * to it. */
int control_directory__open(bool make, struct error *error);

/* The address of @name in it, however long its path is. */
void control_directory__address(int directory, const char *name, struct sockaddr_un *address);

/* Who does not listen, or does not say what it is, within that time is not waited for. */
#define CONTROL_PATIENCE_SECONDS 5

/* "PID.sock" */
#define CONTROL_NAME_SIZE 32
void control_directory__name(pid_t pid, char name[CONTROL_NAME_SIZE]);
/* The process of a socket's name, 0 where it is none. */
pid_t control_directory__pid(const char *name);

/* A socket that is connected to @name. -ECONNREFUSED: nobody listens any more, -ENOENT, … */
int control_directory__connect(int directory, const char *name);

#endif
