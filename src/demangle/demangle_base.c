// SPDX-License-Identifier: GPL-3.0-or-later
#include "demangle_base.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "demangle_simple.h"

/* Without DMGL_NO_RECURSE_LIMIT: nested names must not overflow the stack. */
#define OPTIONS (DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP)

struct demangled {
	jmp_buf full;
	size_t size;
	char text[DEMANGLED_SIZE];
};

static void take_demangled(const char *text, size_t size, void *opaque)
{
	struct demangled *demangled = opaque;

	/* Leaving by longjmp() is safe, because the demanglers' callback forms own no memory, and
	 * it is the only way to stop one whose output doubles with every few bytes of input. */
	if (size >= sizeof(demangled->text) - demangled->size)
		longjmp(demangled->full, 1);
	/* @text may be NULL then, which memcpy() does not allow. */
	if (!size)
		return;
	memcpy(demangled->text + demangled->size, text, size);
	demangled->size += size;
}

typedef int (*language_fn)(const char *symbol, int options, demangle_callbackref callback,
			   void *opaque);

/* 1 with @text set, to be freed; 0 if @symbol is not of @language; or -ENOMEM. */
static int demangle(language_fn language, const char *symbol, char **text)
{
	struct demangled *demangled = malloc(sizeof(*demangled));
	char *copy = NULL;
	int status = 0;

	if (!demangled)
		return -ENOMEM;
	demangled->size = 0;
	if (!setjmp(demangled->full) && language(symbol, OPTIONS, take_demangled, demangled) &&
	    demangled->size) {
		copy = strndup(demangled->text, demangled->size);
		status = copy ? 1 : -ENOMEM;
	}
	free(demangled);
	if (status > 0)
		*text = copy;
	return status;
}

/* Rust's names look alike except for what is excluded here. */
bool demangle_base__is_cxx_text(const char *base)
{
	size_t len = strlen(base), call_len = strlen("operator()");
	bool is_call = len >= call_len && !strcmp(base + len - call_len, "operator()");

	return *base != '<' && strchr(base, '<') && strstr(base, "::") && !strchr(base, '{') &&
	       !strstr(base, " as ") && !strstr(base, "<impl ") &&
	       (base[len - 1] != ')' || is_call);
}

int demangle_base__names(const char *base, char **name, char **full_name)
{
	char *simple = NULL, *full = NULL;
	int status = demangle(rust_demangle_callback, base, &full);

	if (status > 0) {
		simple = strdup(full);
	} else if (!status && !strncmp(base, "_Z", 2)) {
		status = demangle(cplus_demangle_v3_callback, base, &full);
		if (status > 0)
			simple = demangle_simple__cxx(full);
	} else if (!status && demangle_base__is_cxx_text(base)) {
		status = 1;
		full = strdup(base);
		simple = demangle_simple__cxx(base);
	}
	if (status <= 0)
		return status;
	if (!simple || !full) {
		free(simple);
		free(full);
		return -ENOMEM;
	}
	*name = simple;
	*full_name = full;
	return 1;
}
