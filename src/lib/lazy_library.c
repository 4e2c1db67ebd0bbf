// SPDX-License-Identifier: GPL-3.0-or-later
/* Loads a shared library, and finds its functions. */
#include "lazy_library.h"

#include <dlfcn.h>
#include <errno.h>

#include "error.h"

int lazy_library__load(const struct lazy_library *library, void *to, struct error *error)
{
	/* Nothing is unloaded: ICU and Fontconfig, which such libraries need, keep memory that
	 * they have allocated, and have destructors. */
	void *loaded = dlopen(library->name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	void **functions = to;

	if (!loaded)
		return error__set(error, -ENOENT, "cannot load %s, which %s: %s; %s", library->name,
				  library->purpose, dlerror(), library->install);
	for (size_t i = 0; i < library->n_functions; i++) {
		functions[i] = dlsym(loaded, library->functions[i]);
		if (!functions[i])
			return error__set(error, -ENOENT, "%s lacks a function that %s; %s",
					  library->name, library->purpose, library->update);
	}
	return 0;
}
