// SPDX-License-Identifier: GPL-3.0-or-later
/* Loads libcurl when a server that pushes starts. */
#include "curl_library.h"

#include "lazy_library.h"

#define CURL_NAME(name) "curl_" #name,

static const char *const functions[] = { CURL_FUNCTIONS(CURL_NAME) };

static const struct lazy_library curl = {
	.name = "libcurl.so.4",
	.purpose = "sends profiles to a collector",
	.install = "install it (Debian: libcurl4, or libcurl4t64)",
	.update = "install libcurl 7.85 or newer",
	.functions = functions,
	.n_functions = sizeof(functions) / sizeof(functions[0]),
};

_Static_assert(sizeof(struct curl_library) == sizeof(functions), "a pointer for each function");

int curl_library__load(struct curl_library *library, struct error *error)
{
	return lazy_library__load(&curl, library, error);
}
