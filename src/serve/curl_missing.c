// SPDX-License-Identifier: GPL-3.0-or-later
/* An executable that needs no shared library has no libcurl: TLS and what it needs would be most of the executable. */
#include <errno.h>

#include "curl_library.h"
#include "error.h"

int curl_library__load(struct curl_library *library, struct error *error)
{
	(void)library;
	return error__set(
		error, -ENOENT,
		"this allocprof loads no libraries, so it cannot push to a collector; use a package of "
		"allocprof, or send what export --format=otlp writes");
}
