/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Allocators that the user defines besides the known ones: pools, a program's own allocators
 * (allocprof-allocators(5)). Their functions have rows like those of interface.h. Functions that are
 * only counted are defined in the same way.
 */
#ifndef ALLOCPROF_DEFINITIONS_H
#define ALLOCPROF_DEFINITIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "interface.h"
#include "definition_names.h"

struct error;

/* Pseudo definition of the kernel's anonymous mappings. */
#define DEFINITIONS_MAPPINGS "mmap"
/* Pseudo definition of page faults. */
#define DEFINITIONS_FAULTS "faults"

struct definition_function {
	char *name; /* symbol name, or "provider:name" */
	/* Exported variable through which a function that is only counted goes on, or NULL. */
	char *word;
	struct interface_function interface;
};

struct definition {
	const char *name; /* name in the section's head */
	char *text;	  /* owns @name */
	__u32 index;	  /* its index in definitions.names */
	enum ap_nesting nesting;
	__u8 blocks; /* AP_BLOCKS_OF_MALLOC, AP_ONLY_COUNTED, AP_NO_BLOCKS, or index + 1 */
	char *switch_name; /* exported byte that has to be 1 for functions to go through their words, or NULL */
	/* The exported function that copies the table by which the allocator's functions go on (domain), or NULL, and its
	 * first argument. */
	char *domain;
	__u32 domain_number;
	bool is_usdt;	     /* its functions are USDT probes, "provider:name" */
	bool returns_probed; /* return probes are allowed: nothing unwinds through its functions */
	char **modules;	     /* patterns of file names or SONAMEs, or paths; none: any file */
	size_t n_modules;
	struct definition_function *functions;
	size_t n_functions;
};

struct definitions {
	struct definition list[AP_MAX_DEFINITIONS];
	size_t n;
	struct definition_names names;
	bool mappings; /* count anonymous mappings, too */
	bool faults;   /* count page faults, too; not with --live */
};

/*
 * Adds a comma-separated list of definitions: names of those shipped with allocprof, or paths,
 * each with an optional ":beside" or ":outermost" that overrides its nesting. Returns 0; with
 * @error set -EINVAL for a malformed definition, -ENOENT, -EFBIG, or the error of reading; or
 * -ENOMEM.
 */
int definitions__add_files(struct definitions *definitions, const char *list, struct error *error);

/*
 * Adds the argument of --probe: lines of a definition, separated by commas. @modules,
 * NULL-terminated, are the files to search unless the text names any. Fails with the errors of
 * definitions__add_files().
 */
int definitions__add_probe(struct definitions *definitions, const char *text,
			   const char *const *modules, struct error *error);

/*
 * Adds the argument of --usdt: a file, a colon, and lines of a definition of USDT probes,
 * separated by commas. Fails with the errors of definitions__add_files().
 */
int definitions__add_usdt(struct definitions *definitions, const char *text, struct error *error);

void definitions__release(struct definitions *definitions);

/* Returns whether anything but the known allocators counts. */
bool definitions__any(const struct definitions *definitions);
bool definitions__has_mappings(const struct definitions *definitions);
bool definitions__has_faults(const struct definitions *definitions);
/* Returns whether something counts in every program, whether it has an allocator or not. */
bool definitions__count_in_all(const struct definitions *definitions);
bool definitions__any_usdt(const struct definitions *definitions);
/* Returns whether some probe tells of samples, which count by their weight (weight=). */
bool definitions__any_weight(const struct definitions *definitions);

/* Returns whether functions are only counted. */
bool definitions__any_counted(const struct definitions *definitions);
bool definition__only_counts(const struct definition *definition);

/* Returns whether some definition has AP_NESTING_OUTERMOST. */
bool definitions__any_outermost(const struct definitions *definitions);

/* Returns whether the definition's modules match the file at @path with @soname ("" if it has
 * none). */
bool definition__is_in(const struct definition *definition, const char *path, const char *soname);

/* Returns the definition's function @name, or NULL. */
const struct definition_function *definition__find(const struct definition *definition,
						   const char *name);

/* Returns the names of the definitions shipped with allocprof, NULL-terminated. */
const char *const *definitions__shipped(void);

#endif
