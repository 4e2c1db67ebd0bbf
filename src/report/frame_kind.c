// SPDX-License-Identifier: GPL-3.0-or-later
/* Tells what kind of code a frame is, by the names of its function, file and source. */
#include "frame_kind.h"

#include <stddef.h>
#include <string.h>

#include "array.h"
#include "path.h"
#include "profile.h"

static const char *const allocators[] = {
	"libjemalloc.", "libtcmalloc", "libmimalloc", "libtbbmalloc",	    "libduma.",
	"libefence.",	"libdmalloc",  "libgc.",      "libc_malloc_debug.", "libscudo",
	"librpmalloc",	"libsnmalloc", "libhoard.",
};
/* Beginnings of file names of the C library, the libraries of languages, and of the kernel's
 * mappings. */
static const char *const runtimes[] = {
	"libc.so",    "libc-",	   "ld-linux",	    "ld-musl-",	  "ld-2.",	 "libm.so",
	"libm-",      "libmvec",   "libdl.",	    "libdl-",	  "libpthread",	 "librt.",
	"librt-",     "libresolv", "libgcc_s.",	    "libstdc++.", "libc++.",	 "libc++abi.",
	"libgomp.",   "libgo.",	   "libgfortran.",  "libstd-",	  "libpython",	 "libruby",
	"libperl.",   "libjvm.",   "libswiftCore.", "libphobos2", "libdruntime", "libobjc.",
	"linux-vdso", "[vdso]",
};
/* File names of interpreters, which a version may follow. */
static const char *const interpreters[] = {
	"python", "ruby", "perl", "php", "php-fpm", "php-cgi", "phpdbg", "node", "java", "nodejs",
};
/* How functions' names begin in programs that are statically linked to a language's runtime. Only
 * Rust's own library has functions of str and slices that are of no trait. */
static const char *const runtime_names[] = {
	"std::",  "core::",  "alloc::", "__gnu_cxx::", "runtime.", "runtime/", "__libc_",
	"_start", "__rust_", "<std::",	"<core::",     "<alloc::", "<str>::",
};
/* Directories of the sources of languages' libraries. */
static const char *const runtime_sources[] = { "/usr/include/c++/", "/usr/lib/gcc/",
					       "/usr/src/rustc-" };
/* Directories in which systems install libraries. */
static const char *const installed[] = { "/lib",	"/usr/lib", "/usr/local/lib",
					 "/nix/store/", "/snap/",   "/opt/" };
/* What names and sources have of functions of a language's own library that were compiled at run time. */
static const char *const runtime_code[] = { "node:", "<frozen ", "Ljava/", "Ljdk/", "Lsun/" };
/* Directories in which package managers of languages put what a program uses, as sources or compiled. */
static const char *const packages[] = {
	"/site-packages/", "/dist-packages/",  "/node_modules/",	"/.cargo/registry/",
	"/.cargo/git/",	   "/cargo/registry/", "/cargo/git/checkouts/",
};
/* Python's own library is libraries, too, when it is not a file of machine code. */
static const char *const python_code[] = { "/lib/python3" };
/* How names begin that such a compiler gives to code of no function of a program. */
static const char *const runtime_stubs[] = {
	"Builtin:",	      "BytecodeHandler:", "Stub:",	 "RegExp:",	"StubRoutines",
	"Interpreter",	      "Bytecode:",	  "vtable stub", "itable stub", "I2C/C2I",
	"DeoptimizationBlob",
};

static bool begins(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(text, words[i], strlen(words[i])))
			return true;
	return false;
}

static bool contains(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

/* Returns whether @base is an interpreter, such as "python3.12". */
static bool is_interpreter(const char *base)
{
	for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++) {
		size_t n = strlen(interpreters[i]);

		if (!strncmp(base, interpreters[i], n) &&
		    !base[n + strspn(base + n, "0123456789.")])
			return true;
	}
	return false;
}

/* "<[u8]>::to_vec" is a slice's own function, "<[u8] as own::Trait>::f" is not. */
static bool is_of_slice(const char *name)
{
	return !strncmp(name, "<[", 2) && strstr(name, "]>::") && !strstr(name, " as ");
}

/* Rust's own library alone can implement its traits for its own types:
 * "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem". */
