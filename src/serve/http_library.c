// SPDX-License-Identifier: GPL-3.0-or-later
/* Loads libmicrohttpd when a server starts. */
#include "http_library.h"

#include "lazy_library.h"

#define HTTP_NAME(name) "MHD_" #name,

static const char *const functions[] = { HTTP_FUNCTIONS(HTTP_NAME) };

static const struct lazy_library microhttpd = {
	.name = "libmicrohttpd.so.12",
	.purpose = "answers HTTP requests",
	.install = "install it (Debian: libmicrohttpd12)",
	.update = "install libmicrohttpd 0.9.75 or newer",
	.functions = functions,
	.n_functions = sizeof(functions) / sizeof(functions[0]),
};

_Static_assert(sizeof(struct http_library) == sizeof(functions), "a pointer for each function");

int http_library__load(struct http_library *library, struct error *error)
{
	return lazy_library__load(&microhttpd, library, error);
}
