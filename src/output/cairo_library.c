// SPDX-License-Identifier: GPL-3.0-or-later
#include "cairo_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "cairo_functions.h"
#include "error.h"

#define LIBRARY "libcairo.so.2"

/* ISO C cannot convert the result of dlsym() to a function pointer. */
#define CAIRO_FIND(name)                                                                           \
	*(void **)&cairo->name = dlsym(library, "cairo_" #name);                                   \
	is_complete = is_complete && cairo->name;

static int find_functions(void *library, struct cairo_library *cairo)
{
	int is_complete = 1;

	CAIRO_FUNCTIONS(CAIRO_FIND)
	return is_complete ? 0 : -ENOENT;
}

int cairo_library__open(struct cairo_library **out, struct error *error)
{
	/* Fontconfig keeps what it has allocated, and has destructors: it is not unloaded. */
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	struct cairo_library *cairo;

	if (!library)
		return error__set(error, -ENOENT,
				  "cannot load " LIBRARY ", which draws pictures: %s; install it "
				  "(Debian: libcairo2), or use --json",
				  dlerror());
	cairo = calloc(1, sizeof(*cairo));
	if (!cairo)
		return error__set(error, -ENOMEM, "cannot draw a picture: out of memory");
	if (find_functions(library, cairo)) {
		free(cairo);
		return error__set(error, -ENOENT,
				  LIBRARY " lacks a function that draws pictures; install cairo "
					  "1.16 or newer, with SVG, PNG and PDF, or use --json");
	}
	*out = cairo;
	return 0;
}

void cairo_library__close(struct cairo_library *cairo)
{
	free(cairo);
}
