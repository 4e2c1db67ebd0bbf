// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile_offline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"
#include "module_file.h"
#include "profile.h"
#include "symbols.h"
#include "tail_calls.h"

/* Lines from an earlier look-up, which may be better than the new ones if a debug file is missing
 * now. */
struct saved_lines {
	struct profile_line *lines;
	__u32 n_lines;
	bool is_wanted; /* look the frame up again */
};

struct saved_text {
	char *text;
	bool has_files;	  /* some of its frames had source files */
	bool is_improved; /* some of its frames got better lines */
};

struct saved {
	struct profile *profile;
	struct saved_lines *lines; /* by frame id - 1 */
	struct saved_text *texts;  /* by module id - 1 */
};

static bool is_usable(const struct profile_module *module)
{
	/* [vdso] and the like are named during the recording or never. */
	return *module->path == '/';
}

static int add_module(struct profile *profile, struct symbols *symbols,
		      const struct profile_module *module,
		      const struct profile_offline_options *options)
{
	_cleanup_(close_fd) int fd = -1;
	struct error why = { 0 };

	fd = module_file__open(profile, module, options->debug_dirs, &why);
	if (fd >= 0)
		return symbols__add_module(symbols, module->id, fd, module->path, module->build_id);
	options->missing(why.text, options->context);
	return *module->symbols ? 0 : profile__set_module_symbols(profile, module->id, why.text);
}

static void release_saved(struct saved *saved)
{
	for (size_t i = 0; i < saved->profile->n_modules && saved->texts; i++)
		free(saved->texts[i].text);
	free(saved->lines);
	free(saved->texts);
}

static __u32 count_files(const struct profile_line *lines, __u32 n_lines)
{
	__u32 n = 0;

	for (__u32 i = 0; i < n_lines; i++)
		n += lines[i].file != 0;
	return n;
}

/* More source lines are better, then more inlined functions. */
static int compare_lines(const struct profile_line *a, __u32 n_a, const struct profile_line *b,
			 __u32 n_b)
{
	__u32 files_a = count_files(a, n_a), files_b = count_files(b, n_b);

	if (files_a != files_b)
		return files_a > files_b ? 1 : -1;
	return (n_a > n_b) - (n_a < n_b);
}

/* Moves the lines of frames that are looked up again to @saved. */
static void take_lines(struct saved *saved)
{
	for (size_t i = 0; i < saved->profile->n_frames; i++) {
		struct profile_frame *frame = &saved->profile->frames[i];

		if (!frame->module || !is_usable(&saved->profile->modules[frame->module - 1]))
			continue;
		if (count_files(frame->lines, frame->n_lines))
			saved->texts[frame->module - 1].has_files = true;
		if (frame->n_lines && frame->lines[0].file)
			continue;
		saved->lines[i] = (struct saved_lines){ frame->lines, frame->n_lines, true };
		frame->lines = NULL;
		frame->n_lines = 0;
	}
}

static void give_back_lines(struct saved *saved)
{
	for (size_t i = 0; i < saved->profile->n_frames; i++) {
		struct profile_frame *frame = &saved->profile->frames[i];
		struct saved_lines *before = &saved->lines[i];
		int difference;

		if (!before->is_wanted)
			continue;
		difference =
			compare_lines(frame->lines, frame->n_lines, before->lines, before->n_lines);
		if (difference > 0)
			saved->texts[frame->module - 1].is_improved = true;
		if (difference >= 0) {
			free(before->lines);
			continue;
		}
		free(frame->lines);
		frame->lines = before->lines;
		frame->n_lines = before->n_lines;
	}
}

static int take_texts(struct saved *saved)
{
	for (size_t i = 0; i < saved->profile->n_modules; i++) {
		saved->texts[i].text = strdup(saved->profile->modules[i].symbols);
		if (!saved->texts[i].text)
			return -ENOMEM;
	}
	return 0;
}

/* A module that keeps its earlier source lines keeps the text about their origin. */
static int give_back_texts(const struct saved *saved)
{
	int err = 0;

	for (size_t i = 0; i < saved->profile->n_modules && !err; i++) {
		const struct saved_text *before = &saved->texts[i];

		if (before->has_files && !before->is_improved)
			err = profile__set_module_symbols(
				saved->profile, saved->profile->modules[i].id, before->text);
	}
	return err;
}

static int look_up_better(struct profile *profile, struct symbols *symbols)
{
	_cleanup_(release_saved) struct saved saved = {
		.profile = profile,
		.lines = calloc(profile->n_frames + 1, sizeof(*saved.lines)),
		.texts = calloc(profile->n_modules + 1, sizeof(*saved.texts)),
	};
	int err, text_err;

	if (!saved.lines || !saved.texts)
		return -ENOMEM;
	err = take_texts(&saved);
	if (err)
		return err;
	take_lines(&saved);
	err = profile__symbolize(profile, symbols);
	give_back_lines(&saved);
	text_err = give_back_texts(&saved);
	return err ? err : text_err;
}

int profile__symbolize_offline(struct profile *profile, struct symbols *symbols,
			       const struct profile_offline_options *options)
{
	int err = profile__forget_unread(profile);

	for (size_t i = 0; i < profile->n_modules && !err; i++) {
		if (is_usable(&profile->modules[i]))
			err = add_module(profile, symbols, &profile->modules[i], options);
	}
	if (!err)
		err = profile__add_tail_calls(profile, symbols);
	return err ? err : look_up_better(profile, symbols);
}
