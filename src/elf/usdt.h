/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds USDT probes: addresses that notes in .note.stapsdt name, as SystemTap's sdt.h and
 * include/allocprof.h write them. */
#ifndef ALLOCPROF_USDT_H
#define ALLOCPROF_USDT_H

#include <gelf.h>
#include <linux/types.h>

struct usdt_probe {
	const char *provider, *name; /* borrowed from the Elf */
	__u64 vaddr;		     /* vaddr of the probe's instruction, a nop */
	__u64 semaphore;	     /* vaddr of the probe's enable counter; 0: always enabled */
	/* Operands of the arguments, "" if there are none; borrowed, too. */
	const char *arguments;
};

/* A nonzero result ends the iteration and is returned. */
typedef int (*usdt_fn)(const struct usdt_probe *probe, void *arg);

/* Iterates over all probes; skips damaged notes. */
int usdt__for_each(Elf *elf, usdt_fn fn, void *arg);

#endif
