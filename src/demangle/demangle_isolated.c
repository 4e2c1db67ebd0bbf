// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs the demanglers of C++ and Rust, in this process or in a worker. */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "demangle_internal.h"
#include "worker.h"

/* Number of names of a request, and how long it may take. An ordinary name takes microseconds. */
#define AT_ONCE	   256
#define TIMEOUT_MS 2000
/* How many failures are tolerated. Each costs at most the time of a request, so this limits what a
 * hostile file can cost. */
#define MAX_FAILURES 8
#define MEMORY_BYTES (256UL << 20)
#define SWIFT_SIZE   65536

/* Demangles @symbol. Returns the size of the text, 0 if @symbol cannot be demangled; truncates the
 * text to @size. */
typedef size_t (*swift_demangle_fn)(const char *symbol, char *text, size_t size);

struct swift {
	swift_demangle_fn full, simple;
};

/*
 * The paths at which Debian and Swift's own packages install the library. No other directory is
 * searched, since this process may be root's.
 */
static const char *const swift_libraries[] = {
	"/usr/libexec/swift/lib/libswiftDemangle.so",
	"/usr/lib/swift/lib/libswiftDemangle.so",
	"/usr/lib/libswiftDemangle.so",
	"/usr/lib64/libswiftDemangle.so",
	"/opt/swift/usr/lib/libswiftDemangle.so",
	"/usr/share/swift/usr/lib/libswiftDemangle.so",
};

static const char *const swift_prefixes[] = { "$s",  "$S",  "_$s", "_$S",	    "$e",
					      "_$e", "_T0", "_Tt", "@__swiftmacro_" };

static bool is_swift(const char *symbol)
{
	for (size_t i = 0; i < ARRAY_SIZE(swift_prefixes); i++) {
		if (!strncmp(symbol, swift_prefixes[i], strlen(swift_prefixes[i])))
			return true;
	}
	return false;
}

static bool is_d(const char *symbol)
{
	return !strncmp(symbol, "_D", 2) &&
	       (isdigit((unsigned char)symbol[2]) || !strcmp(symbol, "_Dmain") ||
		!strncmp(symbol, "_D__", 4));
}

bool demangle_isolated__knows(const char *symbol)
{
	return is_d(symbol) || is_swift(symbol);
}

static struct swift load_swift(void)
{
	struct swift swift = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(swift_libraries); i++) {
		void *library = dlopen(swift_libraries[i], RTLD_NOW | RTLD_LOCAL);

		if (!library)
			continue;
		swift.full = (swift_demangle_fn)dlsym(library, "swift_demangle_getDemangledName");
		swift.simple = (swift_demangle_fn)dlsym(
			library, "swift_demangle_getSimplifiedDemangledName");
		if (swift.full && swift.simple)
			break;
		swift = (struct swift){ 0 };
	}
	return swift;
}

struct demanglers {
	bool has_swift; /* a name is Swift's */
	struct swift swift;
};

/* Loads the library, which has tens of megabytes, before the worker loses the right to open files. */
static void prepare(void *context)
{
	struct demanglers *demanglers = context;

	if (demanglers->has_swift)
		demanglers->swift = load_swift();
}

static void clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ')
			*text = '?';
}

/* Writes the names to the reply; NULL: the name cannot be demangled, or is too long. */
static void put_names(struct wire_writer *reply, char *name, char *full_name)
{
	bool fits = name && full_name && *name && strlen(name) < DEMANGLED_SIZE &&
		    strlen(full_name) < DEMANGLED_SIZE;

	if (fits) {
		clean(name);
		clean(full_name);
	}
	wire__put_string(reply, fits ? name : NULL);
	wire__put_string(reply, fits ? full_name : NULL);
}

static void put_swift(const struct swift *swift, const char *symbol, struct wire_writer *reply)
{
	static char full[SWIFT_SIZE], simple[SWIFT_SIZE];
	size_t full_size = swift->full ? swift->full(symbol, full, sizeof(full)) : 0;
	size_t simple_size = swift->full ? swift->simple(symbol, simple, sizeof(simple)) : 0;
	bool fits = full_size && simple_size && full_size < sizeof(full) &&
		    simple_size < sizeof(simple);

	put_names(reply, fits ? simple : NULL, fits ? full : NULL);
}

static void put_d(const char *symbol, struct wire_writer *reply)
{
	_cleanup_(free_ptr) char *full = dlang_demangle(symbol, DMGL_PARAMS | DMGL_ANSI);
	_cleanup_(free_ptr) char *simple = full ? demangle_simple__d(full) : NULL;

	put_names(reply, simple, full);
}

