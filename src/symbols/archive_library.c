// SPDX-License-Identifier: GPL-3.0-or-later
/* Loads libarchive when an archive is written. */
#include "archive_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

#include "error.h"

#define LIBRARY "libarchive.so.13"

/* ISO C cannot convert the result of dlsym() to a function pointer. */
#define ARCHIVE_FIND(name)                                                                         \
	*(void **)&found.name = dlsym(loaded, #name);                                              \
	is_complete = is_complete && found.name;

int archive_library__open(struct archive_library *library, struct error *error)
{
	/* ICU has destructors: it is not unloaded. */
	void *loaded = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	struct archive_library found;
	bool is_complete = true;

	if (!loaded)
		return error__set(error, -ENOENT,
				  "cannot load " LIBRARY ", which writes archives: %s; install it "
				  "(Debian: libarchive13t64, in Debian 12 libarchive13)",
				  dlerror());
	ARCHIVE_FUNCTIONS(ARCHIVE_FIND)
	if (!is_complete)
		return error__set(error, -ENOENT,
				  LIBRARY
				  " lacks a function that writes archives; install libarchive "
				  "3.4 or newer");
	*library = found;
	return 0;
}
