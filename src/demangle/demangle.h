/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Demangles linkage names of C++, Rust, D and Swift. */
#ifndef ALLOCPROF_DEMANGLE_H
#define ALLOCPROF_DEMANGLE_H

#include <stdbool.h>

struct demangler;
struct error;

struct demangle_options {
	/*
	 * A filter for names that look mangled and that we cannot demangle, or NULL: a command for
	 * /bin/sh that prints a line for each line it reads, such as "swift demangle --simplified".
	 */
	const char *command;
	unsigned int timeout_ms; /* for all names together; 0: half a minute */
};

/* 0, -ENOMEM, or -EINVAL with @error set. */
int demangler__new(const struct demangle_options *options, struct demangler **out,
		   struct error *error);
void demangler__free(struct demangler *demangler);

/*
 * Announces @symbol. What has been announced is demangled together by demangler__run(), in other processes, and stays
 * mangled before. Of C++ and Rust what has not been announced is demangled in this process. 0 or -ENOMEM.
 */
int demangler__add(struct demangler *demangler, const char *symbol);
/* 0, -ENOMEM, or, if the filter failed, a negative errno with @error set: the names for the filter
 * then stay mangled, all others are demangled. */
int demangler__run(struct demangler *demangler, struct error *error);

/*
 * @full_name has all that @symbol encodes; @name is short enough for a report: no parameters,
 * return types, default template arguments, hashes and clone suffixes. The caller frees both. They
 * equal @symbol without its version if that is not mangled or cannot be demangled. 0 or -ENOMEM.
 */
int demangler__names(const struct demangler *demangler, const char *symbol, char **name,
		     char **full_name);

/* Whether @symbol has the prefix of a known mangling. */
bool demangle__looks_mangled(const char *symbol);

#endif
