/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A worker reads the dynamic section of a file: the libraries that it needs, and where they are searched. */
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

/* 0, and @out is released by the caller; -ENOEXEC, -ENOTSUP: no ELF file of this machine; -ECHILD: it could not be read
 * safely; -ENOMEM. A file without a dynamic section has an empty one. */
int dynamic_section__parse(struct parser *parser, int fd, const char *path,
			   struct dynamic_section *out);

/* Accepts a zeroed one. */
void dynamic_section__release(struct dynamic_section *section);

#endif
