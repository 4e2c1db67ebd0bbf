/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds out, in a worker, what kind of program a target's file is. */
#ifndef ALLOCPROF_PROGRAM_KIND_H
#define ALLOCPROF_PROGRAM_KIND_H

#include <stdbool.h>

struct parser;

struct program_kind {
	bool is_program, is_static, is_go; /* as elf_file.h says */
	bool is_python;			   /* CPython: the program, or its library */
	char interpreter[256];		   /* "" if there is none */
};

/* Returns 0; -ENOEXEC or -ENOTSUP if this is no ELF file for this machine; -ECHILD if it could not
 * be read safely. */
int program_kind__parse(struct parser *parser, int fd, const char *path, struct program_kind *out);

#endif
