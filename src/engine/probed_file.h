/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file with functions that hand out memory, and how each of them is measured. */
#ifndef ALLOCPROF_PROBED_FILE_H
#define ALLOCPROF_PROBED_FILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"

struct allocator;
struct definition;

/* All strings belong to the session or list from which the file comes; those of a session are
 * valid until it reads further events. */
struct probed_file {
	const char *path;
	const char *build_id;		   /* "" if the file has none */
	const struct allocator *allocator; /* NULL: a program without a named allocator */
	/* Why calls may have been missed; "": the file was measured from the start. */
	const char *gap;
	/* With --live: why its blocks are not followed; "": they are. */
	const char *live_gap;
};

/* A measured function. */
struct probed_function {
	enum ap_function function;
	char *const *aliases; /* every other name at its address */
	size_t n_aliases;
	__u64 entry_offset;	 /* file offset of its entry */
	__u64 distance_bytes;	 /* from the entry to the probe */
	const char *instruction; /* the probed instruction in AT&T syntax */
	const char *slow_reason; /* why the kernel cannot emulate it, a clause; NULL: it can */
	bool is_slow_with_live;	 /* --live probes its return, too, and needs the entry for that */
};

/* Stores the measured function number @index. Returns false if there are fewer. */
bool probed_file__function(const struct probed_file *file, size_t index,
			   struct probed_function *out);

/* Returns the name of the exported function number @index whose effect on blocks is unknown, or
 * NULL. *@ends: it is known to end blocks, but not which ones. */
const char *probed_file__unknown(const struct probed_file *file, size_t index, bool *ends);

/* Returns whether the file has function number @function of @definition. */
bool probed_file__has(const struct probed_file *file, const struct definition *definition,
		      size_t function);

#endif
