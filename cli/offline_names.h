/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names for a profile whose recording is over. */
#ifndef ALLOCPROF_OFFLINE_NAMES_H
#define ALLOCPROF_OFFLINE_NAMES_H

#include <stdbool.h>

struct error;
struct profile;
struct symbol_options;

/*
 * Looks up what profile__symbolize_offline() does, by files and servers that @options allow, and demangles.
 * @says_missing: files that cannot be used are named on stderr. 0 or a negative errno with @error set.
 */
int offline_names__add(struct profile *profile, const struct symbol_options *options,
		       bool says_missing, struct error *error);

#endif
