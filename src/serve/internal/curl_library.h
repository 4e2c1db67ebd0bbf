/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of libcurl, which is loaded when a server that pushes starts. */
#ifndef ALLOCPROF_CURL_LIBRARY_H
#define ALLOCPROF_CURL_LIBRARY_H

#include <curl/curl.h>

struct error;

#define CURL_FUNCTIONS(X)                                                                          \
	X(global_init)                                                                             \
	X(easy_init)                                                                               \
	X(easy_setopt)                                                                             \
	X(easy_perform)                                                                            \
	X(easy_getinfo)                                                                            \
	X(easy_strerror)                                                                           \
	X(slist_append)                                                                            \
	X(slist_free_all)

#define CURL_POINTER(name) __typeof__(&curl_##name) name;

struct curl_library {
	CURL_FUNCTIONS(CURL_POINTER)
};

/* Loads the library. Returns 0, or -ENOENT with @error set. */
int curl_library__load(struct curl_library *library, struct error *error);

#endif
