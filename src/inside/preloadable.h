/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decides whether this library can be preloaded into a program. */
#ifndef ALLOCPROF_INSIDE_PRELOADABLE_H
#define ALLOCPROF_INSIDE_PRELOADABLE_H

#include <linux/types.h>
#include <stdbool.h>

/* A program that is to be executed: @path, relative to the directory @at, or the file @at itself
 * if the path is empty. */
struct program {
	int at;
	const char *path;
};

/* Returns whether the executed program will be able to open the measurement's files; if not, the
 * dynamic linker would print an error. */
bool directory__is_reachable(const char *directory);

/* Returns whether the path is in readable memory. */
bool program__has_path(const struct program *program);

/* Returns an enum inside_refusal, or -1 if the library can be preloaded into @program. @looks:
 * also check whether the program has a malloc of its own; without that the program itself finds
 * out when it runs. */
int program__refusal(const struct program *program, bool looks);

/* Returns whether a value of LD_PRELOAD names a sanitizer's library (-fsanitize=address, thread,
 * leak and so on), whose allocator must be the first. */
bool sanitizer__is_preloaded(const char *value);

#endif
