// SPDX-License-Identifier: GPL-3.0-or-later
#include "stat_report.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "measure.h"
#include "probes.h"
#include "profile.h"
#include "session.h"

/* What the counts of single functions add up to; docs/semantics.md has the words. */
struct totals {
	__u64 allocations, reallocations, deallocations;
	__u64 allocations_size_bytes, reallocations_size_bytes;
	__u64 internal;
	bool knows_frees; /* free was among the functions asked for */
};

static bool is_selected(const struct measure *measure, const struct session_function *function,
			int leading)
{
	if (measure->session.functions & (1U << leading))
		return true;
	for (size_t i = 0; i < function->n_aliases; i++) {
		int alias = profile__function_by_name(function->aliases[i]);

		if (alias >= 0 && (measure->session.functions & (1U << alias)))
			return true;
	}
	return false;
}

static bool is_shown(const struct measure *measure, const struct session_results *results, int i)
{
	return results->functions[i].probed && is_selected(measure, &results->functions[i], i);
}

static struct totals add_up(const struct measure *measure, const struct session_results *results)
{
	struct totals totals = { 0 };

	for (int i = 0; i < AP_FUNCTIONS; i++) {
		const struct ap_site_counts *counts = &results->functions[i].counts;

		if (!is_shown(measure, results, i))
			continue;
		totals.internal += counts->internal;
		if (i == AP_FREE) {
			totals.knows_frees = true;
			totals.deallocations += counts->calls - counts->null;
		} else if (i == AP_REALLOC || i == AP_REALLOCARRAY) {
			totals.allocations += counts->fresh;
			totals.allocations_size_bytes += counts->fresh_size_bytes;
			totals.deallocations += counts->released;
			totals.reallocations += counts->calls - counts->fresh - counts->released;
			totals.reallocations_size_bytes +=
				counts->size_bytes - counts->fresh_size_bytes;
		} else {
			totals.allocations += counts->calls;
			totals.allocations_size_bytes += counts->size_bytes;
		}
	}
	return totals;
}

/* "1,234,567" */
static const char *grouped(char *text, __u64 value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", value), at = 0;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = digits[i];
	}
	text[at] = '\0';
	return text;
}

static void print_count(FILE *to, __u64 value, const char *what, const char *note)
{
	char text[32];

	fprintf(to, "%20s      %s%s%s\n", grouped(text, value), what, *note ? "  # " : "", note);
}

static void print_functions(const struct measure *measure, const struct session_results *results,
			    FILE *to)
{
	char calls[32], bytes[32], internal[32];

	fprintf(to, "%20s      %-16s %18s %12s\n", "calls", "function", "bytes asked for",
		"internal");
	for (int i = 0; i < AP_FUNCTIONS; i++) {
		const struct session_function *function = &results->functions[i];

		if (!is_shown(measure, results, i))
			continue;
		fprintf(to, "%20s      %-16s %18s %12s", grouped(calls, function->counts.calls),
			profile__function_name(i),
			i == AP_FREE ? "" : grouped(bytes, function->counts.size_bytes),
			grouped(internal, function->counts.internal));
		/* Names with underscores are the C library's own for the same thing. */
		for (size_t j = 0, shown = 0; j < function->n_aliases; j++)
			if (function->aliases[j][0] != '_')
				fprintf(to, "%s%s", shown++ ? ", " : "  # with ",
					function->aliases[j]);
		fputc('\n', to);
	}
}

static void print_completeness(const struct session *session,
			       const struct session_results *results, FILE *to)
{
	const struct probed_allocator *allocators;
	char text[32];
	size_t n;

	allocators = session__allocators(session, &n);
	for (size_t i = 0; i < n; i++)
		if (allocators[i].gap[0])
			fprintf(to, "  not complete: allocator %s was %s\n", allocators[i].path,
				allocators[i].gap);
	if (results->processes_unfollowed)
		fprintf(to, "  not complete: %s processes could not be followed\n",
			grouped(text, results->processes_unfollowed));
	fprintf(to, "%20s      lost", grouped(text, results->lost_total));
	for (int reason = 0, shown = 0; reason < AP_LOST_REASONS; reason++)
		if (results->lost[reason])
			fprintf(to, "%s%s %s", shown++ ? ", " : "  # ",
				grouped(text, results->lost[reason]), profile__lost_name(reason));
	fputc('\n', to);
}

int stat_report__text(const struct session *session, const struct measure *measure,
		      const struct session_results *results, FILE *to)
{
	struct totals totals = add_up(measure, results);

	if (measure->pid) {
		fprintf(to, "\n Allocation counts for process %d:\n\n", measure->pid);
	} else {
		fprintf(to, "\n Allocation counts for '");
		for (char **word = measure->argv; *word; word++)
			fprintf(to, "%s%s", word == measure->argv ? "" : " ", *word);
		fprintf(to, "':\n\n");
	}
	print_functions(measure, results, to);
	fputc('\n', to);
	print_count(to, totals.allocations, "allocations", "requests; failed ones are among them");
	print_count(to, totals.reallocations, "reallocations", "");
	if (totals.knows_frees) {
		print_count(to, totals.deallocations, "deallocations", "without free(NULL)");
		if (totals.allocations >= totals.deallocations)
			print_count(to, totals.allocations - totals.deallocations,
				    "remaining allocations", "allocations - deallocations");
		else
			print_count(to, totals.deallocations - totals.allocations,
				    "more deallocations than allocations",
				    "of blocks from before the start");
	}
	print_count(to, totals.allocations_size_bytes + totals.reallocations_size_bytes,
		    "bytes asked for", "");
	print_count(to, results->processes,
		    results->processes == 1 ? "process" : "processes", "");
	print_completeness(session, results, to);
	fprintf(to, "\n%20.6f seconds elapsed\n", results->elapsed_seconds);
	if (!measure->pid && !results->target_runs)
		fprintf(to, "%20.6f seconds user\n%20.6f seconds sys\n", results->user_seconds,
			results->system_seconds);
	if (results->target_runs)
		fprintf(to, "\n Process %d goes on without probes.\n", results->target_pid);
	fputc('\n', to);
	return fflush(to) ? -errno : 0;
}

