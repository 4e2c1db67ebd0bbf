// SPDX-License-Identifier: GPL-3.0-or-later
#include "probed_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "probed_file.h"
#include "profile.h"
#include "text.h"

/* Room for a path and the text after it; longer lines are truncated. */
#define LINE_BYTES 8192

__attribute__((format(printf, 2, 3))) static void print_line(void (*print)(const char *line),
							     const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	utf8__clean(line);
	print(line);
}

static void print_function(const struct probed_function *function, void (*print)(const char *line))
{
	char names[LINE_BYTES / 2] = "";
	size_t used = 0;

	for (size_t i = 0; i < function->n_aliases && used < sizeof(names); i++)
		used += snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : " (also ",
				 function->aliases[i]);
	print_line(print, "  %s%s%s", profile__function_name(function->function), names,
		   function->n_aliases ? ")" : "");
	print_line(print, "      entry 0x%llx, probe at +%llu: %s", function->entry_offset,
		   function->distance_bytes, function->instruction);
	if (function->slow_reason)
		print_line(print, "      single-stepped, two traps a call: %s",
			   function->slow_reason);
	else
		print_line(print, "      emulated by the kernel: one trap a call");
}

void probed_text__print(const struct probed_file *file, void (*print)(const char *line))
{
	struct probed_function function;

	print_line(print, "%s%s%s", file->path, file->build_id[0] ? ", build id " : "",
		   file->build_id);
	if (file->gap[0])
		print_line(print, "  %s", file->gap);
	for (size_t i = 0; probed_file__function(file, i, &function); i++)
		print_function(&function, print);
}
