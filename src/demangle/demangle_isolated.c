// SPDX-License-Identifier: GPL-3.0-or-later
#include "demangle_isolated.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "coprocess.h"
#include "demangle_simple.h"

/* A usual name takes microseconds. */
#define NAME_SECONDS 1
#define TIMEOUT_MS   20000
/* Each restart costs a second at most; bounds what a hostile file can cost. */
#define MAX_RESTARTS 8
#define MAX_OUTPUT   (256UL << 20)
#define SWIFT_SIZE   65536

/* Returns the size of the text, 0 if @symbol cannot be demangled; truncates at @size. */
typedef size_t (*swift_demangle_fn)(const char *symbol, char *text, size_t size);

struct swift {
	swift_demangle_fn full, simple;
};

/*
 * The paths at which Debian and Swift's own packages install the library. No other directory is searched: we may be root.
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

static void print_line(const char *text, FILE *out)
{
	for (; text && *text; text++)
		putc((unsigned char)*text < ' ' ? '?' : *text, out);
	putc('\n', out);
}

static void answer_swift(const struct swift *swift, const char *symbol, FILE *out)
{
	static char full[SWIFT_SIZE], simple[SWIFT_SIZE];
	size_t full_size = swift->full ? swift->full(symbol, full, sizeof(full)) : 0;
	size_t simple_size = swift->full ? swift->simple(symbol, simple, sizeof(simple)) : 0;
	bool fits = full_size < sizeof(full) && simple_size < sizeof(simple);

	print_line(fits && full_size && simple_size ? simple : NULL, out);
	print_line(fits && full_size && simple_size ? full : NULL, out);
}

static void answer_d(const char *symbol, FILE *out)
{
	_cleanup_(free_ptr) char *full = dlang_demangle(symbol, DMGL_PARAMS | DMGL_ANSI);
	_cleanup_(free_ptr) char *simple = full ? demangle_simple__d(full) : NULL;

	print_line(simple, out);
	print_line(simple ? full : NULL, out);
}

/* Runs in the child: prints two lines for each name, empty ones if it cannot be demangled. */
static void serve(FILE *in, FILE *out)
{
	struct swift swift = load_swift();
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while ((len = getline(&line, &room, in)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		alarm(NAME_SECONDS);
		if (is_swift(line))
			answer_swift(&swift, line, out);
		else
			answer_d(line, out);
		alarm(0);
		/* If the next name crashes the child, the names before it are not lost. */
		if (fflush(out))
			break;
	}
	free(line);
}

static int make_input(const struct isolated_name *names, size_t n, char **input, size_t *size)
{
	FILE *file = open_memstream(input, size);

	if (!file)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		fprintf(file, "%s\n", names[i].symbol);
	return fclose(file) ? -ENOMEM : 0;
}

/* Terminates the line at *@at and moves *@at past it. NULL if the line is incomplete. */
static char *next_line(char **at)
{
	char *line = *at, *end = line ? strchr(line, '\n') : NULL;

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return line;
}

/* Returns the number of names that were answered, or -ENOMEM. */
static ssize_t read_answers(struct isolated_name *names, size_t n, char *output, size_t max_size)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const char *name = next_line(&output),
			   *full_name = name ? next_line(&output) : NULL;

		if (!full_name)
			break;
		if (!*name || strlen(full_name) > max_size || strlen(name) > max_size)
			continue;
		names[i].name = strdup(name);
		names[i].full_name = strdup(full_name);
		if (!names[i].name || !names[i].full_name)
			return -ENOMEM;
	}
	return i;
}

/* Runs one child. Returns how many of the names it answered before it ended, or -ENOMEM. */
static ssize_t run_once(struct isolated_name *names, size_t n, size_t max_size, int *failure)
{
	const struct coprocess coprocess = { .serve = serve,
					     .timeout_ms = TIMEOUT_MS,
					     .max_output = MAX_OUTPUT };
	_cleanup_(free_ptr) char *input = NULL;
	_cleanup_(free_ptr) char *output = NULL;
	size_t input_size, output_size;
	int err = make_input(names, n, &input, &input_size);

	if (err)
		return err;
	*failure = coprocess__run(&coprocess, input, input_size, &output, &output_size, NULL);
	return read_answers(names, n, output, max_size);
}

int demangle_isolated__run(struct isolated_name *names, size_t n, size_t max_size)
{
	for (int restarts = 0; n && restarts <= MAX_RESTARTS; restarts++) {
		int failure;
		ssize_t done = run_once(names, n, max_size, &failure);

		if (done < 0)
			return done;
		/* If a name crashed the child, go on with the name after it. */
		if (failure != -ECHILD || (size_t)done >= n)
			break;
		names += done + 1;
		n -= done + 1;
	}
	return 0;
}
