/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The server side of `allocprof ctl`: a socket that takes requests to a running recording. No
 * function blocks, and input is bounded, so that no client can delay the recording.
 */
#ifndef ALLOCPROF_CONTROL_H
#define ALLOCPROF_CONTROL_H

#include <linux/types.h>
#include <stdbool.h>

struct control;
struct error;

/* Handles the text of a client's @request, which control__reply() must answer, now or later. */
typedef void (*control_handle_fn)(void *context, __u64 client, const char *request);

/* Listens as this process's recording. On error a negative errno, and *@error has the reason. */
int control__open(control_handle_fn handle, void *context, struct control **out,
		  struct error *error);

/* Readable when control__attend() has something to do, or a descriptor added by control__watch() is
 * readable. */
int control__fd(const struct control *control);
int control__watch(struct control *control, int fd);
void control__attend(struct control *control);

/* Answers the client, if it is still connected, and disconnects it. */
void control__reply(struct control *control, __u64 client, bool is_done, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Removes the socket's name; waiting clients can still be answered. */
void control__hide(struct control *control);
void control__close(struct control *control);

#endif
