// SPDX-License-Identifier: GPL-3.0-or-later
#include "measure_gaps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "command.h"
#include "completeness_messages.h"
#include "message.h"
#include "number.h"
#include "probed_file.h"
#include "reasons.h"
#include "stat_regions.h"
#include "window_options.h"

/* "not complete: " @before, the number, @after, and the reason. */
static void report_reason(__u64 n, const char *before, const char *after,
			  const struct reason *reason)
{
	message__print("not complete: %s%s %s (%s): %s%s%s", before, number__count(n).text, after,
		       reason->name, reason->sentence, reason->remedy ? "; " : "",
		       reason->remedy ? reason->remedy : "");
}

static void report_unknown(const struct session *session, size_t index,
			   const struct probed_file *file)
{
	struct session_unknown unknown;

	for (size_t i = 0; session__unknown(session, index, i, &unknown); i++) {
		__u64 calls = unknown.calls;

		if (calls && unknown.ends)
			message__print("not complete: " BLOCKS_ENDED, file->path, unknown.name,
				       number__count(calls).text, calls == 1 ? "" : "s");
		else if (calls)
			message__print("not complete: " UNKNOWN_FUNCTION, file->path, unknown.name,
				       number__count(calls).text, calls == 1 ? "" : "s",
				       calls == 1 ? "is" : "are", unknown.name);
	}
}

static void report_unprobed(const struct session_results *results)
{
	__u64 told = 0;

	for (size_t i = 0; i < results->n_unprobed; i++) {
		const struct unprobed_program *program = &results->unprobed[i];

		message__print("not complete: " UNPROBED_PROGRAM,
			       number__count(program->processes).text,
			       program->processes == 1 ? "" : "es", program->name, program->pid,
			       number__count(program->size_bytes).text);
		told += program->processes;
	}
	if (results->processes_unprobed > told)
		message__print("not complete: " UNPROBED_OTHERS,
			       number__count(results->processes_unprobed - told).text);
}

struct patterns_text patterns_text__of(const struct source *source)
{
	struct patterns_text patterns = { "" };
	size_t len = 0;

	for (size_t i = 0; i < source->n_modules && len < sizeof(patterns.text); i++) {
		const char *before = " named ";

		if (i)
			before = i + 1 == source->n_modules ? " or " : ", ";
		len += snprintf(patterns.text + len, sizeof(patterns.text) - len, "%s%s", before,
				source->modules[i]);
	}
	return patterns;
}

static void report_sources(const struct session *session, const struct session_results *results)
{
	const struct sources *sources = session__sources(session);

	for (size_t i = 0; sources && i < sources->n; i++)
		if (session__lacks_source(session, &sources->list[i]))
			message__print("not complete: " LACKING_SOURCE,
				       patterns_text__of(&sources->list[i]).text,
				       sources->list[i].name, sources->list[i].functions[0].name);
	if (results->not_nested)
		message__print("not exact: " NOT_NESTED, number__count(results->not_nested).text);
}

void measure__report_gaps(const struct session *session, const struct session_results *results)
{
	struct probed_file file;

	for (size_t i = 0; session__file(session, i, &file); i++) {
		if (file.gap[0])
			message__print("not complete: allocator %s was %s", file.path, file.gap);
		if (file.live_gap[0])
			message__print("not complete: the blocks of allocator %s were %s",
				       file.path, file.live_gap);
	}
	for (size_t i = 0; session__file(session, i, &file); i++)
		report_unknown(session, i, &file);
	report_sources(session, results);
	for (int reason = 0; reason < AP_LOST_REASONS; reason++)
		if (results->lost[reason])
			report_reason(results->lost[reason], "", "calls lost",
				      reason__lost(reason));
	for (int reason = 0; reason < AP_UNTRACKED_REASONS; reason++)
		if (results->has_live && results->live.stats[AP_STAT_UNTRACKED + reason])
			report_reason(results->live.stats[AP_STAT_UNTRACKED + reason],
				      "the blocks of ", "calls are not followed",
				      reason__untracked(reason));
	if (results->counters_unread)
		message__print("not complete: %s of the kernel's counters could not be read, so "
			       "that numbers may be too small",
			       number__count(results->counters_unread).text);
	if (results->processes_unfollowed)
		message__print("not complete: %s processes could not be followed",
			       number__count(results->processes_unfollowed).text);
	if (results->processes_unnoticed)
		message__print(
			"not complete: %s beginnings or ends of processes went unnoticed, and "
			"with them perhaps an allocator",
			number__count(results->processes_unnoticed).text);
	if (results->has_live && results->live.stats[AP_STAT_DROPPED])
		message__print(
			"not complete: %s blocks that a failed realloc kept are not followed "
			"any more, and count as live",
			number__count(results->live.stats[AP_STAT_DROPPED]).text);
	report_unprobed(results);
	if (results->operands_unread)
		message__print("not exact: " OPERANDS_UNREAD,
			       number__count(results->operands_unread).text);
	if (results->mappings_unsure)
		message__print("not exact: " MAPPINGS_UNSURE,
			       number__count(results->mappings_unsure).text);
	if (results->relabelled)
		message__print(
			"not exact: %s calls are counted under the function that they led to",
			number__count(results->relabelled).text);
	if (results->mappings_lost)
		message__print("not complete: %s mappings of files went unnoticed, and with them "
			       "perhaps an allocator",
			       number__count(results->mappings_lost).text);
	if (results->python_arenas)
		message__print(PYTHON_NOTE, (int)strlen(results->python_arenas),
			       results->python_arenas);
	window_options__report_gaps(&results->window);
	stat_regions__report_gaps(session, results);
	if (results->target_runs)
		message__print("process %d goes on without probes", results->target_pid);
	else if (results->is_attached)
		message__print("process %d has ended, and the recording with it",
			       results->target_pid);
	if (results->processes_left)
		message__print("%s process%s that the command started go%s on without probes",
			       number__count(results->processes_left).text,
			       results->processes_left == 1 ? "" : "es",
			       results->processes_left == 1 ? "es" : "");
}
