/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A recording's ear: a socket by which it is asked to do something while it runs. Nothing here blocks,
 * and what comes in is bounded: no client can hold the recording up.
 */
#ifndef ALLOCPROF_CONTROL_H
#define ALLOCPROF_CONTROL_H

#include <linux/types.h>
#include <stdbool.h>

struct control;
struct error;

/* A client has asked for @request, any text. To be answered by control__reply(), now or later. */
typedef void (*control_handle_fn)(void *context, __u64 client, const char *request);

/* Listens as this process's recording. A negative errno with the sentence. */
int control__open(control_handle_fn handle, void *context, struct control **out,
		  struct error *error);

/* Readable when there is something to attend to, or at @fd of control__watch(). */
int control__fd(const struct control *control);
int control__watch(struct control *control, int fd);
void control__attend(struct control *control);

/* Answers, if the client is still there, and is done with it. */
void control__reply(struct control *control, __u64 client, bool is_done, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Is not found any more; clients that wait can still be answered. */
void control__hide(struct control *control);
void control__close(struct control *control);

#endif
