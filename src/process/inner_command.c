// SPDX-License-Identifier: GPL-3.0-or-later
#include "inner_command.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "command_path.h"
#include "path.h"

static bool is_known(const char *word)
{
	static const char *const names[] = {
		"chrt",	   "chronic", "env",	   "faketime", "gosu",	      "ionice",
		"nice",	   "nohup",   "numactl",   "prlimit",  "runuser",     "setarch",
		"setpriv", "setsid",  "softlimit", "stdbuf",   "systemd-cat", "taskset",
		"time",	   "timeout", "unbuffer",  "unshare",  "xvfb-run",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(path__name(word), names[i]))
			return true;
	return false;
}

/* The value if @word is @name=VALUE. */
static const char *value_of(const char *word, const char *name)
{
	size_t len = strlen(name);

	return strncmp(word, name, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}

static void note_assignment(const char *word, struct libraries_environment *changes)
{
	const char *preload = value_of(word, "LD_PRELOAD");
	const char *library_path = value_of(word, "LD_LIBRARY_PATH");

	if (preload)
		changes->preload = preload;
	if (library_path)
		changes->library_path = library_path;
}

static bool is_program(const char *word)
{
	_cleanup_(free_ptr) char *path = NULL;

	return *word && *word != '-' && !strchr(word, '=') &&
	       !command_path__find(word, getenv("PATH"), &path);
}

bool inner_command__find(struct inner_command *command)
{
	char *const *word = command->argv;
	struct libraries_environment changes = command->changes;
	bool is_env;

	if (!*word || !is_known(*word))
		return false;
	is_env = !strcmp(path__name(*word), "env");
	for (word++; *word && !is_program(*word); word++)
		if (is_env)
			note_assignment(*word, &changes);
	if (!*word)
		return false;
	*command = (struct inner_command){ word, changes };
	return true;
}
