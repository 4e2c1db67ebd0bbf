/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names as programmers write them from names as linkers have them: C++, Rust, D and Swift. */
#ifndef ALLOCPROF_DEMANGLE_H
#define ALLOCPROF_DEMANGLE_H

#include <stdbool.h>

struct demangler;
struct error;

struct demangle_options {
	/* For names that look mangled and that nothing here can read, or NULL: a filter for /bin/sh
	 * that prints a line for each line it reads, such as "swift demangle --simplified". */
	const char *command;
	unsigned int timeout_ms; /* that the filter may take for all names; 0: half a minute */
};

/* 0, -ENOMEM, or -EINVAL with @error set. */
int demangler__new(const struct demangle_options *options, struct demangler **out,
		   struct error *error);
void demangler__free(struct demangler *demangler);

/*
 * Announces @symbol. Names that take another process (D, Swift, those for the filter) are read
 * together by demangler__run(), which is called after the last of them; without that they stay as
 * they are linked. C++ and Rust need neither. 0 or -ENOMEM.
 */
int demangler__add(struct demangler *demangler, const char *symbol);
/*
 * 0, -ENOMEM, or, where the filter failed, a negative errno with @error set: what it would have
 * named then stays as it is linked, everything else has its name.
 */
int demangler__run(struct demangler *demangler, struct error *error);

/*
 * @full_name has everything that the symbol tells, @name what is short enough for a report:
 * no parameters, return types, default template arguments, hashes and marks of clones. Both are the
 * caller's to free, and equal to @symbol, less its version, where that is not mangled or cannot be
 * read. 0 or -ENOMEM.
 */
int demangler__names(const struct demangler *demangler, const char *symbol, char **name,
		     char **full_name);

/* Whether @symbol begins as the names do that some compiler mangled. */
bool demangle__looks_mangled(const char *symbol);

#endif
