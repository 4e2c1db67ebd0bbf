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

/* Maximum number of locations that the probes of one definition may have in one file; a probe in
 * an inlined function may have many. */
#define USDT_MAX_SITES 512

/* The part of a site that only USDT probes have. */
struct usdt_site {
	__u64 semaphore_offset; /* file offset of the semaphore, 0: the probe is always enabled */
	struct ap_usdt arguments;
};

/*
 * Finds the probes of @definition, a definition of USDT probes, in the file @fd, which the caller
 * keeps; @path is for messages. The caller frees *@out. Returns 0; -ENOENT if the file has none of
 * the probes, or its name does not match the definition's modules; -ENOTSUP if one of the probes
 * cannot be counted; -ENOEXEC, -EFBIG or -ENOMEM.
 */
int usdt_definition__read(int fd, const char *path, const struct definition *definition,
			  struct allocator **out, struct error *error);

/* Parses the argument descriptions of USDT notes, which are assembler operands. */

/*
 * Parses argument @number, counted from 0, of a note's argument string ("8@%rdi -4@$1
 * 8@-16(%rbp)"). Returns 0; -ENOENT if there are fewer arguments; -ENOTSUP if the argument's
 * location cannot be read (a floating-point register, a symbol); -EINVAL if the string is
 * malformed.
 */
int usdt_operand__parse(const char *arguments, unsigned int number, struct ap_operand *out);

#endif
