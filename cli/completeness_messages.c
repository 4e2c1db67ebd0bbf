// SPDX-License-Identifier: GPL-3.0-or-later
#include "completeness_messages.h"

#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "command.h"
#include "completeness.h"
#include "data_file.h"
#include "message.h"
#include "number.h"
#include "profile.h"
#include "recording_text.h"
#include "text.h"

/* The words behind a number of threads, for plural__of(). These threads have no counters under
 * their own names. */
#define NAMES_NOTE_WORDS                                                                            \
	"thread{ is|s are} counted together with others, by a name with * for digits or as (other " \
	"names), since {its|their} process had 512 names of threads already"

static void print(const char *name, const char *line)
{
	message__print("%s%s%s", name ? name : "", name ? ": " : "", line);
}

static void print_lines(char *text)
{
	for (char *line; (line = strsep(&text, "\n")) && *line;)
		message__print("%s", line);
}

int completeness_messages__print(const struct profile *profile, const char *name,
				 unsigned int flags)
{
	_cleanup_(free_ptr) char *text = NULL;
	bool lacks = false, strict = flags & COMPLETENESS_STRICT;
	char *rest, *line;

	if (completeness__lines(profile, flags, &text)) {
		print(name, "cannot say what this profile lacks: out of memory");
		return strict ? EXIT_INCOMPLETE : EXIT_GOOD;
	}
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line) {
		print(name, line);
		lacks = true;
	}
	if (data_file__is_altered(profile) || !profile__ledger_adds_up(profile) ||
	    !profile__blocks_add_up(profile))
		return EXIT_INCOMPLETE;
	return strict && lacks ? EXIT_INCOMPLETE : EXIT_GOOD;
}

int completeness_messages__print_altered(const struct profile *profile)
{
	if (!data_file__is_altered(profile))
		return EXIT_GOOD;
	print(NULL, ALTERED_NOTE);
	return EXIT_INCOMPLETE;
}

void completeness_messages__print_sampled(const struct profile *profile, const char *name)
{
	_cleanup_(free_ptr) char *text = completeness__sampled(profile);

	if (text)
		print(name, text);
}

void completeness_messages__print_frees(const struct profile *profile, const char *name)
{
	_cleanup_(free_ptr) char *text = NULL;
	__u64 calls = 0;

	for (size_t i = 0; i < profile->n_counts; i++) {
		if (!profile__function_frees(profile->counts[i].function))
			return;
		calls = profile__add_up(calls, profile->counts[i].calls);
	}
	if (calls &&
	    asprintf(&text,
		     "all calls in this recording, %s, free memory: such calls have no size and no "
		     "cost; `allocprof query 'SELECT * FROM calls'` shows them",
		     number__count(calls).text) >= 0)
		print(name, text);
}

void completeness_messages__print_runtimes(const struct profile *profile)
{
	__u64 names = profile__meta_number(profile, "common_names");
	_cleanup_(free_ptr) char *text = NULL;

	if (!recording_text__own_heaps(profile, &text))
		print_lines(text);
	if (names)
		message__print("%s %s", number__count(names).text,
			       plural__of(NAMES_NOTE_WORDS, names).text);
}

void completeness_messages__print_beside(const struct profile *profile, bool attached_only)
{
	_cleanup_(free_ptr) char *text = NULL;

	if (!recording_text__beside(profile, attached_only, &text))
		print_lines(text);
}
