/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds out which blocks of a process can still be reached: each aligned word of its memory that
 * has an address within a block points to that block. The classes are those of valgrind's memcheck.
 */
#ifndef ALLOCPROF_REACH_SCAN_H
#define ALLOCPROF_REACH_SCAN_H

#include <linux/types.h>
#include <stddef.h>

struct reach_blocks;
struct reach_roots;

enum reach_class {
	REACH_UNKNOWN,
	/* Pointers to beginnings of blocks lead here, from outside of all blocks. A pointer to the
	 * inside counts as such a one where C++ programs have it: behind the number of an array's
	 * elements, at a base class with a table of virtual functions, and in old std::string. */
	REACH_REACHABLE,
	REACH_POSSIBLE, /* there is a way, which passes a pointer to the inside of a block */
	REACH_INDIRECT, /* only blocks that are lost point here */
	REACH_LOST,	/* nothing points here, or only what can be reached from here */
	REACH_CLASSES,
};

struct reach_figures {
	__u64 read_bytes;
	__u64 unread_bytes; /* of memory that could not be read */
};

/*
 * Sets the class of each block in @classes. Reads the process's memory from @memory, which is its
 * /proc/PID/mem, and from @pagemap which of its pages there are; the process should stand still.
 * Returns 0 or -ENOMEM.
 */
int reach_scan__run(const struct reach_blocks *blocks, const struct reach_roots *roots, int memory,
		    int pagemap, __u8 *classes, struct reach_figures *figures);

#endif
