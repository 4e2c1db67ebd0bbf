// SPDX-License-Identifier: GPL-3.0-or-later
#include "translator.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "error.h"
#include "path.h"
#include "refusal_abi.h"

bool translator__is_one(const char *path)
{
#define WORD(text) text,
	static const char *const names[] = { TRANSLATOR_NAMES(WORD) };
	static const char *const directories[] = { TRANSLATOR_DIRECTORIES(WORD) };
#undef WORD
	const char *name = path__name(path);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		if (strstr(path, directories[i]))
			return true;
	return false;
}

int translator__refuse(const char *path, struct error *error)
{
	if (!translator__is_one(path))
		return 0;
	return error__set(
		error, -ENOTSUP,
		"%s runs copies of its program's code, which would end at the first probe; "
		"measure the program without it",
		path);
}

int translator__refuse_process(int pid, struct error *error)
{
	char link[64], path[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return 0;
	path[length] = '\0';
	return translator__refuse(path, error);
}
