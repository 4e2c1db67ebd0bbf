// SPDX-License-Identifier: GPL-3.0-or-later
/* Definitions of allocators: files, and the arguments of --probe and --usdt. */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fuzz.h"
#include "sources.h"

static void use(struct sources *sources, int err, const struct error *error)
{
	FUZZ_CHECK(!err || error->text[0]);
	FUZZ_CHECK(sources->n <= AP_MAX_SOURCES);
	for (size_t i = 0; i < sources->n; i++) {
		const struct source *source = &sources->list[i];

		source__is_in(source, "/usr/lib/libx.so.1", "libx.so.1");
		for (size_t j = 0; j < source->n_functions; j++)
			FUZZ_CHECK(source__find(source, source->functions[j].name));
	}
	sources__release(sources);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const modules[] = { "libx.so*", NULL };
	char *text = fuzz__text(data, size);
	struct sources *sources = calloc(1, sizeof(*sources));
	struct error error = { "" };
	const char *path;

	FUZZ_CHECK(sources);
	fuzz__file(data, size, &path);
	use(sources, sources__add_files(sources, path, &error), &error);
	memset(sources, 0, sizeof(*sources));
	error.text[0] = '\0';
	use(sources, sources__add_probe(sources, text, modules, &error), &error);
	memset(sources, 0, sizeof(*sources));
	error.text[0] = '\0';
	use(sources, sources__add_usdt(sources, text, &error), &error);
	free(sources);
	free(text);
	return 0;
}
