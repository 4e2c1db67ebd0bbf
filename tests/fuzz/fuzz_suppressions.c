// SPDX-License-Identifier: GPL-3.0-or-later
/* Suppression files, and texts that their templates are held to. */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fuzz.h"
#include "suppressions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct suppressions suppressions = { 0 };
	char *text = fuzz__text(data, size), *line;
	struct error error = { "" };
	const char *path;

	fuzz__file(data, size, &path);
	if (!suppressions__read(path, &suppressions, &error)) {
		FUZZ_CHECK(suppressions__find(&suppressions, "operator new(unsigned long)") <
			   (int)suppressions.n);
		suppressions__find(&suppressions, text);
		suppressions__release(&suppressions);
	} else {
		FUZZ_CHECK(error.text[0]);
	}
	line = strchr(text, '\n');
	if (line) {
		*line = '\0';
		suppression__match(text, line + 1);
	}
	free(text);
	return 0;
}
