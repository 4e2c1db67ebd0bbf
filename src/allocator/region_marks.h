/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Marks of regions in a file (docs/regions.md), as include/allocprof.h writes them. */
#ifndef ALLOCPROF_REGION_MARKS_H
#define ALLOCPROF_REGION_MARKS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "region_abi.h"

struct error;
struct parser;

/* Maximum number of marks of one file that are read. A macro in a template or an inlined function
 * may make many. */
#define REGION_MARKS_MAX 4096

struct region_mark {
	enum ap_region_mark kind;
	/* A nop is at the mark; a probe on another instruction might damage it. */
	bool is_at_nop;
	__u64 offset;			     /* file offset of the nop */
	char name[AP_REGION_NAME_BYTES + 1]; /* printable; "" for those that name no region */
};

struct region_marks {
	struct region_mark *list;
	size_t n;
	size_t n_unnamed; /* marks that are not in the list, since their names cannot be printed or are too long */
	bool has_more;	/* there are more than REGION_MARKS_MAX */
	bool has_calls; /* the file imports the function that the marks call */
};

/* Returns whether marks of this kind have a region's name. */
static inline bool region_mark__is_named(enum ap_region_mark kind)
{
	return kind <= AP_REGION_RESUME && kind != AP_REGION_LEAVE;
}

/* Has a worker read the marks in the file @fd. Returns 0; -ENOEXEC if the file is no ELF file;
 * -ECHILD, with *@error set, if it could not be read safely; or -ENOMEM. */
int region_marks__parse(struct parser *parser, int fd, const char *path, struct region_marks *out,
			struct error *error);
void region_marks__release(struct region_marks *marks);

/* Returns whether @name is not empty, not too long, and can be printed. */
bool region_name__is_good(const char *name);

#endif
