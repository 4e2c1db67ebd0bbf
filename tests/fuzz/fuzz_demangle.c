// SPDX-License-Identifier: GPL-3.0-or-later
/* Mangled names, and the short forms of readable ones. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "demangle_internal.h"
#include "error.h"
#include "fuzz.h"
#include "text.h"

/* Twice the longest name, and its clone suffix. */
#define MOST_BYTES 20000

/* A name that is not mangled stays as long as it was. */
static bool is_bounded(const char *name, const char *symbol)
{
	return strlen(name) < MOST_BYTES || strlen(name) <= strlen(symbol);
}

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
	FUZZ_CHECK(is_bounded(name, symbol) && is_bounded(full_name, symbol));
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
