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

/*
 * The same for a command that names the dynamic linker itself, "ld.so --library-path DIR PROGRAM …":
 * @argv, of which argv[0] is the file @linker. @fn gets the program too, first. -ENOTSUP where @linker
 * is no such linker, -ENOENT where no argument is a program.
 */
int libraries__list_started(const char *linker, char *const argv[],
			    void (*fn)(const char *path, void *context), void *context);

#endif
