/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sources of memory that the user defines, besides the allocators that are known: pools, allocators of a program's
 * own (allocprof-allocators(5)). Their functions become rows of the same kind as those of interface.h.
 */
#ifndef ALLOCPROF_SOURCES_H
#define ALLOCPROF_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "interface.h"
#include "source_names.h"

struct error;

/* What stands for the kernel among definitions. */
#define SOURCES_MAPPINGS "mmap"

struct source_function {
	char *name; /* as symbol tables have it */
	struct interface_function interface;
};

struct source {
	const char *name; /* in the section's head */
	char *text;	  /* owns @name */
	__u32 index;	  /* of its name in sources.names */
	enum ap_nesting nesting;
	__u8 blocks;	     /* AP_BLOCKS_OF_MALLOC, AP_NO_BLOCKS, or index + 1 */
	bool is_usdt;	     /* its functions are USDT probes, "provider:name" */
	bool returns_probed; /* by return probes: nothing unwinds through its functions */
	char **modules;	     /* patterns of file names or SONAMEs, or paths; none: any file */
	size_t n_modules;
	struct source_function *functions;
	size_t n_functions;
};

/* All of a run. */
struct sources {
	struct source list[AP_MAX_SOURCES];
	size_t n;
	struct source_names names;
	bool mappings; /* anonymous memory that is taken from the kernel, too; not with live */
};

/*
 * Adds the sources of a list of definitions, separated by commas: names of those that come with allocprof, or paths,
 * each with ":beside" or ":outermost" behind it where that is to replace what they say. With @error set -EINVAL for
 * what is no definition, -ENOENT, -EFBIG, or what reading said; or -ENOMEM.
 */
int sources__add_files(struct sources *sources, const char *list, struct error *error);

/*
 * Adds what --probe was given: the lines of a definition, separated by commas. @modules, NULL-terminated, say where
 * it is looked for if the text does not. As above.
 */
int sources__add_probe(struct sources *sources, const char *text, const char *const *modules,
		       struct error *error);

/*
 * Adds what --usdt was given: a file, a colon, and the lines of a definition of USDT probes, separated by commas. As
 * above.
 */
int sources__add_usdt(struct sources *sources, const char *text, struct error *error);

void sources__release(struct sources *sources);

/* Whether there is anything that counts besides the allocators. */
bool sources__any(const struct sources *sources);
bool sources__has_mappings(const struct sources *sources);
bool sources__any_usdt(const struct sources *sources);

/* Whether calls beneath those of one of them do not count. */
bool sources__any_outermost(const struct sources *sources);

/* Whether the source may be in the file at @path, which is linked by @soname ("" where it has none). */
bool source__is_in(const struct source *source, const char *path, const char *soname);

/* The function of the source that is called so, or NULL. */
const struct source_function *source__find(const struct source *source, const char *name);

/* The names of those definitions that come with allocprof, NULL-terminated. */
const char *const *sources__shipped(void);

#endif
