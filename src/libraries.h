/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which shared libraries a program will start with, asked of its own dynamic linker. */
#ifndef ALLOCPROF_LIBRARIES_H
#define ALLOCPROF_LIBRARIES_H

/*
 * Calls @fn with the path of each library that @program will be started with in this environment
 * (LD_LIBRARY_PATH, LD_PRELOAD, RUNPATH), by running `@interpreter --list @program`, as ldd(1) does;
 * the program itself does not run. Only for glibc's and musl's linkers: -ENOTSUP for others. It is a
 * hint that saves time: what fails is left out. 0 or a negative errno.
 */
int libraries__list(const char *interpreter, const char *program,
		    void (*fn)(const char *path, void *context), void *context);

#endif
