// SPDX-License-Identifier: GPL-3.0-or-later
#include "page_kind.h"

#include <stddef.h>
#include <string.h>

#include "array.h"
#include "path.h"

static const char *const allocators[] = {
	"libjemalloc.", "libtcmalloc", "libmimalloc", "libtbbmalloc",	    "libduma.",
	"libefence.",	"libdmalloc",  "libgc.",      "libc_malloc_debug.", "libscudo",
	"librpmalloc",	"libsnmalloc", "libhoard.",
};
/* The C library's, those of languages, and interpreters; and what the kernel maps. */
static const char *const runtimes[] = {
	"libc.so",    "libc-",	   "ld-linux",	    "ld-musl-",	  "ld-2.",	 "libm.so",
	"libm-",      "libmvec",   "libdl.",	    "libdl-",	  "libpthread",	 "librt.",
	"librt-",     "libresolv", "libgcc_s.",	    "libstdc++.", "libc++.",	 "libc++abi.",
	"libgomp.",   "libgo.",	   "libgfortran.",  "libstd-",	  "libpython",	 "libruby",
	"libperl.",   "libjvm.",   "libswiftCore.", "libphobos2", "libdruntime", "libobjc.",
	"linux-vdso", "[vdso]",	   "python2",	    "python3",	  "ruby",	 "perl",
	"php",	      "node",	   "java",
};
/* Names begin so in programs that are statically linked to a language's runtime. */
static const char *const runtime_names[] = {
	"std::",   "core::", "alloc::", "__gnu_cxx::", "runtime.", "runtime/",
	"__libc_", "_start", "__rust_", "<std::",      "<core::",  "<alloc::",
};
/* Where systems install libraries. */
static const char *const installed[] = { "/lib",	"/usr/lib", "/usr/local/lib",
					 "/nix/store/", "/snap/",   "/opt/" };

static bool begins(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(text, words[i], strlen(words[i])))
			return true;
	return false;
}

enum page_kind page_kind__of(const char *name, const char *module)
{
	const char *base;

	if (!module)
		return PAGE_KIND_UNKNOWN;
	base = path__name(module);
	if (begins(base, allocators, ARRAY_SIZE(allocators)))
		return PAGE_KIND_ALLOCATOR;
	if (begins(base, runtimes, ARRAY_SIZE(runtimes)) ||
	    begins(name, runtime_names, ARRAY_SIZE(runtime_names)))
		return PAGE_KIND_RUNTIME;
	if (strstr(base, ".so") && begins(module, installed, ARRAY_SIZE(installed)))
		return PAGE_KIND_LIBRARY;
	return PAGE_KIND_OWN;
}

const char *page_kind__title(enum page_kind kind)
{
	static const char *const titles[PAGE_KINDS] = {
		[PAGE_KIND_OWN] = "own code",	 [PAGE_KIND_LIBRARY] = "libraries",
		[PAGE_KIND_RUNTIME] = "runtime", [PAGE_KIND_ALLOCATOR] = "allocator",
		[PAGE_KIND_UNKNOWN] = "unknown", [PAGE_KIND_PROCESS] = "process",
		[PAGE_KIND_THREAD] = "thread",	 [PAGE_KIND_MISSING] = "missing frames",
	};

	return titles[kind];
}
