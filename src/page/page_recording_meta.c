// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes the part of a page that describes its recording: title, processes, threads, and what is missing. */
#include "page_recording_internal.h"

#include <json-c/json.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "completeness.h"
#include "error.h"
#include "filter.h"
#include "finding_text.h"
#include "findings.h"
#include "growth.h"
#include "json.h"
#include "moved.h"
#include "number.h"
#include "profile.h"
#include "profile_runs.h"
#include "reasons.h"
#include "recording_text.h"
#include "report.h"
#include "stack_groups.h"
#include "stack_view.h"

char *page_recording__title(const struct page_recording *recording)
{
	const struct profile *profile = recording->input.profile;

	if (!profile__meta(profile, "command") && !profile__meta(profile, "attached_pid"))
		return strdup(recording->name);
	return recording_text__title(profile);
}

static json_object *text_or_null(const char *text)
{
	return text ? json__string(text) : NULL;
}

static void add_lines(json_object *list, char *text)
{
	char *left = text;

	for (char *line = strtok_r(left, "\n", &left); line; line = strtok_r(NULL, "\n", &left))
		json_object_array_add(list, json__string(line));
}

/* Returns the lines of @text, or an empty list. */
static json_object *lines_of(char *text)
{
	json_object *list = json_object_new_array();

	add_lines(list, text);
	return list;
}

static json_object *missing_of(const struct profile *profile, unsigned int flags)
{
	_cleanup_(free_ptr) char *text = NULL;

	return completeness__lines(profile, flags | COMPLETENESS_TIMES | COMPLETENESS_HISTOGRAMS,
				   &text)
		       ? NULL
		       : lines_of(text);
}

/* Returns notes that a reader should know about the numbers. */
static json_object *notes_of(const struct page_recording *recording)
{
	const struct profile *profile = recording->input.profile;
	const struct filtered *filtered = recording->filtered;
	_cleanup_(free_ptr) char *sampled = completeness__sampled(profile);
	_cleanup_(free_ptr) char *beside = NULL;
	json_object *list = json_object_new_array();
	char text[128];

	if (sampled)
		json_object_array_add(list, json__string(sampled));
	if (!recording_text__beside(profile, false, &beside))
		add_lines(list, beside);
	if (filtered->total.allocations != filtered->whole.allocations) {
		snprintf(text, sizeof(text), "%s of %s allocations are selected",
			 number__count(filtered->total.allocations).text,
			 number__count(filtered->whole.allocations).text);
		json_object_array_add(list, json__string(text));
	}
	if (filtered->total.unsure) {
		snprintf(text, sizeof(text),
			 "%s more blocks may belong here: times are known to %s",
			 number__count(filtered->total.unsure).text,
			 number__time(filtered->epoch_ns).text);
		json_object_array_add(list, json__string(text));
	}
	return list;
}

/* An element is [name, value, meaning or null for entries of later versions]. */
static json_object *ledger_of(const struct profile *profile)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < profile->n_ledger; i++) {
		json_object *entry = json_object_new_array();

		json_object_array_add(entry, json__string(profile->ledger[i].name));
		json_object_array_add(entry, json__count(profile->ledger[i].value));
		json_object_array_add(
			entry, text_or_null(reason__ledger_meaning(profile->ledger[i].name)));
		json_object_array_add(list, entry);
	}
	return list;
}

/* An element is [pid, name, command line, name of the control group]; the last two are null where they are not known. */
static json_object *processes_of(const struct profile *profile)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < profile->n_processes; i++) {
		json_object *entry = json_object_new_array();

		json_object_array_add(entry, json__count(profile->processes[i].pid));
		json_object_array_add(entry, json__string(profile->processes[i].comm));
		json_object_array_add(entry, text_or_null(profile->processes[i].arguments));
		json_object_array_add(entry, text_or_null(profile->processes[i].group_name));
		json_object_array_add(list, entry);
	}
	return list;
}

