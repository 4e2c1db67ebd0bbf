// SPDX-License-Identifier: GPL-3.0-or-later
/* Has the functions of libcairo that is linked in. */
#include <errno.h>
#include <stdlib.h>

#include "cairo_functions.h"
#include "cairo_library.h"
#include "error.h"

#define CAIRO_FUNCTION(name) .name = cairo_##name,

int cairo_library__open(struct cairo_library **out, struct error *error)
{
	struct cairo_library *cairo = malloc(sizeof(*cairo));

	if (!cairo)
		return error__set(error, -ENOMEM, "cannot draw a picture: out of memory");
	*cairo = (struct cairo_library){ CAIRO_FUNCTIONS(CAIRO_FUNCTION) };
	*out = cairo;
	return 0;
}

void cairo_library__close(struct cairo_library *cairo)
{
	free(cairo);
}
