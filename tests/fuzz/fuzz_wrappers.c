// SPDX-License-Identifier: GPL-3.0-or-later
/* Files of wrappers. */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fuzz.h"
#include "wrappers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz__text(data, size);
	struct error error = { "" };
	struct wrappers *wrappers;
	const char *path;

	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
	fuzz__file(data, size, &path);
	if (!wrappers__load(path, &wrappers, &error)) {
		wrappers__hides(wrappers, "operator new", "/usr/lib/libx.so.1");
		wrappers__folds(wrappers, text, NULL);
		text[strcspn(text, "\n")] = '\0';
		wrappers__hides(wrappers, text, text);
		wrappers__free(wrappers);
	} else {
		FUZZ_CHECK(error.text[0]);
	}
	free(text);
	return 0;
}