/* An element is [index of the process, name]. */
static json_object *threads_of(const struct profile *profile)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < profile->n_threads; i++) {
		json_object *entry = json_object_new_array();

		json_object_array_add(entry, json__count(profile->threads[i].process - 1));
		json_object_array_add(entry, json__string(profile->threads[i].name));
		json_object_array_add(list, entry);
	}
	return list;
}

/* Returns why there is no time line, or NULL. */
static const char *no_time_line(const struct page_recording *recording,
				const struct page_epochs *epochs)
{
	if (epochs->n)
		return NULL;
	return "This recording does not say when blocks were freed. Record with --live to see what "
	       "was alive at any time.";
}

static void add_texts(const struct page_recording *recording, json_object *object)
{
	const struct profile *profile = recording->input.profile;
	_cleanup_(free_ptr) char *title = page_recording__title(recording);
	__u64 signal = profile__meta_number(profile, "exit_signal");
	char status[64];
	static const struct {
		const char *key, *meta;
	} texts[] = {
		{ "startTime", "start_time" },	 { "version", "allocprof_version" },
		{ "kernel", "kernel" },		 { "engine", "engine" },
		{ "exitStatus", "exit_status" },
	};

	json__add(object, "title", text_or_null(title));
	json__add(object, "file", json__string(recording->name));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		json__add(object, texts[i].key,
			  text_or_null(profile__meta(profile, texts[i].meta)));
	if (signal && signal < NSIG && sigabbrev_np((int)signal)) {
		snprintf(status, sizeof(status), "%llu (SIG%s)",
			 profile__meta_number(profile, "exit_status"), sigabbrev_np((int)signal));
		json__add(object, "exitStatus", json__string(status));
	}
}

bool page_recording__has_exits(const struct profile *profile)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime))
		if (lifetime.exited != PROFILE_LIVE)
			return true;
	return false;
}

/* Returns the resident memory over time: pairs of a time and bytes. */
static json_object *resident_of(const struct profile *profile)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < profile->n_timeline && profile__n_runs(profile) == 1; i++) {
		json_object *pair = json_object_new_array();

		json_object_array_add(pair, json__count(profile->timeline[i].time_ns));
		json_object_array_add(pair, json__count(profile->timeline[i].rss_bytes));
		json_object_array_add(list, pair);
	}
	return list;
}

/* An element is [time, kind, name]. */
static json_object *marks_of(const struct profile *profile)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < profile->n_marks; i++) {
		json_object *entry = json_object_new_array();

		json_object_array_add(entry, json__count(profile->marks[i].time_ns));
		json_object_array_add(entry, json__string(mark_kind__name(profile->marks[i].kind)));
		json_object_array_add(entry, json__string(profile->marks[i].name));
		json_object_array_add(list, entry);
	}
	return list;
}

/* Returns the types to which rows and blocks refer, each with whether it is known; NULL if none is. */
static json_object *types_of(const struct stack_view *view)
{
	json_object *list = stack_view__knows_types(view) ? json_object_new_array() : NULL;

	for (size_t i = 0; list && i < view->n_type_names; i++) {
		json_object *entry = json_object_new_array();

		json_object_array_add(entry, json__string(view->type_names[i].name));
		json_object_array_add(entry, json_object_new_boolean(view->type_names[i].is_known));
		json_object_array_add(list, entry);
	}
	return list;
}

/* Returns the node that the stacks have in common that are charged to @function (an index + 1) and
 * have any of @cost: that of the function, if they all come to it the same way. */
static __u32 common_node(const struct page_recording *recording, __u32 function, enum cost cost)
{
	const struct page_input *input = &recording->input;
	const struct charges *charges = &recording->findings->charges;
	const __u32 *parents = recording->trie->parents;
	__u32 common = 0;

	for (size_t i = 0; function && i < input->profile->n_counts; i++) {
		__u32 node = recording->nodes[i];
		__u32 group = input->groups->by_stack[input->profile->counts[i].stack - 1];

		if (!node || charges->of_groups[group] != function ||
		    !cost__of(cost, &input->counts[i]))
			continue;
		/* The stack's node is that of the allocator's function. */
		for (__u32 depth = charges->depths[group] + 1; depth && node; depth--)
			node = parents[node];
		if (!common)
			common = node;
		while (common != node) {
			if (common > node)
				common = parents[common];
			else
				node = parents[node];
		}
		if (!common)
			return 0;
	}
	return common;
}

