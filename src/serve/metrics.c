// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes metrics of a recording that goes on. */
#include "metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "array.h"
#include "charges.h"
#include "cleanup.h"
#include "clock.h"
#include "proc.h"
#include "profile.h"
#include "served_profile.h"
#include "stack_groups.h"
#include "text.h"

/* A name of C++ may have thousands of bytes; what is beyond this is cut off, and names that are alike then are
 * one series. */
#define MAX_LABEL 200

enum value {
	VALUE_ALLOCATIONS,
	VALUE_BYTES,
	VALUE_ENDED,
	VALUE_ENDED_BYTES,
	COUNTERS,
	VALUE_LIVE = COUNTERS,
	VALUE_LIVE_BYTES,
	VALUES,
};

struct row {
	char label[MAX_LABEL + 1];
	__u32 pid; /* of processes, else 0 */
	bool has_ended;
	__u64 values[VALUES];
	__u64 gained[COUNTERS]; /* since the last copy */
};

struct table {
	struct row *before; /* all rows of the last copy, by name; their counters do not fall */
	size_t n_before;
	bool has_before;
	struct row *listed; /* those that have a series, by name, with what was written last */
	size_t n_listed;
	struct row other;
};

struct metrics {
	unsigned int most;
	bool is_restart;
	struct table functions, processes;
	__u64 lost, cpu_ns;
};

struct metrics *metrics__new(unsigned int most, bool is_restart)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (!metrics)
		return NULL;
	metrics->most = most;
	metrics->is_restart = is_restart;
	metrics->functions.listed = calloc(most, sizeof(struct row));
	metrics->processes.listed = calloc(most, sizeof(struct row));
	if (metrics->functions.listed && metrics->processes.listed)
		return metrics;
	free(metrics->functions.listed);
	free(metrics->processes.listed);
	free(metrics);
	return NULL;
}

static void row__name(struct row *row, const char *text)
{
	size_t len = strlen(text);

	if (len > MAX_LABEL)
		len = MAX_LABEL;
	/* A character is not cut in two. */
	while (text[len] && len && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	memcpy(row->label, text, len);
	row->label[len] = '\0';
	utf8__clean(row->label);
}

static int compare_names(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid)
				: strcmp(x->label, y->label);
}

static int compare_bytes(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->values[VALUE_BYTES] != y->values[VALUE_BYTES])
		return x->values[VALUE_BYTES] < y->values[VALUE_BYTES] ? 1 : -1;
	return compare_names(a, b);
}

static void add_values(__u64 to[VALUES], const __u64 more[VALUES])
{
	for (size_t i = 0; i < VALUES; i++)
		to[i] += more[i];
}

/* Adds up rows of one name. Returns how many are left. */
static size_t merge(struct row *rows, size_t n)
{
	size_t left = 0;

	qsort(rows, n, sizeof(*rows), compare_names);
	for (size_t i = 0; i < n; i++) {
		if (left && !compare_names(&rows[left - 1], &rows[i])) {
			add_values(rows[left - 1].values, rows[i].values);
			rows[left - 1].has_ended &= rows[i].has_ended;
		} else {
			rows[left++] = rows[i];
		}
	}
	return left;
}

/* Notes what a row has gained since @before, which is NULL if it was not there. */
static void row__compare(struct row *row, const struct row *before)
{
	for (size_t i = 0; i < COUNTERS; i++) {
		__u64 was = before ? before->values[i] : 0;

		if (row->values[i] < was)
			row->values[i] = was;
		row->gained[i] = row->values[i] - was;
	}
}

/* Adds gains to the counters of a series, and the gauges. */
static void row__add(struct row *series, const struct row *row)
{
	for (size_t i = 0; i < VALUES; i++)
		series->values[i] += i < COUNTERS ? row->gained[i] : row->values[i];
}

static void row__clear_gauges(struct row *series)
{
	for (size_t i = COUNTERS; i < VALUES; i++)
		series->values[i] = 0;
}

static void forget_ended(struct table *table, const struct row *rows, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < table->n_listed; i++) {
		const struct row *now =
			bsearch(&table->listed[i], rows, n, sizeof(*rows), compare_names);

		if (now && !now->has_ended)
			table->listed[left++] = table->listed[i];
	}
	table->n_listed = left;
	qsort(table->listed, left, sizeof(*table->listed), compare_names);
}

/*
 * Adds what @rows, which merge() has sorted, have gained to their series: those that are listed, the largest of
 * the others while there is room, and the one of the rest. What was added to one series stays there, so a row
 * that changes its series is not counted twice. Takes *@rows, and leaves NULL, if there is memory.
 */
