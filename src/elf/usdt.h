/* SPDX-License-Identifier: GPL-3.0-or-later */
/* USDT probes: places in code that a program's notes name (.note.stapsdt, as SystemTap's sdt.h and
 * include/allocprof.h write them). */
#ifndef ALLOCPROF_USDT_H
#define ALLOCPROF_USDT_H

#include <gelf.h>
#include <linux/types.h>

struct usdt_probe {
	const char *provider, *name; /* borrowed from the Elf */
	__u64 vaddr;		     /* of the probe's instruction, a nop */
	__u64 semaphore;	     /* vaddr of the counter that turns it on, 0: it is always on */
	const char *arguments;	     /* where they are, "" where it has none; borrowed too */
};

/* A function that returns nonzero ends the iteration, which then returns the same. */
typedef int (*usdt_fn)(const struct usdt_probe *probe, void *arg);

/* All that the file's notes name; what is damaged is left out. */
int usdt__for_each(Elf *elf, usdt_fn fn, void *arg);

#endif
