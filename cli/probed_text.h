/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints the probed functions of a file, one per line. */
#ifndef ALLOCPROF_PROBED_TEXT_H
#define ALLOCPROF_PROBED_TEXT_H

struct probed_file;

void probed_text__print(const struct probed_file *file, void (*print)(const char *line));

#endif
