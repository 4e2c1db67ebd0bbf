// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbolize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "demangle.h"
#include "dwarf_internal.h"
#include "error.h"
#include "module_file.h"
#include "profile.h"
#include "symbols.h"
#include "tail_calls.h"

/* Demangles the names of a profile's functions. */

static bool is_usable(const struct profile_module *module)
{
	/* Pseudo files such as [vdso] are named during the recording or never. */
	return *module->path == '/';
}

/* Sets @linked[id - 1] of each function that has a frame in a file. Functions of perf maps alone
 * and of Python have names, not symbols, except those that runtimes compile from programs of other languages
 * (WebAssembly). */
static void find_linked(const struct profile *profile, bool *linked)
{
	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		bool is_in_file = frame->module && is_usable(&profile->modules[frame->module - 1]);

		for (__u32 j = 0; is_in_file && j < frame->n_lines; j++)
			linked[frame->lines[j].function - 1] = true;
	}
}

/* Returns whether the function has its linker name, and so is to be demangled. */
static bool is_symbol(const struct profile_function *function, const bool *linked)
{
	return !strcmp(function->name, function->symbol) &&
	       (linked[function->id - 1] || demangle__looks_mangled(function->symbol));
}

static int name_function(struct profile *profile, const struct demangler *demangler,
			 const struct profile_function *function)
{
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(free_ptr) char *full_name = NULL;
	int err = demangler__names(demangler, function->symbol, &name, &full_name);

	if (err || (!strcmp(name, function->name) && !strcmp(full_name, function->full_name)))
		return err;
	return profile__set_function_names(profile, function->id, name, full_name);
}

int profile__demangle(struct profile *profile, struct demangler *demangler, struct error *error)
{
	_cleanup_(free_ptr) bool *linked = calloc(profile->n_functions + 1, sizeof(*linked));
	int err, filter_err;

	if (!linked)
		return -ENOMEM;
	find_linked(profile, linked);
	for (size_t i = 0; i < profile->n_functions; i++) {
		if (!is_symbol(&profile->functions[i], linked))
			continue;
		err = demangler__add(demangler, profile->functions[i].symbol);
		if (err)
			return err;
	}
	filter_err = demangler__run(demangler, error);
	if (filter_err == -ENOMEM)
		return filter_err;
	for (size_t i = 0; i < profile->n_functions; i++) {
		if (!is_symbol(&profile->functions[i], linked))
			continue;
		err = name_function(profile, demangler, &profile->functions[i]);
		if (err)
			return err;
	}
	return filter_err;
}

/* Gives a profile's frames their functions and lines. */

/* A frame that needs lines. */
struct wanted {
	struct symbols_query query;
	__u32 frame; /* id */
};

struct naming {
	struct profile *profile;
	struct wanted *wanted; /* sorted by query */
	size_t n;
	struct profile_line *lines;
	size_t lines_room;
};