static int put_other(const char *symbol, struct wire_writer *reply)
{
	_cleanup_(free_ptr) char *full = NULL;
	_cleanup_(free_ptr) char *simple = NULL;
	int status = demangle_base__names(symbol, &simple, &full);

	put_names(reply, simple, full);
	return status < 0 ? status : 0;
}

/* Demangles the names of a request, in the worker. */
static int serve(struct worker_call *call)
{
	const struct demanglers *demanglers = call->context;
	size_t n = wire__get_count(&call->request, sizeof(__u32));
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		const char *symbol = wire__get_string(&call->request, UINT32_MAX);

		if (!symbol)
			return -EINVAL;
		if (is_swift(symbol))
			put_swift(&demanglers->swift, symbol, &call->reply);
		else if (is_d(symbol))
			put_d(symbol, &call->reply);
		else
			err = put_other(symbol, &call->reply);
	}
	return err;
}

/* Reads the names of a reply. Returns 0, -EPROTO or -ENOMEM. */
static int take_names(struct wire_reader *reply, struct isolated_name *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = wire__get_string(reply, DEMANGLED_SIZE);
		const char *full_name = wire__get_string(reply, DEMANGLED_SIZE);

		if (!name || !full_name)
			continue;
		names[i].name = strdup(name);
		names[i].full_name = strdup(full_name);
		if (!names[i].name || !names[i].full_name)
			return -ENOMEM;
	}
	return wire__is_read(reply) ? 0 : -EPROTO;
}

static void forget_names(struct isolated_name *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(names[i].name);
		free(names[i].full_name);
		names[i].name = names[i].full_name = NULL;
	}
}

/* Has the worker demangle names. Returns 0, -ENOMEM if this process has no memory, or -ECHILD if
 * the worker failed. */
static int run(struct worker *worker, struct isolated_name *names, size_t n)
{
	struct wire_writer request = { 0 };
	struct wire_reader reply;
	int err;

	wire__put_u64(&request, n);
	for (size_t i = 0; i < n; i++)
		wire__put_string(&request, names[i].symbol);
	if (request.has_failed) {
		wire__release(&request);
		return -ENOMEM;
	}
	err = worker__call(worker, &request, NULL, 0, &reply);
	wire__release(&request);
	if (err)
		return -ECHILD;
	err = take_names(&reply, names, n);
	if (err != -EPROTO)
		return err;
	forget_names(names, n);
	worker__refuse(worker);
	return -ECHILD;
}

static int run_all(struct worker *worker, struct isolated_name *names, size_t n)
{
	int failures = 0, err = 0;

	for (size_t i = 0, size; i < n && failures <= MAX_FAILURES; i += size) {
		size = n - i < AT_ONCE ? n - i : AT_ONCE;
		err = run(worker, names + i, size);
		/* Tries the names one by one, to find the one at which the worker fails. */
		for (size_t j = i; err == -ECHILD && j < i + size && failures <= MAX_FAILURES;
		     j++) {
			int one = run(worker, names + j, 1);

			failures += one == -ECHILD;
			if (one == -ENOMEM)
				return one;
		}
		if (err == -ENOMEM)
			return err;
	}
	return 0;
}

int demangle_isolated__run(struct isolated_name *names, size_t n)
{
	struct demanglers demanglers = { 0 };
	struct worker *worker = worker__new(&(struct worker_options){
		.name = "allocprof-names",
		.serve = serve,
		.prepare = prepare,
		.context = &demanglers,
		.timeout_ms = TIMEOUT_MS,
		.memory_bytes = MEMORY_BYTES,
	});
	int err;

	if (!worker)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		demanglers.has_swift |= is_swift(names[i].symbol);
	err = run_all(worker, names, n);
	worker__free(worker);
	return err;
}

/* DMGL_NO_RECURSE_LIMIT is not used, so that nested names do not overflow the stack. */
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
	/* @text may be NULL if @size is 0, which memcpy() does not permit. */
	if (!size)
		return;
	memcpy(demangled->text + demangled->size, text, size);
	demangled->size += size;
}

typedef int (*language_fn)(const char *symbol, int options, demangle_callbackref callback,
			   void *opaque);

/* Demangles a symbol. Returns 1 with @text, which the caller frees; 0 if @symbol is not of
 * @language; or -ENOMEM. */
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

/* Returns whether the name is C++; Rust's names look alike except for what is excluded here. */
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
