/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PRELOAD_INTERNAL_H
#define ALLOCPROF_PRELOAD_INTERNAL_H

#include "preload.h"

struct preload {
	char directory[INSIDE_PATH_BYTES];
	char *library;
	/* Read and written by pread(2) and pwrite(2): a process that cuts the file off would end us through
	 * a mapping. */
	int memory_fd;
	int directory_fd;
};

#endif
