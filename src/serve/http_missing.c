// SPDX-License-Identifier: GPL-3.0-or-later
/* An executable without shared libraries has no HTTP server. */
#include "http_library.h"

#include <errno.h>

#include "error.h"

int http_library__load(struct http_library *library, struct error *error)
{
	(void)library;
	return error__set(
		error, -ENOTSUP,
		"this allocprof needs no shared library, and has no HTTP server; take one of a "
		"package or of your own making");
}
