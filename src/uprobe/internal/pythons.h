/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Interpreters of CPython in the files that are mapped: tells the programs where they have their frames, and puts the frames of Python
 * that come with a stack in the place of those of the interpreter's loop.
 */
#ifndef ALLOCPROF_PYTHONS_H
#define ALLOCPROF_PYTHONS_H

#include <linux/types.h>
#include <stddef.h>

struct collector_code;
struct parser;
struct pythons;

/* @map is that of the programs. @max_depth: of stacks. Returns NULL if there is no memory. */
struct pythons *pythons__new(int map_fd, struct parser *parser, __u32 max_depth);
void pythons__free(struct pythons *pythons);

/* To be called when a file is met, before any stack with a frame of it can end as complete. Sets *@loop if it has an interpreter whose
 * frames are found. Returns 0 or a negative errno. */
int pythons__meet(struct pythons *pythons, __u32 module, int fd, const char *path,
		  struct collector_code *loop);

/* Makes of a record of the programs one for the collector: *@record may be replaced by one that is valid until the next call. Returns 0 or
 * -ENOMEM. */
int pythons__translate(struct pythons *pythons, const void **record, size_t *size);

#endif
