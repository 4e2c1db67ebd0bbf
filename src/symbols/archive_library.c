// SPDX-License-Identifier: GPL-3.0-or-later
/* Loads libarchive when an archive is written. */
#include "archive_library.h"

#include "lazy_library.h"

#define ARCHIVE_NAME(name) #name,

static const char *const functions[] = { ARCHIVE_FUNCTIONS(ARCHIVE_NAME) };

static const struct lazy_library libarchive = {
	.name = "libarchive.so.13",
	.purpose = "writes archives",
	.install = "install it (Debian: libarchive13t64, in Debian 12 libarchive13)",
	.update = "install libarchive 3.4 or newer",
	.functions = functions,
	.n_functions = sizeof(functions) / sizeof(functions[0]),
};

_Static_assert(sizeof(struct archive_library) == sizeof(functions), "a pointer for each function");

int archive_library__open(struct archive_library *library, struct error *error)
{
	return lazy_library__load(&libarchive, library, error);
}