static int update(struct table *table, const struct metrics *metrics, struct row **rows, size_t n)
{
	_cleanup_(free_ptr) struct row *others = calloc(n + 1, sizeof(*others));
	bool starts_at_zero = !table->has_before && metrics->is_restart;
	size_t n_others = 0, known;

	if (!others)
		return -ENOMEM;
	forget_ended(table, *rows, n);
	known = table->n_listed;
	for (size_t i = 0; i < known; i++)
		row__clear_gauges(&table->listed[i]);
	row__clear_gauges(&table->other);
	for (size_t i = 0; i < n; i++) {
		struct row *row = &(*rows)[i];
		struct row *series =
			bsearch(row, table->listed, known, sizeof(*row), compare_names);

		row__compare(row, starts_at_zero ? row
						 : bsearch(row, table->before, table->n_before,
							   sizeof(*row), compare_names));
		if (series)
			row__add(series, row);
		else
			others[n_others++] = *row;
	}
	qsort(others, n_others, sizeof(*others), compare_bytes);
	for (size_t i = 0; i < n_others; i++) {
		struct row *series = &table->other;

		if (table->n_listed < metrics->most && !others[i].has_ended) {
			series = &table->listed[table->n_listed++];
			*series = others[i];
			memset(series->values, 0, sizeof(series->values));
		}
		row__add(series, &others[i]);
	}
	free(table->before);
	table->before = *rows;
	table->n_before = n;
	table->has_before = true;
	*rows = NULL;
	return 0;
}

static void set_values(__u64 values[VALUES], __u64 n, __u64 bytes, __u64 live, __u64 live_bytes)
{
	const __u64 all[VALUES] = {
		[VALUE_ALLOCATIONS] = n,
		[VALUE_BYTES] = bytes,
		[VALUE_ENDED] = n > live ? n - live : 0,
		[VALUE_ENDED_BYTES] = bytes > live_bytes ? bytes - live_bytes : 0,
		[VALUE_LIVE] = live,
		[VALUE_LIVE_BYTES] = live_bytes,
	};

	add_values(values, all);
}

static int update_functions(struct metrics *metrics, const struct served_profile *served)
{
	const struct profile *profile = served->profile;
	_cleanup_(free_ptr) struct selection *counts =
		calloc(profile->n_counts + 1, sizeof(*counts));
	_cleanup_(free_ptr) struct row *rows = NULL;
	struct charges charges = { 0 };
	int err;

	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++)
		counts[i] = served->filtered.counts[i];
	served_profile__drop_ended(profile, counts);
	err = charges__make(profile, served->groups, counts, &charges);
	if (!err) {
		rows = calloc(charges.n + 1, sizeof(*rows));
		err = rows ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < charges.n && !err; i++) {
		const struct charged_function *function = &charges.functions[i];

		row__name(&rows[i], served->groups->labels[function->label].text);
		set_values(rows[i].values, function->allocations, function->size_bytes,
			   function->live, function->live_bytes);
	}
	if (!err)
		err = update(&metrics->functions, metrics, &rows, merge(rows, charges.n));
	charges__release(&charges);
	return err;
}

static int update_processes(struct metrics *metrics, const struct served_profile *served)
{
	const struct profile *profile = served->profile;
	_cleanup_(free_ptr) struct row *rows = calloc(profile->n_processes + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_processes; i++) {
		const struct profile_process *process = &profile->processes[i];

		rows[i].pid = process->pid;
		rows[i].has_ended = process->end_ns;
		row__name(&rows[i], process->comm);
	}
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		const struct selection *of = &served->filtered.counts[i];

		if (charges__include(profile, count))
			set_values(rows[count->process - 1].values, of->allocations, of->size_bytes,
				   of->live, of->live_bytes);
	}
	for (size_t i = 0; i < profile->n_processes; i++)
		if (rows[i].has_ended)
			row__clear_gauges(&rows[i]);
	return update(&metrics->processes, metrics, &rows, merge(rows, profile->n_processes));
}

/* An answer under way. OpenMetrics names a counter without the ending _total that its samples have. */
struct writer {
	FILE *to;
	bool is_open;
};

static void head(const struct writer *writer, const char *name, bool is_counter, const char *help)
{
	const char *end = is_counter && !writer->is_open ? "_total" : "";

	fprintf(writer->to, "# HELP allocprof_%s%s %s\n# TYPE allocprof_%s%s %s\n", name, end, help,
		name, end, is_counter ? "counter" : "gauge");
}

static void label(const struct writer *writer, const char *name, const char *value)
{
	fprintf(writer->to, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', writer->to);
		if (*value == '\n')
			fputs("\\n", writer->to);
		else
			fputc(*value, writer->to);
	}
	fputc('"', writer->to);
}

static void labels(const struct writer *writer, const struct row *row, bool is_function)
{
	fputc('{', writer->to);
	if (row->pid)
		fprintf(writer->to, "pid=\"%u\",", row->pid);
	label(writer, is_function ? "function" : "program", row->label);
	fputc('}', writer->to);
}

static const struct {
	const char *name, *help;
} values[VALUES] = {
	[VALUE_ALLOCATIONS] = { "allocations", "Blocks that were allocated" },
	[VALUE_BYTES] = { "allocated_bytes", "Bytes that were allocated" },
	[VALUE_ENDED] = { "deallocations", "Blocks that were freed" },
	[VALUE_ENDED_BYTES] = { "deallocated_bytes", "Bytes that were freed" },
	[VALUE_LIVE] = { "live_blocks", "Blocks that are not freed" },
	[VALUE_LIVE_BYTES] = { "live_bytes", "Bytes that are not freed" },
};

