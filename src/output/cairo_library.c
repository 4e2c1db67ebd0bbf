// SPDX-License-Identifier: GPL-3.0-or-later
/* Loads libcairo when a picture is drawn. */
#include "cairo_library.h"

#include <errno.h>
#include <stdlib.h>

#include "cairo_functions.h"
#include "error.h"
#include "lazy_library.h"

#define CAIRO_NAME(name) "cairo_" #name,

static const char *const functions[] = { CAIRO_FUNCTIONS(CAIRO_NAME) };

static const struct lazy_library libcairo = {
	.name = "libcairo.so.2",
	.purpose = "draws pictures",
	.install = "install it (Debian: libcairo2), or use --json",
	.update = "install cairo 1.16 or newer, with SVG, PNG and PDF, or use --json",
	.functions = functions,
	.n_functions = sizeof(functions) / sizeof(functions[0]),
};

_Static_assert(sizeof(struct cairo_library) == sizeof(functions), "a pointer for each function");

int cairo_library__open(struct cairo_library **out, struct error *error)
{
	struct cairo_library *cairo = calloc(1, sizeof(*cairo));
	int err;

	if (!cairo)
		return error__set(error, -ENOMEM, "cannot draw a picture: out of memory");
	err = lazy_library__load(&libcairo, cairo, error);
	if (err) {
		free(cairo);
		return err;
	}
	*out = cairo;
	return 0;
}

void cairo_library__close(struct cairo_library *cairo)
{
	free(cairo);
}