static json_t *json_functions(const struct measure *measure, const struct session_results *results)
{
	json_t *functions = json_object();

	for (int i = 0; i < AP_FUNCTIONS; i++) {
		const struct session_function *function = &results->functions[i];
		json_t *aliases;

		if (!is_shown(measure, results, i))
			continue;
		aliases = json_array();
		for (size_t j = 0; j < function->n_aliases; j++)
			json_array_append_new(aliases, json_string_nocheck(function->aliases[j]));
		json_object_set_new(functions, profile__function_name(i),
				    json_pack("{sI sI sI so}", "calls",
					      (json_int_t)function->counts.calls, "internal",
					      (json_int_t)function->counts.internal, "bytes",
					      (json_int_t)function->counts.size_bytes, "aliases",
					      aliases));
	}
	return functions;
}

static json_t *json_lost(const struct session_results *results)
{
	json_t *lost = json_pack("{sI}", "total", (json_int_t)results->lost_total);

	for (int reason = 0; reason < AP_LOST_REASONS; reason++)
		json_object_set_new(lost, profile__lost_name(reason),
				    json_integer(results->lost[reason]));
	return lost;
}

static json_t *json_allocators(const struct session *session)
{
	const struct probed_allocator *list;
	json_t *allocators = json_array();
	size_t n;

	list = session__allocators(session, &n);
	for (size_t i = 0; i < n; i++) {
		json_t *path = json_string(list[i].path);

		json_array_append_new(
			allocators,
			json_pack("{so ss ss*}", "path", path ? path : json_null(), "build_id",
				  list[i].build_id, "gap", list[i].gap[0] ? list[i].gap : NULL));
	}
	return allocators;
}

/* Words that are not UTF-8 come as Latin-1: JSON has no bytes, and to leave them out is worse. */
static json_t *json_word(const char *word)
{
	json_t *string = json_string(word);
	char utf8[8192];
	size_t at = 0;

	if (string)
		return string;
	for (; *word && at + 3 < sizeof(utf8); word++) {
		unsigned char c = *word;

		if (c >= 0x80) {
			utf8[at++] = 0xc0 | c >> 6;
			c = 0x80 | (c & 0x3f);
		}
		utf8[at++] = c;
	}
	return json_stringn(utf8, at);
}

static json_t *json_command(const struct measure *measure)
{
	json_t *command;

	if (!measure->argv)
		return json_null();
	command = json_array();
	for (char **word = measure->argv; *word; word++)
		json_array_append_new(command, json_word(*word));
	return command;
}

static json_t *signed_or_null(bool known, json_int_t value)
{
	return known ? json_integer(value) : json_null();
}

int stat_report__json(const struct session *session, const struct measure *measure,
		      const struct session_results *results, FILE *to)
{
	struct totals totals = add_up(measure, results);
	bool ended = measure->argv && !results->target_runs;
	json_int_t allocations = totals.allocations, reallocations = totals.reallocations;
	json_t *root = json_object();
	int err;

	json_object_set_new(root, "schema", json_string("allocprof-stat/1"));
	json_object_set_new(root, "command", json_command(measure));
	json_object_set_new(root, "pid", signed_or_null(measure->pid, measure->pid));
	json_object_set_new(root, "exit_status", signed_or_null(ended, results->exit_status));
	json_object_set_new(root, "elapsed_seconds", json_real(results->elapsed_seconds));
	json_object_set_new(root, "user_seconds",
			    ended ? json_real(results->user_seconds) : json_null());
	json_object_set_new(root, "system_seconds",
			    ended ? json_real(results->system_seconds) : json_null());
	json_object_set_new(root, "processes", json_integer(results->processes));
	json_object_set_new(root, "basis", json_string("requests"));
	json_object_set_new(root, "complete", json_boolean(results->complete));
	json_object_set_new(root, "functions", json_functions(measure, results));
	json_object_set_new(root, "allocations", json_integer(allocations));
	json_object_set_new(root, "reallocations", json_integer(reallocations));
	json_object_set_new(root, "deallocations",
			    signed_or_null(totals.knows_frees, totals.deallocations));
	json_object_set_new(root, "bytes_allocated", json_integer(totals.allocations_size_bytes));
	json_object_set_new(root, "bytes_deallocated", json_null());
	json_object_set_new(root, "bytes_reallocated", json_null());
	json_object_set_new(root, "failed", json_null());
	json_object_set_new(root, "total_allocations", json_integer(allocations + reallocations));
	json_object_set_new(root, "remaining_allocations",
			    signed_or_null(totals.knows_frees,
					   allocations - (json_int_t)totals.deallocations));
	json_object_set_new(root, "total_allocated_bytes",
			    json_integer(totals.allocations_size_bytes +
					 totals.reallocations_size_bytes));
	json_object_set_new(root, "internal", json_integer(totals.internal));
	json_object_set_new(root, "relabelled", json_integer(results->relabelled));
	json_object_set_new(root, "lost", json_lost(results));
	json_object_set_new(root, "processes_unfollowed",
			    json_integer(results->processes_unfollowed));
	json_object_set_new(root, "allocators", json_allocators(session));
	errno = 0;
	err = json_dumpf(root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(root);
	if (err)
		return errno ? -errno : -ENOMEM;
	return fputc('\n', to) == EOF || fflush(to) ? -errno : 0;
}
