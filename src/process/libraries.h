/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists the shared libraries that a program will start with, by running its dynamic linker. */
#ifndef ALLOCPROF_LIBRARIES_H
#define ALLOCPROF_LIBRARIES_H

/*
 * Calls @fn with the path of each library that @program will be started with in this environment
 * (LD_LIBRARY_PATH, LD_PRELOAD, RUNPATH), by running `@interpreter --list @program`, as ldd(1)
 * does; the program itself does not run. Only for the linkers of glibc and musl: -ENOTSUP for
 * others. The list is a hint that saves time and may be incomplete. 0 or a negative errno.
 */
int libraries__list(const char *interpreter, const char *program,
		    void (*fn)(const char *path, void *context), void *context);

/*
 * The same for a command that runs the dynamic linker itself, "ld.so --library-path DIR PROGRAM …":
 * @argv, of which argv[0] is the file @linker. @fn gets the program first. -ENOTSUP if @linker is
 * no such linker, -ENOENT if no argument is a program.
 */
int libraries__list_started(const char *linker, char *const argv[],
			    void (*fn)(const char *path, void *context), void *context);

#endif
