/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names for places of one ELF file, from whatever has them. */
#ifndef ALLOCPROF_SYMBOLS_MODULE_H
#define ALLOCPROF_SYMBOLS_MODULE_H

#include "arena.h"
#include "dwarf_places.h"

/* Sentences about a module end here. */
#define MODULE_TEXT_SIZE 2048

struct module_job {
	int fd; /* -1: @path is opened; borrowed */
	const char *path;
	const char *build_id; /* that the file has to have; "": any */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	struct place *places; /* by address, each there once */
	size_t n_places;
	/* Asked for the debug file of @build_id: 0 and its path, to be freed, or a negative errno;
	 * NULL: nobody can be asked. */
	int (*fetch)(void *context, const char *path, const char *build_id, char **debug_path);
	void (*progress)(void *context, size_t n_done);
	void *context;
	/* Filled in. */
	struct arena arena; /* what the places point to */
	bool wants_file;    /* fetch() would have been asked */
	char text[MODULE_TEXT_SIZE];
};

/* Fills the places and the text. 0 or -ENOMEM. */
int module_job__run(struct module_job *job);

#endif
