/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Symbolizes a profile after its recording has ended. */
#ifndef ALLOCPROF_OFFLINE_NAMES_H
#define ALLOCPROF_OFFLINE_NAMES_H

#include <stdbool.h>

struct error;
struct profile;
struct symbol_options;

/*
 * Runs profile__symbolize_offline() with the directories and servers of @options, then demangles.
 * @says_missing: print on stderr which files cannot be used. 0 or a negative errno with @error set.
 */
int offline_names__add(struct profile *profile, const struct symbol_options *options,
		       bool says_missing, struct error *error);

#endif
