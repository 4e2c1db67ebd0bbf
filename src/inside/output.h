/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Has a process keep its counts in a file of its own, with nobody beside it, where the environment asks for that:
 * ALLOCPROF_OUTPUT is the pattern of the file's path, ALLOCPROF_SETTINGS what is counted. See docs/inside.md.
 */
#ifndef ALLOCPROF_INSIDE_OUTPUT_H
#define ALLOCPROF_INSIDE_OUTPUT_H

#include <stdbool.h>

/* Reads the environment that the program was executed with. Returns whether it asks for a file. */
bool output__read(void);

/* Returns whether the last output__read() has returned true. */
bool output__is_on(void);

/* Makes a file for this process, as whose header memory__header() is known from then on. To be called again
 * in a forked child. Returns false if there can be none; then the header is the one from before. */
bool output__begin(void);

#endif
