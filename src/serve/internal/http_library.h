/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of libmicrohttpd, which is loaded when a server starts. */
#ifndef ALLOCPROF_HTTP_LIBRARY_H
#define ALLOCPROF_HTTP_LIBRARY_H

#include <microhttpd.h>

struct error;

#define HTTP_FUNCTIONS(X)                                                                          \
	X(start_daemon)                                                                            \
	X(run)                                                                                     \
	X(get_timeout)                                                                             \
	X(get_daemon_info)                                                                         \
	X(get_connection_info)                                                                     \
	X(create_response_from_buffer)                                                             \
	X(add_response_header)                                                                     \
	X(queue_response)                                                                          \
	X(destroy_response)                                                                        \
	X(lookup_connection_value)                                                                 \
	X(suspend_connection)                                                                      \
	X(resume_connection)

#define HTTP_POINTER(name) __typeof__(&MHD_##name) name;

struct http_library {
	HTTP_FUNCTIONS(HTTP_POINTER)
};

/* Loads the library. Returns 0, or -ENOENT with @error set. */
int http_library__load(struct http_library *library, struct error *error);

#endif
