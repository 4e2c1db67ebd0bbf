/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Demangles linkage names of C++, Rust, D and Swift. */
#ifndef ALLOCPROF_DEMANGLE_H
#define ALLOCPROF_DEMANGLE_H

#include <stdbool.h>

struct demangler;
struct error;

struct demangle_options {
	/*
	 * A filter for names that look mangled and cannot be demangled here, or NULL: a command
	 * for /bin/sh that prints a line for each line that it reads, such as "swift demangle
	 * --simplified".
	 */
	const char *command;
	unsigned int timeout_ms; /* time limit for all names together; 0: half a minute */
};

/* Makes a demangler. Returns 0, -ENOMEM, or -EINVAL with @error set. */
int demangler__new(const struct demangle_options *options, struct demangler **out,
		   struct error *error);
void demangler__free(struct demangler *demangler);

/*
 * Announces @symbol. Announced symbols are demangled together by demangler__run(), in other
 * processes, and stay mangled until then. C++ and Rust symbols that were not announced are
 * demangled in this process. Returns 0 or -ENOMEM.
 */
int demangler__add(struct demangler *demangler, const char *symbol);
/* Demangles the announced symbols. Returns 0, -ENOMEM or, if the filter failed, a negative errno
 * with @error set: then the names for the filter stay mangled, and all others are demangled. */
int demangler__run(struct demangler *demangler, struct error *error);

/*
 * Stores the names of @symbol: @full_name has everything that @symbol encodes; @name is short
 * enough for a report: without parameters, return types, default template arguments, hashes and
 * clone suffixes. The caller frees both. They equal @symbol without its version if it is not
 * mangled or cannot be demangled. Returns 0 or -ENOMEM.
 */
int demangler__names(const struct demangler *demangler, const char *symbol, char **name,
		     char **full_name);

/* Returns whether @symbol has the prefix of a known mangling. */
bool demangle__looks_mangled(const char *symbol);

#endif
