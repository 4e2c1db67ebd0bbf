/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages between the process that answers requests and its parent, by a socket that keeps them apart. */
#ifndef ALLOCPROF_HTTP_CHANNEL_H
#define ALLOCPROF_HTTP_CHANNEL_H

#include "http_types.h"

enum http_message_kind {
	HTTP_LISTEN = 1, /* with the listening socket */
	HTTP_TOKEN,
	HTTP_WANTS_COPY, /* to the parent */
	HTTP_COPY,	 /* with the data file */
	HTTP_NO_COPY,
	HTTP_PUSHED, /* to the parent, of the last copy */
};

struct http_message {
	__u32 kind;		 /* enum http_message_kind */
	__u32 most_series;	 /* HTTP_LISTEN */
	__u32 is_restart;	 /* HTTP_LISTEN */
	struct http_costs costs; /* HTTP_COPY */
	struct otlp_push push;	 /* HTTP_PUSHED */
	/* HTTP_LISTEN, HTTP_TOKEN: the token; HTTP_NO_COPY, HTTP_PUSHED: why. Ends with a NUL. */
	char text[HTTP_MAX_TOKEN + 1];
};

/* Sends the message, with the descriptor @fd unless it is -1, without waiting. Returns 0 or a negative
 * errno. */
int http_channel__send(int channel, const struct http_message *message, int fd);
/* Receives one, without waiting; *@fd, which the caller closes, is -1 if none came with it. With @fd NULL
 * descriptors that come are closed. Returns 1; 0 if
 * none is there; -EPIPE at the end; or another negative errno. */
int http_channel__receive(int channel, struct http_message *message, int *fd);

#endif
