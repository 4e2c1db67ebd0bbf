/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads from a file how it was built: the versions of its compilers and of the C library. */
#ifndef ALLOCPROF_BUILD_TEXT_H
#define ALLOCPROF_BUILD_TEXT_H

struct error;
struct parser;

#define BUILD_TEXT_BYTES 512

struct build_text {
	/* The strings of .comment, separated by "; ", such as "GCC: (Debian 12.2.0-14) 12.2.0"; "" if there
	 * are none. */
	char compiler[BUILD_TEXT_BYTES];
	/* If the file is glibc: what it calls itself, "GNU C Library (Debian GLIBC 2.36-9) stable release
	 * version 2.36"; else "". */
	char libc[BUILD_TEXT_BYTES];
};

/* Has a worker read them. They are printable and may be cut short. Returns 0 or a negative errno. */
int build_text__parse(struct parser *parser, int fd, const char *path, struct build_text *out);

#endif
