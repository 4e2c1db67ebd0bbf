// SPDX-License-Identifier: GPL-3.0-or-later
/* Mangled names, and the short forms of readable ones. */
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "demangle_simple.h"
#include "error.h"
#include "fuzz.h"
#include "utf8.h"

/* Twice the longest name, and its clone suffix. */
#define MOST_BYTES 20000

static void demangle(const char *symbol)
{
	static const struct demangle_options options;
	static struct demangler *demangler;
	char *name, *full_name;

	if (!demangler)
		FUZZ_CHECK(!demangler__new(&options, &demangler, NULL));
	demangle__looks_mangled(symbol);
	if (demangler__names(demangler, symbol, &name, &full_name))
		return;
	FUZZ_CHECK(strlen(name) < MOST_BYTES && strlen(full_name) < MOST_BYTES);
	free(name);
	free(full_name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz__text(data, size), *simple;

	demangle(text);
	simple = demangle_simple__cxx(text);
	FUZZ_CHECK(strlen(simple) <= strlen(text));
	free(simple);
	simple = demangle_simple__d(text);
	FUZZ_CHECK(strlen(simple) <= strlen(text));
	free(simple);
	utf8__clean(text);
	free(text);
	return 0;
}
