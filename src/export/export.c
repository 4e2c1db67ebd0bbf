// SPDX-License-Identifier: GPL-3.0-or-later
#include "export.h"

#include <errno.h>
#include <string.h>

#include "export_internal.h"
#include "folded.h"

static int write_collapsed(const struct export_input *input, FILE *to)
{
	const struct folded_options options = { .cost = input->cost, .counts = input->counts };

	return folded__write(input->profile, input->view, &options, to);
}

static int write_stacks(const struct export_input *input, FILE *to)
{
	const struct folded_options options = {
		.cost = input->cost,
		.counts = input->counts,
		.is_upright = true,
	};

	return folded__write(input->profile, input->view, &options, to);
}

static const struct {
	const char *name;
	bool is_binary;
	int (*write)(const struct export_input *input, FILE *to);
} formats[EXPORT_FORMATS] = {
	[EXPORT_PPROF] = { "pprof", true, export_pprof__write },
	[EXPORT_OTLP] = { "otlp", true, export_otlp__write },
	[EXPORT_SPEEDSCOPE] = { "speedscope", false, export_speedscope__write },
	[EXPORT_COLLAPSED] = { "collapsed", false, write_collapsed },
	[EXPORT_STACKS] = { "stacks", false, write_stacks },
	[EXPORT_JSON] = { "json", false, export_json__write },
	[EXPORT_DHAT] = { "dhat", false, export_dhat__write },
	[EXPORT_HEAPTRACK] = { "heaptrack", true, export_heaptrack__write },
	[EXPORT_FIREFOX] = { "firefox", false, export_firefox__write },
	[EXPORT_EVENTS] = { "events", false, NULL },
};

const char *export__format_name(enum export_format format)
{
	return formats[format].name;
}

int export__format_by_name(const char *name)
{
	for (int i = 0; i < EXPORT_FORMATS; i++)
		if (!strcmp(name, formats[i].name))
			return i;
	return -ENOENT;
}

bool export__is_binary(enum export_format format)
{
	return formats[format].is_binary;
}

int export__check(enum export_format format, const struct export_input *input, struct error *error)
{
	return format == EXPORT_HEAPTRACK ? export_heaptrack__check(input, error) : 0;
}

int export__write(enum export_format format, const struct export_input *input, FILE *to)
{
	int err;

	errno = 0;
	err = formats[format].write(input, to);
	if (err)
		return err;
	if (fflush(to) || ferror(to))
		return errno ? -errno : -EIO;
	return 0;
}