static bool is_of_rusts_type(const char *name)
{
	static const char *const types[] = {
		"<u8 as ",  "<u16 as ",	 "<u32 as ",   "<u64 as ",   "<u128 as ",   "<usize as ",
		"<i8 as ",  "<i16 as ",	 "<i32 as ",   "<i64 as ",   "<i128 as ",   "<isize as ",
		"<f32 as ", "<f64 as ",	 "<bool as ",  "<char as ",  "<str as ",    "<() as ",
		"<[",	    "<dyn core", "<&dyn core", "<dyn alloc", "<&dyn alloc",
	};
	static const char *const crates[] = { "core::", "alloc::", "std::" };
	const char *trait = strstr(name, " as ");

	return trait && begins(name, types, ARRAY_SIZE(types)) &&
	       begins(trait + strlen(" as "), crates, ARRAY_SIZE(crates));
}

/* Rust's compiler names the sources of its library "/rustc/<commit>/library/...". */
static bool is_runtime_source(const char *source)
{
	return begins(source, runtime_sources, ARRAY_SIZE(runtime_sources)) ||
	       (!strncmp(source, "/rustc/", 7) && strstr(source, "/library/"));
}

/* Code without a file that has a name was made at run time. Its name mostly has the source. */
static enum frame_kind kind_of_jit(const char *name, const char *source)
{
	if (!*name || *name == '[')
		return FRAME_KIND_UNKNOWN;
	if (begins(name, runtime_stubs, ARRAY_SIZE(runtime_stubs)) ||
	    contains(name, runtime_code, ARRAY_SIZE(runtime_code)) ||
	    begins(source, runtime_code, ARRAY_SIZE(runtime_code)))
		return FRAME_KIND_RUNTIME;
	if (contains(name, packages, ARRAY_SIZE(packages)) ||
	    contains(name, python_code, ARRAY_SIZE(python_code)) ||
	    contains(source, python_code, ARRAY_SIZE(python_code)))
		return FRAME_KIND_LIBRARY;
	return FRAME_KIND_OWN;
}

/* Frames of the module that src/collect/collector_python.c has made. */
static enum frame_kind kind_of_python(const char *name, const char *source)
{
	if (*name == '[')
		return FRAME_KIND_MISSING;
	if (begins(source, runtime_code, ARRAY_SIZE(runtime_code)))
		return FRAME_KIND_RUNTIME;
	return contains(source, python_code, ARRAY_SIZE(python_code)) ? FRAME_KIND_LIBRARY
								      : FRAME_KIND_OWN;
}

static enum frame_kind kind_in_file(const char *name, const char *module, const char *source)
{
	const char *base = path__name(module);

	if (begins(base, allocators, ARRAY_SIZE(allocators)))
		return FRAME_KIND_ALLOCATOR;
	if (begins(base, runtimes, ARRAY_SIZE(runtimes)) || is_interpreter(base) ||
	    begins(name, runtime_names, ARRAY_SIZE(runtime_names)) || is_of_slice(name) ||
	    is_of_rusts_type(name) || is_runtime_source(source))
		return FRAME_KIND_RUNTIME;
	if ((strstr(base, ".so") && begins(module, installed, ARRAY_SIZE(installed))) ||
	    contains(module, packages, ARRAY_SIZE(packages)))
		return FRAME_KIND_LIBRARY;
	return FRAME_KIND_OWN;
}

enum frame_kind frame_kind__of(const struct frame_code *code)
{
	const char *source = code->source ?: "";
	enum frame_kind kind;

	if (!code->module)
		kind = kind_of_jit(code->name, source);
	else if (!strcmp(code->module, PROFILE_PYTHON_MODULE))
		kind = kind_of_python(code->name, source);
	else
		kind = kind_in_file(code->name, code->module, source);
	if (kind != FRAME_KIND_OWN)
		return kind;
	/* Such a function is, for example, an inner one of the C++ library. */
	if (code->is_internal)
		return FRAME_KIND_RUNTIME;
	/* Packages are linked into programs, and inlined into their functions. */
	return contains(source, packages, ARRAY_SIZE(packages)) ? FRAME_KIND_LIBRARY : kind;
}

int frame_kind__rank(enum frame_kind kind, bool has_name)
{
	if (kind == FRAME_KIND_OWN)
		return has_name ? 0 : 2;
	return kind == FRAME_KIND_LIBRARY && has_name ? 1 : 3;
}

const char *frame_kind__title(enum frame_kind kind)
{
	static const char *const titles[FRAME_KINDS] = {
		[FRAME_KIND_OWN] = "own code",	  [FRAME_KIND_LIBRARY] = "libraries",
		[FRAME_KIND_RUNTIME] = "runtime", [FRAME_KIND_ALLOCATOR] = "allocator",
		[FRAME_KIND_UNKNOWN] = "unknown", [FRAME_KIND_PROCESS] = "process",
		[FRAME_KIND_THREAD] = "thread",	  [FRAME_KIND_MISSING] = "missing frames",
	};

	return titles[kind];
}