static int compare_wanted(const void *left, const void *right)
{
	const struct symbols_query *a = &((const struct wanted *)left)->query;
	const struct symbols_query *b = &((const struct wanted *)right)->query;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* Skips inlined functions without a name. *@n is 0 if the function itself has none. */
static int convert_lines(struct naming *naming, const struct symbols_line *lines, size_t n_lines,
			 __u32 *n)
{
	struct profile *profile = naming->profile;
	int err = 0;

	*n = 0;
	if (!lines[n_lines - 1].symbol)
		return 0;
	if (n_lines > naming->lines_room) {
		struct profile_line *grown =
			reallocarray(naming->lines, n_lines, sizeof(*naming->lines));

		if (!grown)
			return -ENOMEM;
		naming->lines = grown;
		naming->lines_room = n_lines;
	}
	for (size_t i = 0; i < n_lines && !err; i++) {
		struct profile_line *to = &naming->lines[*n];

		if (!lines[i].symbol)
			continue;
		*to = (struct profile_line){ .line = lines[i].line, .inlined = lines[i].inlined };
		err = profile__add_function(profile, lines[i].symbol, lines[i].symbol,
					    lines[i].symbol, &to->function);
		if (!err && lines[i].file)
			err = profile__add_file(profile, lines[i].file, &to->file);
		++*n;
	}
	return err;
}

/* Sets the lines of all frames of an address: the thread may have been interrupted there, or may
 * return to the next address. */
static int set_lines(void *context, const struct symbols_query *query,
		     const struct symbols_line *lines, size_t n_lines)
{
	struct naming *naming = context;
	size_t low = ARRAY_LOWER_BOUND(naming->n, i, compare_wanted(&naming->wanted[i], query) < 0);
	__u32 n;
	int err = convert_lines(naming, lines, n_lines, &n);

	for (; low < naming->n && !compare_wanted(&naming->wanted[low], query) && n && !err; low++)
		err = profile__set_frame_lines(naming->profile, naming->wanted[low].frame,
					       naming->lines, n);
	return err;
}

static int set_texts(struct profile *profile, const struct symbols *symbols)
{
	int err = 0;

	for (size_t i = 0; i < profile->n_modules && !err; i++) {
		const char *text = symbols__module_text(symbols, profile->modules[i].id);

		if (*text)
			err = profile__set_module_symbols(profile, profile->modules[i].id, text);
	}
	return err;
}

/* Sets the files that could not be read. Lines about perf maps, and of earlier runs, stay, since
 * these are not looked up again. */
static int set_unread(struct profile *profile, const struct symbols *symbols)
{
	int err = 0;

	for (size_t i = 0; i < profile->n_modules && !err; i++) {
		const struct profile_module *module = &profile->modules[i];

		if (symbols__is_unread(symbols, module->id) ||
		    strstr(module->symbols, DWARF_LACKS_LINES))
			err = profile__add_unread(profile, module->path, module->symbols);
	}
	return err;
}

int profile__symbolize(struct profile *profile, struct symbols *symbols)
{
	struct naming naming = { .profile = profile };
	struct symbols_query *queries = NULL;
	int err = -ENOMEM;

	naming.wanted = calloc(profile->n_frames + 1, sizeof(*naming.wanted));
	queries = calloc(profile->n_frames + 1, sizeof(*queries));
	if (!naming.wanted || !queries)
		goto out;
	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		if (frame->n_lines || !frame->module || !frame->offset)
			continue;
		/* A return address may be the first byte of the next function, so the byte before
		 * is looked up. */
		naming.wanted[naming.n++] = (struct wanted){
			.query = { frame->module, frame->offset - !frame->place },
			.frame = frame->id,
		};
	}
	qsort(naming.wanted, naming.n, sizeof(*naming.wanted), compare_wanted);
	for (size_t i = 0; i < naming.n; i++)
		queries[i] = naming.wanted[i].query;
	err = symbols__look_up(symbols, queries, naming.n, set_lines, &naming);
	if (!err)
		err = set_texts(profile, symbols);
	if (!err)
		err = set_unread(profile, symbols);
out:
	free(naming.wanted);
	free(naming.lines);
	free(queries);
	return err;
}

/* Lines from an earlier look-up, which may be better than the new ones if a debug file has been
 * removed. */
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
	bool only_new;		   /* frames with a name keep it */
	struct saved_lines *lines; /* by frame id - 1 */
	struct saved_text *texts;  /* by module id - 1 */
};

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

/* Compares lines: those with more source lines are better, then those with more inlined functions. */
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
		if (frame->n_lines && (saved->only_new || frame->lines[0].file))
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

/* Restores texts: a module that keeps its earlier source lines keeps the text about their origin. */
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

static int look_up_better(struct profile *profile, struct symbols *symbols, bool only_new)
{
	_cleanup_(release_saved) struct saved saved = {
		.profile = profile,
		.only_new = only_new,
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
	if (!err && !options->only_new)
		err = profile__add_tail_calls(profile, symbols);
	return err ? err : look_up_better(profile, symbols, options->only_new);
}