static void write_table(const struct writer *writer, const struct table *table, bool is_function)
{
	struct row other = table->other;
	char name[64];

	snprintf(other.label, sizeof(other.label), "(other)");
	for (size_t i = 0; i < VALUES; i++) {
		bool is_counter = i < COUNTERS;

		/* The recording does not have which function frees a block. */
		if (is_function && (i == VALUE_ENDED || i == VALUE_ENDED_BYTES))
			continue;
		snprintf(name, sizeof(name), "%s%s", is_function ? "function_" : "",
			 values[i].name);
		head(writer, name, is_counter, values[i].help);
		for (size_t j = 0; j <= table->n_listed; j++) {
			const struct row *row = j < table->n_listed ? &table->listed[j] : &other;

			fprintf(writer->to, "allocprof_%s%s", name, is_counter ? "_total" : "");
			labels(writer, row, is_function);
			fprintf(writer->to, " %llu\n", row->values[i]);
		}
	}
}

/* Returns the resident bytes of a process, or 0. */
static __u64 resident(__u32 pid)
{
	struct proc_memory memory;

	return proc_memory__read(pid, &memory) ? memory.rss_bytes : 0;
}

static void write_resident(const struct writer *writer, const struct table *table)
{
	head(writer, "resident_bytes", false, "Resident memory of the process");
	for (size_t i = 0; i < table->n_listed; i++) {
		__u64 bytes = resident(table->listed[i].pid);

		/* The process has ended since. */
		if (!bytes)
			continue;
		fputs("allocprof_resident_bytes", writer->to);
		labels(writer, &table->listed[i], false);
		fprintf(writer->to, " %llu\n", bytes);
	}
}

static __u64 own_cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ULL;
}

static void write_pushes(const struct writer *writer, const struct otlp_counts *counts)
{
	const struct {
		const char *name, *help;
		__u64 n;
	} families[] = {
		{ "otlp_accepted", "Pushes that the collector has taken", counts->accepted },
		{ "otlp_postponed", "Pushes that are made again, with what came since",
		  counts->postponed },
		{ "otlp_dropped", "Pushes that the collector will never have", counts->dropped },
		{ "otlp_rejected_profiles", "Profiles of accepted pushes that it has not taken",
		  counts->rejected },
	};

	for (size_t i = 0; i < ARRAY_SIZE(families) && counts->is_used; i++) {
		head(writer, families[i].name, true, families[i].help);
		fprintf(writer->to, "allocprof_%s_total %llu\n", families[i].name, families[i].n);
	}
}

/* Writes what is not of a process or function. */
static void write_rest(const struct writer *writer, struct metrics *metrics,
		       const struct served_profile *served)
{
	const struct profile *profile = served->profile;
	__u64 lost = profile__ledger(profile, "lost");
	__u64 cpu_ns = served->costs.cpu_ns + own_cpu_ns();
	__u64 memory = served->costs.memory_bytes + resident(getpid());

	if (lost > metrics->lost)
		metrics->lost = lost;
	if (cpu_ns > metrics->cpu_ns)
		metrics->cpu_ns = cpu_ns;
	head(writer, "calls_lost", true, "Calls that were not counted");
	fprintf(writer->to, "allocprof_calls_lost_total %llu\n", metrics->lost);
	head(writer, "sample_bytes", false,
	     "One byte of so many was sampled; 0: every call counts");
	fprintf(writer->to, "allocprof_sample_bytes %llu\n", profile__sample_bytes(profile));
	head(writer, "copy_time_seconds", false, "When these numbers were taken, since 1970");
	fprintf(writer->to, "allocprof_copy_time_seconds %llu.%03llu\n",
		served->taken_ns / NS_PER_S, served->taken_ns / 1000000 % 1000);
	head(writer, "own_cpu_seconds", true, "Processor time of allocprof's processes");
	fprintf(writer->to, "allocprof_own_cpu_seconds_total %llu.%03llu\n",
		metrics->cpu_ns / NS_PER_S, metrics->cpu_ns / 1000000 % 1000);
	head(writer, "own_memory_bytes", false, "Resident memory of allocprof's processes");
	fprintf(writer->to, "allocprof_own_memory_bytes %llu\n", memory);
	write_pushes(writer, &served->costs.otlp);
}

int metrics__write(struct metrics *metrics, const struct served_profile *served, bool is_open,
		   FILE *to)
{
	const struct writer writer = { to, is_open };
	int err = update_functions(metrics, served);

	if (!err)
		err = update_processes(metrics, served);
	if (err)
		return err;
	write_table(&writer, &metrics->processes, false);
	write_resident(&writer, &metrics->processes);
	write_table(&writer, &metrics->functions, true);
	write_rest(&writer, metrics, served);
	if (is_open)
		fputs("# EOF\n", to);
	return 0;
}
