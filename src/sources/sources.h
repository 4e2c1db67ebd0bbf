/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sources that the user defines besides the known allocators: pools, a program's own allocators
 * (allocprof-allocators(5)). Their functions have rows like those of interface.h.
 */
#ifndef ALLOCPROF_SOURCES_H
#define ALLOCPROF_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "interface.h"
#include "source_names.h"

struct error;

/* Pseudo definition of the kernel's anonymous mappings. */
#define SOURCES_MAPPINGS "mmap"

struct source_function {
	char *name; /* symbol name, or "provider:name" */
	struct interface_function interface;
};

struct source {
	const char *name; /* from the section head */
	char *text;	  /* owns @name */
	__u32 index;	  /* in sources.names */
	enum ap_nesting nesting;
	__u8 blocks;	     /* AP_BLOCKS_OF_MALLOC, AP_NO_BLOCKS, or index + 1 */
	bool is_usdt;	     /* its functions are USDT probes, "provider:name" */
	bool returns_probed; /* return probes are allowed: nothing unwinds through its functions */
	char **modules;	     /* patterns of file names or SONAMEs, or paths; none: any file */
	size_t n_modules;
	struct source_function *functions;
	size_t n_functions;
};

struct sources {
	struct source list[AP_MAX_SOURCES];
	size_t n;
	struct source_names names;
	bool mappings; /* count anonymous mappings; not with live */
};

/*
 * Adds a comma-separated list of definitions: names of those shipped with allocprof, or paths, each
 * with an optional ":beside" or ":outermost" that overrides its nesting. With *@error set: -EINVAL
 * for a malformed definition, -ENOENT, -EFBIG, or the error of reading; or -ENOMEM.
 */
int sources__add_files(struct sources *sources, const char *list, struct error *error);

/*
 * Adds the argument of --probe: lines of a definition, separated by commas. @modules,
 * NULL-terminated, are the files to search unless the text names any. Errors as above.
 */
int sources__add_probe(struct sources *sources, const char *text, const char *const *modules,
		       struct error *error);

/*
 * Adds the argument of --usdt: a file, a colon, and lines of a definition of USDT probes, separated
 * by commas. Errors as above.
 */
int sources__add_usdt(struct sources *sources, const char *text, struct error *error);

void sources__release(struct sources *sources);

/* Whether anything counts besides the allocators. */
bool sources__any(const struct sources *sources);
bool sources__has_mappings(const struct sources *sources);
bool sources__any_usdt(const struct sources *sources);

/* Whether some source is AP_NESTING_OUTERMOST. */
bool sources__any_outermost(const struct sources *sources);

/* Whether the file at @path with @soname ("" if it has none) matches the source's modules. */
bool source__is_in(const struct source *source, const char *path, const char *soname);

/* The source's function @name, or NULL. */
const struct source_function *source__find(const struct source *source, const char *name);

/* Names of the definitions shipped with allocprof, NULL-terminated. */
const char *const *sources__shipped(void);

#endif
