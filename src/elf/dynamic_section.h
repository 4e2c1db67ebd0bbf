/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Has a worker read the dynamic section of a file: the libraries that the file needs, and where
 * they are searched. */
#ifndef ALLOCPROF_DYNAMIC_SECTION_H
#define ALLOCPROF_DYNAMIC_SECTION_H

#include <stdbool.h>
#include <stddef.h>

struct parser;

struct dynamic_section {
	bool is_program;       /* as elf_file__is_program() says */
	char *name;	       /* DT_SONAME; "" if there is none */
	char *rpath, *runpath; /* NULL if there is none */
	char **needed; /* in the order in which the linker loads them: DT_AUXILIARY, DT_FILTER, DT_NEEDED */
	size_t n_needed;
};

/* Returns 0, with @out, which the caller releases; -ENOEXEC or -ENOTSUP if this is no ELF file for
 * this machine; -ECHILD if it could not be read safely; or -ENOMEM. A file without a dynamic
 * section has an empty one. */
int dynamic_section__parse(struct parser *parser, int fd, const char *path,
			   struct dynamic_section *out);

/* Releases @section, which may be zeroed. */
void dynamic_section__release(struct dynamic_section *section);

#endif
