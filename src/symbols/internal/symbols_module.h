/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Looks up addresses of one ELF file in all available sources. */
#ifndef ALLOCPROF_SYMBOLS_MODULE_H
#define ALLOCPROF_SYMBOLS_MODULE_H

#include "arena.h"
#include "dwarf_places.h"

/* Sentences about a module are truncated at this size. */
#define MODULE_TEXT_SIZE 2048

struct module_job {
	int fd; /* -1: @path is opened; borrowed */
	const char *path;
	const char *build_id; /* required build id; "": any */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	struct place *places; /* sorted by address, unique */
	size_t n_places;
	/* Fetches the debug file of @build_id: 0 and its path, to be freed, or a negative errno;
	 * NULL: no servers. */
	int (*fetch)(void *context, const char *path, const char *build_id, char **debug_path);
	void (*progress)(void *context, size_t n_done);
	void *context;
	/* Results. */
	struct arena arena; /* memory of the places' lines */
	bool wants_file;    /* fetch() could have found a better file */
	char text[MODULE_TEXT_SIZE];
};

/* Fills the places and the text. 0 or -ENOMEM. */
int module_job__run(struct module_job *job);

#endif
