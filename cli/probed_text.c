// SPDX-License-Identifier: GPL-3.0-or-later
#include "probed_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "probes.h"
#include "profile.h"

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
	print(line);
}

static void print_site(const struct site *site, void (*print)(const char *line))
{
	char names[LINE_BYTES / 2] = "";
	size_t used = 0;

	for (size_t i = 0; i < site->n_aliases && used < sizeof(names); i++)
		used += snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : " (also ",
				 site->aliases[i]);
	print_line(print, "  %s%s%s", profile__function_name(site->function), names,
		   site->n_aliases ? ")" : "");
	print_line(print, "      entry 0x%llx, probe at +%llu: %s", site->entry_offset,
		   site->probe_offset - site->entry_offset, site->instruction);
	if (site->emulated)
		print_line(print, "      emulated by the kernel: one trap a call");
	else
		print_line(print, "      single-stepped, two traps a call: %s", site->reason);
}

void probed_text__print(const struct probed_allocator *allocator, void (*print)(const char *line))
{
	print_line(print, "%s%s%s", allocator->path, allocator->build_id[0] ? ", build id " : "",
		   allocator->build_id);
	if (allocator->gap[0])
		print_line(print, "  %s", allocator->gap);
	for (size_t i = 0; allocator->allocator && i < allocator->allocator->n_sites; i++)
		print_site(&allocator->allocator->sites[i], print);
}
