/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The loop of the process that answers requests. */
#ifndef ALLOCPROF_HTTP_SERVER_H
#define ALLOCPROF_HTTP_SERVER_H

struct http_library;
struct wrappers;

/* Answers requests as the parent says, which is at the other end of @channel, until that is closed. Returns
 * an exit status. */
int http_server__run(const struct http_library *library, const struct wrappers *wrappers,
		     int channel);

#endif
