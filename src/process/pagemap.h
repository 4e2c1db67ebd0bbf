/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Defines the entries of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). */
#ifndef ALLOCPROF_PAGEMAP_H
#define ALLOCPROF_PAGEMAP_H

#include <linux/types.h>
#include <unistd.h>

#define PAGEMAP_PRESENT	  (1ULL << 63)
#define PAGEMAP_SWAPPED	  (1ULL << 62)
#define PAGEMAP_FILE	  (1ULL << 61) /* a page of a file, or of shared memory */
#define PAGEMAP_EXCLUSIVE (1ULL << 56) /* no other process has mapped the page */

/* Returns how many bytes of memory an entry tells of. */
static inline __u64 pagemap__page_bytes(void)
{
	return (__u64)sysconf(_SC_PAGESIZE);
}

#endif
