/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The option for a demangling filter, and demangling with it. */
#ifndef ALLOCPROF_DEMANGLING_H
#define ALLOCPROF_DEMANGLING_H

struct error;
struct profile;

#define OPT_DEMANGLE_COMMAND 0x180

/* A row of an argp table, in @group. */
/* clang-format off */
#define DEMANGLING_OPTION_COMMAND(group)                                                           \
	{ "demangle-command", OPT_DEMANGLE_COMMAND, "COMMAND", 0,                                  \
	  "Filter for names that look mangled still, such as 'swift demangle --simplified'", group }
/* clang-format on */

/*
 * Demangles the names in @profile that are still mangled; @command is the filter, or NULL. A filter
 * that fails only causes a warning on stderr. 0 or a negative errno with @error set.
 */
int demangling__apply(const char *command, struct profile *profile, struct error *error);

#endif
