// SPDX-License-Identifier: GPL-3.0-or-later
/* Definitions of allocators: files, and the arguments of --probe and --usdt. */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fuzz.h"
#include "definitions.h"

static void use(struct definitions *definitions, int err, const struct error *error)
{
	FUZZ_CHECK(!err || error->text[0]);
	FUZZ_CHECK(definitions->n <= AP_MAX_DEFINITIONS);
	for (size_t i = 0; i < definitions->n; i++) {
		const struct definition *definition = &definitions->list[i];

		definition__is_in(definition, "/usr/lib/libx.so.1", "libx.so.1");
		for (size_t j = 0; j < definition->n_functions; j++)
			FUZZ_CHECK(definition__find(definition, definition->functions[j].name));
	}
	definitions__release(definitions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const modules[] = { "libx.so*", NULL };
	char *text = fuzz__text(data, size);
	struct definitions *definitions = calloc(1, sizeof(*definitions));
	struct error error = { "" };
	const char *path;

	FUZZ_CHECK(definitions);
	fuzz__file(data, size, &path);
	use(definitions, definitions__add_files(definitions, path, &error), &error);
	memset(definitions, 0, sizeof(*definitions));
	error.text[0] = '\0';
	use(definitions, definitions__add_probe(definitions, text, modules, &error), &error);
	memset(definitions, 0, sizeof(*definitions));
	error.text[0] = '\0';
	use(definitions, definitions__add_usdt(definitions, text, &error), &error);
	free(definitions);
	free(text);
	return 0;
}
