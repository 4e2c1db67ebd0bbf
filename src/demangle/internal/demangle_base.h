/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Demangles names of C++ and Rust in this process. */
#ifndef ALLOCPROF_DEMANGLE_BASE_H
#define ALLOCPROF_DEMANGLE_BASE_H

#include <stdbool.h>

/* A mangled name of 100 bytes can expand to gigabytes; longer ones stay mangled. */
#define DEMANGLED_SIZE 8192

/* Whether @base is a C++ name in clear, without parameters, as DWARF has it in place of a linkage name. */
bool demangle_base__is_cxx_text(const char *base);

/* Both forms of @base, a name without clone suffix, to be freed: 1, 0 if it cannot be demangled, or -ENOMEM. */
int demangle_base__names(const char *base, char **name, char **full_name);

#endif
