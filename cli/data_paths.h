/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Input and output files of the commands that read a data file. */
#ifndef ALLOCPROF_DATA_PATHS_H
#define ALLOCPROF_DATA_PATHS_H

#include <argp.h>
#include <stdbool.h>

#include "data_file.h"

struct error;

/* A command's args_doc, and the equivalent option. */
#define DATA_PATHS_ARGS "[FILE]"
#define DATA_PATHS_INPUT                                                                           \
	{                                                                                          \
		"input", 'i', "FILE", 0,                                                           \
			"The same as the argument FILE (default: allocprof.data)", 0               \
	}

/* The strings are the caller's. */
struct data_paths {
	const char *input;
	const char *output; /* NULL: not given */
	bool has_option, has_argument;
};

#define DATA_PATHS_DEFAULT                                                                         \
	{                                                                                          \
		.input = DATA_FILE_DEFAULT                                                         \
	}

/* Takes 'i', 'o' and OPTIONS_OPERAND. 0, -EINVAL with @error set, or OPTIONS_UNKNOWN. */
int data_paths__parse(struct data_paths *paths, int key, char *arg, struct error *error);

#endif
