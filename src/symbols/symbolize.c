// SPDX-License-Identifier: GPL-3.0-or-later
/* Gives a profile's frames their functions and lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "array.h"
#include "dwarf_places.h"
#include "symbols.h"

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

/* Several frames may have one address: interrupted there, or returning to the next one. */
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

/* Keeps lines about perf maps and of earlier runs, which are not looked up again. */
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
		/* A return address may be the first byte of the next function. */
		naming.wanted[naming.n++] = (struct wanted){
			.query = { frame->module, frame->offset - !frame->interrupted },
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
