/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a profile in the formats that other tools read: allocprof-export(1). */
#ifndef ALLOCPROF_EXPORT_H
#define ALLOCPROF_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "selection.h"

struct error;
struct profile;
struct stack_view;

/* The pointers are the caller's. */
struct export_input {
	const struct profile *profile;
	const struct stack_view *view;	/* of @profile; with_locations, but for EXPORT_COLLAPSED */
	const struct selection *counts; /* filtered, by count's id - 1 */
	const struct selection *total;	/* the sum of @counts */
	bool selects_blocks;		/* filter__selects_blocks() */
	__u64 end_ns;			/* duration of the recording, or of its longest run */
	enum cost cost;			/* what EXPORT_COLLAPSED counts */
};

enum export_format {
	EXPORT_PPROF,
	EXPORT_SPEEDSCOPE,
	EXPORT_COLLAPSED,
	EXPORT_JSON,
	EXPORT_DHAT,
	EXPORT_HEAPTRACK, /* needs the numbers of COST_PEAK */
	EXPORT_FIREFOX,
	EXPORT_EVENTS, /* not of a profile: export_events__write() */
	EXPORT_FORMATS,
};

const char *export__format_name(enum export_format format);
/* The format called @name, or -ENOENT. */
int export__format_by_name(const char *name);
/* Whether a terminal cannot show it. */
bool export__is_binary(enum export_format format);

/* Whether @input can be written in @format, before anything is. 0, or a negative errno with @error set. */
int export__check(enum export_format format, const struct export_input *input, struct error *error);

/*
 * Writes @input, which was checked, to @to, in a format other than EXPORT_EVENTS, and flushes it, piece by piece: what it
 * needs beside @input are tables of the names and locations that occur. 0, -ENOMEM, or the negative errno
 * of the write.
 */
int export__write(enum export_format format, const struct export_input *input, FILE *to);

#endif