static enum cost cost_of_finding(const struct finding *finding)
{
	switch (finding->kind) {
	case FINDING_LOST:
	case FINDING_GROWING:
		return COST_LIVE_BYTES;
	case FINDING_PEAK:
		return COST_PEAK;
	default:
		return COST_ALLOCATIONS;
	}
}

static void add_node(json_object *list, size_t at, __u32 node)
{
	json__add(json_object_array_get_idx(list, at), "node", node ? json__count(node) : NULL);
}

static __u32 function_called(const struct page_recording *recording, const char *name)
{
	const struct charges *charges = &recording->findings->charges;

	for (size_t i = 0; name && i < charges->n; i++)
		if (!strcmp(recording->input.groups->labels[charges->functions[i].label].text,
			    name))
			return i + 1;
	return 0;
}

/* Adds the findings, or what moved, and the advice, with the nodes to which the page zooms. */
static void add_findings(const struct page_recording *recording, json_object *object)
{
	const struct findings *findings = recording->findings;
	json_object *list, *advice;

	if (!findings)
		return;
	if (recording->knows_moved) {
		list = moved_text__json(recording->moved, recording->n_moved);
		for (size_t i = 0; i < json_object_array_length(list); i++)
			add_node(list, i,
				 common_node(
					 recording,
					 function_called(recording, recording->moved[i].function),
					 recording->moved[i].cost));
	} else {
		list = findings_text__json(recording->report, findings);
		for (size_t i = 0; i < json_object_array_length(list); i++)
			add_node(list, i,
				 common_node(recording, findings->list[i].function,
					     cost_of_finding(&findings->list[i])));
	}
	json__add(object, "findings", list);
	advice = advice_text__json(recording->report, findings);
	for (size_t i = 0; i < json_object_array_length(advice); i++) {
		const struct report_entry *entry =
			&recording->report->entries[findings->advice[i].entry];

		add_node(advice, i,
			 common_node(recording, findings->charges.of_groups[entry->group],
				     COST_ALLOCATIONS));
	}
	json__add(object, "advice", advice);
}

json_object *page_recording__meta(const struct page_recording *recording,
				  const struct page_epochs *epochs)
{
	const struct profile *profile = recording->input.profile;
	json_object *object = json_object_new_object();

	if (!object)
		return NULL;
	add_texts(recording, object);
	json__add(object, "endNs", json__count(epochs->end_ns));
	json__add(object, "epochNs", json__count(epochs->epoch_ns));
	json__add(object, "nEpochs", json__count(epochs->n));
	json__add(object, "noTimeLine", text_or_null(no_time_line(recording, epochs)));
	json__add(object, "hasLive", json_object_new_boolean(filter__has_live(profile)));
	json__add(object, "hasExits", json_object_new_boolean(page_recording__has_exits(profile)));
	json__add(object, "peakBytes",
		  recording->filtered->peak_bytes ? json__count(recording->filtered->peak_bytes)
						  : NULL);
	json__add(object, "resident", resident_of(profile));
	json__add(object, "marks", marks_of(profile));
	json__add(object, "residentParts",
		  json__rss_samples(profile->rss_samples, profile->n_rss_samples));
	json__add(object, "isComplete",
		  json_object_new_boolean(completeness__is_complete(profile)));
	json__add(object, "missing", missing_of(profile, 0));
	json__add(object, "missingStrict", missing_of(profile, COMPLETENESS_STRICT));
	json__add(object, "notes", notes_of(recording));
	add_findings(recording, object);
	json__add(object, "ledger", ledger_of(profile));
	json__add(object, "processes", processes_of(profile));
	json__add(object, "threads", threads_of(profile));
	json__add(object, "types", types_of(recording->input.view));
	return object;
}
