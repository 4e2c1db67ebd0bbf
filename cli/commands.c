// SPDX-License-Identifier: GPL-3.0-or-later
/* The table of commands. */
#include "command.h"

#include <string.h>

/* In the order of `allocprof --help`. */
const struct command *const commands[] = {
	&cmd_stat,	 &cmd_record,	 &cmd_top,     &cmd_report, &cmd_graph,
	&cmd_flamegraph, &cmd_html,	 &cmd_folded,  &cmd_export, &cmd_query,
	&cmd_diff,	 &cmd_check,	 &cmd_ctl,     &cmd_env,    &cmd_serve,
	&cmd_salvage,	 &cmd_symbolize, &cmd_archive, &cmd_doctor, NULL,
};

const struct command *command__find(const char *name)
{
	for (size_t i = 0; commands[i]; i++) {
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	}
	return NULL;
}
