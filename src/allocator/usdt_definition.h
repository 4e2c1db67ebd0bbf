/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the USDT probes of a definition in a file; each location of a probe is a site
 * (allocprof-allocators(5)). */
#ifndef ALLOCPROF_USDT_DEFINITIONS_H
#define ALLOCPROF_USDT_DEFINITIONS_H

#include <linux/types.h>

#include "abi.h"

struct allocator;
struct error;
struct definition;

/* Maximum number of locations of one definition in one file: an inlined function may have many. */
#define USDT_MAX_SITES 512

/* USDT part of a site. */
struct usdt_site {
	__u64 semaphore_offset; /* file offset of the semaphore, 0: the probe is always enabled */
	struct ap_usdt arguments;
};

/*
 * Finds the probes of @definition, a definition of USDT probes, in the file @fd, which the caller keeps;
 * @path is for messages. -ENOENT: it has none, or its name does not match the definition's modules;
 * -ENOTSUP: one of them cannot be counted; -ENOEXEC, -EFBIG, -ENOMEM.
 */
int usdt_definition__read(int fd, const char *path, const struct definition *definition,
			  struct allocator **out, struct error *error);

/* Parses the argument descriptions of USDT notes, which are assembler operands. */

/*
 * Parses argument @number, from 0, of a note's argument string ("8@%rdi -4@$1 8@-16(%rbp)").
 * -ENOENT: there are fewer; -ENOTSUP: a location that cannot be read (floating point, a symbol);
 * -EINVAL: malformed.
 */
int usdt_operand__parse(const char *arguments, unsigned int number, struct ap_operand *out);

#endif
