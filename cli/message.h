/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one way to say something on stderr: "allocprof: <sentence>". */
#ifndef ALLOCPROF_MESSAGE_H
#define ALLOCPROF_MESSAGE_H

/* Control characters of what is said are shown as '?', so that names cannot steer the terminal. */
void message__print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
