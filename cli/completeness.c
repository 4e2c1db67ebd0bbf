// SPDX-License-Identifier: GPL-3.0-or-later
#include "completeness.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "command.h"
#include "message.h"
#include "number.h"
#include "profile.h"
#include "reasons.h"

struct output {
	FILE *lines;	/* NULL: print messages */
	bool is_strict; /* always mention incomplete stacks */
	bool is_brief;	/* omit the reasons */
};

static void say(const struct output *output, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct output *output, const char *fmt, ...)
{
	char text[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (output->lines)
		fprintf(output->lines, "%s\n", text);
	else
		message__print("%s", text);
}

/* Prints a line for each ledger entry that begins with @prefix. */
static void say_reasons(const struct profile *profile, const char *prefix,
			const struct output *output)
{
	size_t prefix_len = strlen(prefix);

	for (size_t i = 0; i < profile->n_ledger && !output->is_brief; i++) {
		const struct profile_ledger_entry *entry = &profile->ledger[i];
		const struct reason *reason = reason__by_ledger(entry->name);

		if (!entry->value || strncmp(entry->name, prefix, prefix_len))
			continue;
		if (reason)
			say(output, "  %s of them (%s): %s%s%s", number__count(entry->value).text,
			    reason->name, reason->sentence, reason->remedy ? "; " : "",
			    reason->remedy ? reason->remedy : "");
		else
			say(output, "  %s of them: %s", number__count(entry->value).text,
			    entry->name + prefix_len);
	}
}

static bool report_lost(const struct profile *profile, const struct output *output)
{
	__u64 lost = profile__ledger(profile, "lost");

	if (!lost)
		return false;
	say(output, "%s of %s calls were lost; this profile is not complete",
	    number__count(lost).text, number__count(profile__ledger(profile, "events")).text);
	say_reasons(profile, "lost_", output);
	return true;
}

static bool report_incomplete(const struct profile *profile, const struct output *output)
{
	__u64 incomplete = profile__ledger(profile, "incomplete");
	__u64 attributed = profile__ledger(profile, "attributed");

	if (!incomplete)
		return false;
	/* If most stacks are incomplete, say so without --strict, too. */
	if (output->is_strict || incomplete > attributed / 2) {
		say(output, "the stacks of %s of %s calls lack frames, or may",
		    number__count(incomplete).text, number__count(attributed).text);
		say_reasons(profile, "incomplete_", output);
	}
	return true;
}

bool completeness__has_all_calls(const struct profile *profile)
{
	const char *unprobed = profile__meta(profile, "unprobed_allocators");

	return !profile__ledger(profile, "lost") && !(unprobed && *unprobed) &&
	       !profile__meta(profile, "unknown_functions") &&
	       !profile__meta(profile, "unprobed_programs") &&
	       !profile__meta(profile, "lacking_sources") &&
	       !profile__meta(profile, "not_nested") &&
	       !profile__meta(profile, "mappings_unsure") &&
	       !profile__meta(profile, "operands_unread") &&
	       !profile__meta(profile, "processes_unfollowed") &&
	       !profile__meta(profile, "processes_unnoticed") &&
	       !profile__meta(profile, "mappings_lost") &&
	       !profile__meta(profile, "counters_unread") && profile__ledger_adds_up(profile);
}

static bool report_unprobed(const struct profile *profile, const struct output *output)
{
	const char *paths = profile__meta(profile, "unprobed_allocators");
	char list[1024];
	size_t n = 0, len = 0;

	if (!paths)
		return false;
	while (*paths) {
		size_t path_len = strcspn(paths, "\n");

		if (path_len && len < sizeof(list))
			len += snprintf(list + len, sizeof(list) - len, "%s%.*s", n ? ", " : "",
					path_len < 4096 ? (int)path_len : 4096, paths);
		n += path_len > 0;
		paths += path_len + (paths[path_len] == '\n');
	}
	if (!n)
		return false;
	say(output,
	    "%s allocator%s of the target %s probed late or not at all: %s; this "
	    "profile is not complete",
	    number__count(n).text, n == 1 ? "" : "s", n == 1 ? "was" : "were", list);
	return true;
}

/* Prints a sentence for each line of @key. */
static bool report_lines(const struct profile *profile, const struct output *output,
			 const char *key, const char *sentence)
{
	const char *lines = profile__meta(profile, key);
	bool lacks = false;

	while (lines && *lines) {
		size_t len = strcspn(lines, "\n");

		say(output, "%s: %.*s; this profile is not complete", sentence,
		    len < 1024 ? (int)len : 1024, lines);
		lacks = true;
		lines += len + (lines[len] == '\n');
	}
	return lacks;
}

static bool report_unknown(const struct profile *profile, const struct output *output)
{
	bool lacks = report_lines(
		profile, output, "unknown_functions",
		"calls of a function of an allocator are not counted, as it is not known, or which "
		"blocks it ended");

	return report_lines(profile, output, "unprobed_programs",
			    "a program took memory from the kernel and called no function that is "
			    "probed") ||
	       lacks;
}

static bool report_sources(const struct profile *profile, const struct output *output)
{
	const char *lines = profile__meta(profile, "lacking_sources");
	const char *calls = profile__meta(profile, "not_nested");
	const char *mappings = profile__meta(profile, "mappings_unsure");
	const char *operands = profile__meta(profile, "operands_unread");
	bool lacks = lines || calls || mappings || operands;

	while (lines && *lines) {
		size_t len = strcspn(lines, "\n");

		say(output,
		    "no file of the target had a function of %.*s; this profile is not complete",
		    len < 1024 ? (int)len : 1024, lines);
		lines += len + (lines[len] == '\n');
	}
	if (calls)
		say(output,
		    "allocator calls within %.32s calls of defined sources are counted, too; numbers may "
		    "be too large",
		    calls);
	if (mappings)
		say(output,
		    "%.32s calls of munmap and mremap are counted although the mapping may not have "
		    "been anonymous; numbers may be too large",
		    mappings);
	if (operands)
		say(output,
		    "%.32s arguments of USDT probes could not be read and count as 0; numbers may be "
		    "too small",
		    operands);
	return lacks;
}

static bool report_unfollowed(const struct profile *profile, const struct output *output)
{
	const char *processes = profile__meta(profile, "processes_unfollowed");

	if (!processes)
		return false;
	say(output, "%.32s processes could not be followed; this profile is not complete",
	    processes);
	return true;
}

/* Reports events that may have hidden an allocator. */
static bool report_unnoticed(const struct profile *profile, const struct output *output)
{
	const char *processes = profile__meta(profile, "processes_unnoticed");
	const char *mappings = profile__meta(profile, "mappings_lost");

	if (processes)
		say(output,
		    "%.32s beginnings or ends of processes went unnoticed, and with them perhaps an "
		    "allocator; this profile is not complete",
		    processes);
	if (mappings)
		say(output,
		    "%.32s mappings of files went unnoticed, and with them perhaps an allocator; "
		    "this profile is not complete",
		    mappings);
	return processes || mappings;
}

static bool report_dropped(const struct profile *profile, const struct output *output)
{
	__u64 blocks = profile__ledger(profile, "blocks_dropped");

	if (blocks)
		say(output,
		    "%s blocks that a failed realloc kept are not followed any more, and count as "
		    "live; this profile is not complete",
		    number__count(blocks).text);
	return blocks;
}

static bool report_unread(const struct profile *profile, const struct output *output)
{
	const char *counters = profile__meta(profile, "counters_unread");

	if (!counters)
		return false;
	say(output,
	    "%.32s of the kernel's counters could not be read, so that numbers may be too small; "
	    "this profile is not complete",
	    counters);
	return true;
}

static bool report_window(const struct profile *profile, const struct output *output)
{
	const char *opened = profile__meta(profile, "window_opened");
	__u64 undecided = profile__ledger(profile, "undecided");

	if (!opened)
		return false;
	if (*opened == '0')
		say(output, "nothing was measured%s: the window of the recording never opened",
		    profile->n_runs > 1 ? " in one of the runs or more" : "");
	if (undecided)
		say(output,
		    "%s calls have incomplete stacks and may belong to the window; "
		    "this profile is not complete",
		    number__count(undecided).text);
	return *opened == '0' || undecided;
}

/* Reports everything; returns whether @profile lacks anything. */
static bool report_all(const struct profile *profile, const struct output *output)
{
	bool lacks = report_lost(profile, output);

	lacks |= report_unprobed(profile, output);
	lacks |= report_unknown(profile, output);
	lacks |= report_sources(profile, output);
	lacks |= report_unfollowed(profile, output);
	lacks |= report_unnoticed(profile, output);
	lacks |= report_dropped(profile, output);
	lacks |= report_unread(profile, output);
	lacks |= report_window(profile, output);
	lacks |= report_incomplete(profile, output);
	if (!profile__ledger_adds_up(profile)) {
		say(output, "the ledger of this data file does not add up; do not rely on its "
			    "totals");
		lacks = true;
	}
	return lacks;
}

int completeness__report(const struct profile *profile, bool strict)
{
	const struct output output = { .is_strict = strict };

	return report_all(profile, &output) && strict ? EXIT_INCOMPLETE : EXIT_GOOD;
}

int completeness__lines(const struct profile *profile, bool strict, bool brief, char **text)
{
	struct output output = { .is_strict = strict, .is_brief = brief };
	char *made = NULL;
	size_t size;

	output.lines = open_memstream(&made, &size);
	if (!output.lines)
		return -ENOMEM;
	report_all(profile, &output);
	if (fclose(output.lines)) {
		free(made);
		return -ENOMEM;
	}
	*text = made;
	return 0;
}

void completeness__report_python(const struct profile *profile)
{
	const char *paths = profile__meta(profile, "python_arenas");

	if (paths)
		message__print(PYTHON_NOTE, (int)strcspn(paths, "\n"), paths);
}

char *completeness__sampled(const struct profile *profile)
{
	__u64 bytes = profile__sample_bytes(profile);
	char *text;

	if (!bytes || asprintf(&text, "one byte of %s was sampled: all numbers are estimates",
			       number__count(bytes).text) < 0)
		return NULL;
	return text;
}

void completeness__report_sampled(const struct profile *profile, const char *name)
{
	_cleanup_(free_ptr) char *text = completeness__sampled(profile);

	if (text)
		message__print("%s%s%s", name ? name : "", name ? ": " : "", text);
}

int completeness__report_as(const struct profile *profile, const char *name, bool strict)
{
	_cleanup_(free_ptr) char *text = NULL;
	char *rest, *line;
	bool lacks = false;

	/* Without memory the sentences lack @name. */
	if (completeness__lines(profile, strict, false, &text))
		return completeness__report(profile, strict);
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line) {
		message__print("%s: %s", name, line);
		lacks = true;
	}
	return strict && lacks ? EXIT_INCOMPLETE : EXIT_GOOD;
}
