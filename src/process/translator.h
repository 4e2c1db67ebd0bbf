/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs that run copies of other programs' code. A breakpoint is copied too, and the kernel does not know
 * it there as a probe: what is translated ends with SIGTRAP. */
#ifndef ALLOCPROF_TRANSLATOR_H
#define ALLOCPROF_TRANSLATOR_H

struct error;

/* 0, or -ENOTSUP and the sentence where the program at @path is known to be one, by its name. */
int translator__refuse(const char *path, struct error *error);

/* The same of the program that process @pid runs; 0 where that cannot be told. */
int translator__refuse_process(int pid, struct error *error);

#endif
