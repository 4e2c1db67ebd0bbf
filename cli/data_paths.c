// SPDX-License-Identifier: GPL-3.0-or-later
#include "data_paths.h"

#include <errno.h>

#include "error.h"
#include "options.h"

/* The last -i counts, as with other options; an operand with another name is an error. */
static int take_input(struct data_paths *paths, const char *path, bool is_argument,
		      struct error *error)
{
	if (paths->has_argument && is_argument)
		return error__set(
			error, -EINVAL,
			"one data file is read, not both %.256s and %.256s; leave one out, or compare "
			"them with `allocprof diff`",
			paths->input, path);
	if (is_argument ? paths->has_option : paths->has_argument)
		return error__set(
			error, -EINVAL,
			"the data file is named twice, as %.256s with -i and as %.256s without; "
			"leave one out",
			is_argument ? paths->input : path, is_argument ? path : paths->input);
	paths->input = path;
	paths->has_option |= !is_argument;
	paths->has_argument |= is_argument;
	return 0;
}

int data_paths__parse(struct data_paths *paths, int key, char *arg, struct error *error)
{
	switch (key) {
	case 'i':
		return take_input(paths, arg, false, error);
	case 'o':
		paths->output = arg;
		return 0;
	case OPTIONS_OPERAND:
		return take_input(paths, arg, true, error);
	default:
		return OPTIONS_UNKNOWN;
	}
}
