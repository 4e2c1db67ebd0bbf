/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether this library can be preloaded into a program. */
#ifndef ALLOCPROF_INSIDE_PRELOADABLE_H
#define ALLOCPROF_INSIDE_PRELOADABLE_H

#include <linux/types.h>
#include <stdbool.h>

/* A program that is executed: by path, relative to the directory @at, or by the descriptor @at where the
 * path is empty. */
struct program {
	int at;
	const char *path;
};

/* Whether the files of the measurement can be opened: the dynamic linker complains where it finds no library. */
bool directory__is_reachable(const char *directory);

/* Returns whether the path is in memory that can be read. */
bool program__has_path(const struct program *program);

/* enum inside_refusal, or -1 if the library can be preloaded into @program. @looks: also whether it has a malloc of
 * its own; without, that is found when it runs. */
int program__refusal(const struct program *program, bool looks);

/* Whether one of the libraries in a value of LD_PRELOAD is a sanitizer's (-fsanitize=address, thread, leak and so on), whose
 * allocator must be the first. */
bool sanitizer__is_preloaded(const char *value);

#endif
