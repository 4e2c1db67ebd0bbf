/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `allocprof ctl`: sends requests to a running recording through a socket. */
#ifndef ALLOCPROF_CONTROL_H
#define ALLOCPROF_CONTROL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

struct control;
struct error;

/* The directory of running recordings, with a UNIX socket PID.sock for each. */

/* Maximum length of a request: a word and a path. */
#define CONTROL_MAX_REQUEST 4352
/* Maximum length of an answer: "0 " (done) or "1 " (failed), and one line. */
#define CONTROL_MAX_REPLY 8192

/* Opens the directory; @make: creates it if needed. Returns a descriptor; -ENOENT; -EPERM with
 * *@error set if others could write to it. */
int control_directory__open(bool make, struct error *error);

/* Makes the address of @name in the directory, whose path may be of any length. */
void control_directory__address(int directory, const char *name, struct sockaddr_un *address);

/* Time limit to connect to a recording and to learn what it records. */
#define CONTROL_PATIENCE_SECONDS 5

/* The name of a socket, "PID.sock". */
#define CONTROL_NAME_SIZE 32
void control_directory__name(pid_t pid, char name[CONTROL_NAME_SIZE]);

/* Returns a socket connected to @name. Fails with -ECONNREFUSED if the socket is stale; -ENOENT or
 * another errno. */
int control_directory__connect(int directory, const char *name);

/*
 * The server is a socket that takes requests to a running recording. No function blocks, and input
 * is limited, so that no client can delay the recording.
 */

/* Handles the text of a client's @request, which control__reply() must answer, now or later. */
typedef void (*control_handle_fn)(void *context, __u64 client, const char *request);

/* Listens as this process's recording. On error returns a negative errno, and *@error has the
 * reason. */
int control__open(control_handle_fn handle, void *context, struct control **out,
		  struct error *error);

/* Serves only the process at the other end of the connected socket @fd, which may ask as often as
 * it likes, one request at a time. @fd stays the caller's. Returns 0 or a negative errno. */
int control__open_for(int fd, control_handle_fn handle, void *context, struct control **out);
/* Returns whether that process has closed its end. */
bool control__is_left(const struct control *control);

/* Returns a descriptor that is readable when control__attend() has something to do, or a
 * descriptor added by control__watch() is readable. */
int control__fd(const struct control *control);
int control__watch(struct control *control, int fd);
void control__attend(struct control *control);

/* Answers the client, if it is still connected, and disconnects it unless it may ask again. */
void control__reply(struct control *control, __u64 client, bool is_done, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Removes the socket's name; waiting clients can still be answered. */
void control__hide(struct control *control);
void control__close(struct control *control);

/* The functions below are for the client. */

struct control_recording {
	pid_t pid;    /* pid of allocprof */
	pid_t target; /* first process of the recording */
	char state[32], since[32], command[256];
};

struct control_recordings {
	struct control_recording *list; /* sorted by pid */
	size_t n, room;
};

/* Finds all running recordings that answer, and removes stale sockets. */
int control_recordings__find(struct control_recordings *recordings, struct error *error);
void control_recordings__release(struct control_recordings *recordings);

/* Sends @request to the recording @pid and waits for its answer, without a time limit. @reply gets
 * the text, *@is_done whether it was carried out. */
int control_client__ask(pid_t pid, const char *request, bool *is_done,
			char reply[CONTROL_MAX_REPLY], struct error *error);

#endif
