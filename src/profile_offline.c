// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile_offline.h"

#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "error.h"
#include "module_file.h"
#include "profile.h"
#include "symbols.h"

struct saved_lines {
	struct profile_line *lines;
	__u32 n_lines;
};

static bool is_usable(const struct profile_module *module)
{
	/* [vdso] and its like are named when they are recorded or never. */
	return *module->path == '/';
}

static int add_module(struct profile *profile, struct symbols *symbols,
		      const struct profile_module *module,
		      const struct profile_offline_options *options)
{
	_cleanup_(close_fd) int fd = -1;
	struct error why = { 0 };

	fd = module_file__open(module, options->debug_dirs, &why);
	if (fd >= 0)
		return symbols__add_module(symbols, module->id, fd, module->path, module->build_id);
	options->missing(why.text, options->context);
	return *module->symbols ? 0 : profile__set_module_symbols(profile, module->id, why.text);
}

/* Takes the lines of frames that may get better ones, so that they count as having none. */
static void take_lines(struct profile *profile, struct saved_lines *saved)
{
	for (size_t i = 0; i < profile->n_frames; i++) {
		struct profile_frame *frame = &profile->frames[i];

		if (!frame->n_lines || !frame->module || frame->lines[0].file ||
		    !is_usable(&profile->modules[frame->module - 1]))
			continue;
		saved[i] = (struct saved_lines){ frame->lines, frame->n_lines };
		frame->lines = NULL;
		frame->n_lines = 0;
	}
}

static void give_back(struct profile *profile, struct saved_lines *saved)
{
	for (size_t i = 0; i < profile->n_frames; i++) {
		struct profile_frame *frame = &profile->frames[i];

		if (frame->n_lines) {
			free(saved[i].lines);
			continue;
		}
		frame->lines = saved[i].lines;
		frame->n_lines = saved[i].n_lines;
	}
}

int profile__symbolize_offline(struct profile *profile, struct symbols *symbols,
			       const struct profile_offline_options *options)
{
	_cleanup_(free_ptr) struct saved_lines *saved =
		calloc(profile->n_frames + 1, sizeof(*saved));
	int err = 0;

	if (!saved)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_modules && !err; i++) {
		if (is_usable(&profile->modules[i]))
			err = add_module(profile, symbols, &profile->modules[i], options);
	}
	if (err)
		return err;
	take_lines(profile, saved);
	err = profile__symbolize(profile, symbols);
	give_back(profile, saved);
	return err;
}
