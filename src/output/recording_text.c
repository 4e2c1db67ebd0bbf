// SPDX-License-Identifier: GPL-3.0-or-later
#include "recording_text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "completeness.h"
#include "filter.h"
#include "number.h"
#include "path.h"
#include "profile.h"
#include "profile_runs.h"
#include "terminal.h"
#include "text.h"

/* How many children a sentence names. */
#define CHILDREN_NAMED 4
/* A recording has no more of them (allocprof-data(5)). */
#define CHILDREN_LISTED 64

char *recording_text__title(const struct profile *profile)
{
	const char *command = profile__meta(profile, "command");
	const char *pid = profile__meta(profile, "attached_pid");
	const char *attached = profile__meta(profile, "attached_command");
	const char *pids = profile__meta(profile, "attached_pids");
	char run[RUNS_TEXT_SIZE], *text;

	if (command && runs_text__taken(profile, run))
		return asprintf(&text, "%s, %s", command, run) < 0 ? NULL : text;
	if (command || !pid)
		return strdup(command ?: "allocprof");
	if (pids && (attached || strchr(pids, ',')))
		return attached					       ? strdup(attached)
		       : asprintf(&text, "processes %.200s", pids) < 0 ? NULL
								       : text;
	return (attached ? asprintf(&text, "%s (process %s)", attached, pid)
			 : asprintf(&text, "process %s", pid)) < 0
		       ? NULL
		       : text;
}

char *recording_text__subject(const struct profile *profile)
{
	const char *command = profile__meta(profile, "command");

	if (command)
		return strdup(command);
	return profile__meta(profile, "attached_pid") ? recording_text__title(profile) : NULL;
}

/* Prints those of @children for which a sentence has room, and returns how many there are in all. */
static size_t print_children(const char *children, FILE *to)
{
	size_t n = 0;

	for (const char *line = children; *line; n++) {
		size_t len = strcspn(line, "\n"), digits = strcspn(line, " \n");

		if (n < CHILDREN_NAMED && digits < len)
			fprintf(to, "%s%.*s (%.*s)", n ? ", " : "", (int)digits, line,
				(int)(len - digits - 1), line + digits + 1);
		line += len + (line[len] == '\n');
	}
	return n;
}

/* Returns whether the recording was attached to one process, and no more could come. */
static bool is_one(const struct profile *profile)
{
	return !profile__meta(profile, "attached_pids");
}

/* Prints the subject of a sentence on the processes that were attached to. */
static void print_whose(const struct profile *profile, FILE *to)
{
	const char *pids = profile__meta(profile, "attached_pids");

	if (!pids || !strchr(pids, ','))
		fprintf(to, "process %s", profile__meta(profile, "attached_pid"));
	else
		fputs("the measured processes", to);
}

/* Prints the numbers of those children that a sentence names, for -p. */
static void print_numbers(const char *children, FILE *to)
{
	size_t n = 0;

	for (const char *line = children; *line && n < CHILDREN_NAMED; n++) {
		fprintf(to, "%s%.*s", n ? "," : "", (int)strcspn(line, " \n"), line);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
}

static void print_all_children(const struct profile *profile, const char *children, FILE *to)
{
	_cleanup_(free_ptr) char *list = NULL;
	size_t size, n;
	FILE *names = open_memstream(&list, &size);

	if (!names)
		return;
	n = print_children(children, names);
	if (fclose(names) || !n)
		return;
	print_whose(profile, to);
	fprintf(to, " %s %s%s %s, which %s not measured: %s", is_one(profile) ? "has" : "have",
		n < CHILDREN_LISTED ? "" : "at least ", number__count(n).text,
		plural__of("child{|ren}", n).text, plural__of("{was|were}", n).text, list);
	if (n > CHILDREN_NAMED)
		fprintf(to, " and %s more", number__count(n - CHILDREN_NAMED).text);
	fprintf(to, "; attach to %s as well: -p ", plural__of("{it|them}", n).text);
	print_numbers(children, to);
	fputc('\n', to);
}

/* If allocprof's own memory is below this share of the limit, it is not mentioned. */
#define OWN_SHARE 16

/* Says what ended the command, and whether allocprof's own memory may have been the reason. */
static void print_end(const struct profile *profile, FILE *to)
{
	__u64 signal = profile__meta_number(profile, "exit_signal");
	__u64 kills = profile__meta_number(profile, "oom_kills");
	__u64 group_bytes = profile__meta_number(profile, "group_limit_bytes");
	__u64 own_bytes = profile__meta_number(profile, "own_in_group")
				  ? profile__meta_number(profile, "own_bytes")
				  : 0;
	const char *name;
	bool has_ended;

	if (signal >= NSIG)
		signal = 0;
	name = signal ? sigabbrev_np((int)signal) : NULL;
	has_ended = signal || kills;
	if (signal)
		fprintf(to, "the command was ended by the signal %s%s", name ? "SIG" : "number ",
			name ?: number__count(signal).text);
	if (kills)
		fprintf(to, "%sthe kernel ended %s %s of %s control group for want of memory (OOM)",
			signal ? ": " : "", number__count(kills).text,
			plural__of("process{|es}", kills).text, signal ? "its" : "the target's");
	if (kills && group_bytes)
		fprintf(to, "; the group's limit is %s", number__bytes(group_bytes, false).text);
	if (!has_ended && own_bytes > group_bytes / OWN_SHARE && group_bytes)
		fprintf(to, "the limit of memory of the target's control group is %s",
			number__bytes(group_bytes, false).text);
	else if (!has_ended)
		return;
	if ((kills || !has_ended) && own_bytes)
		fprintf(to, ", of which allocprof itself had %s",
			number__bytes(own_bytes, false).text);
	fputc('\n', to);
}

static void print_attached(const struct profile *profile, FILE *to)
{
	__u64 rss_bytes = profile__meta_number(profile, "attached_rss_bytes");
	const char *children = profile__meta(profile, "attached_children");

	if (rss_bytes) {
		print_whose(profile, to);
		fprintf(to,
			" had %s of memory (RSS) when the recording began: what was allocated "
			"by then is not in this recording\n",
			number__bytes(rss_bytes, false).text);
	}
	if (children)
		print_all_children(profile, children, to);
}

int recording_text__beside(const struct profile *profile, bool attached_only, char **text)
{
	__u64 impossible = profile__meta_number(profile, "impossible_calls");
	char *made = NULL;
	size_t size;
	FILE *to = open_memstream(&made, &size);

	if (!to)
		return -ENOMEM;
	print_attached(profile, to);
	if (impossible && !attached_only)
		fprintf(to,
			"%s %s for 128 TiB or more, which no process can have: counted as %s, with no "
			"bytes\n",
			number__count(impossible).text,
			plural__of("call{|s} asked", impossible).text,
			plural__of("{a call|calls}", impossible).text);
	if (!attached_only)
		print_end(profile, to);
	if (fclose(to)) {
		free(made);
		return -ENOMEM;
	}
	*text = made;
	return 0;
}

bool recording_text__has_left(const struct profile *profile)
{
	const struct profile_totals *totals = &profile->totals;

	return totals->run.runs || (totals->run.is_attached && totals->processes_left);
}

int recording_text__goes_on(const struct profile *profile, char **text)
{
	__u64 threads = profile__meta_number(profile, "stopped_threads");
	char who[64] = "the measured processes go on";
	int length;

	if (is_one(profile))
		snprintf(who, sizeof(who), "process %d goes on", profile->totals.run.pid);
	if (is_one(profile) && profile__gap(profile, GAP_PROGRAM_EXECUTED))
		length = asprintf(text, "%s with another program", who);
	else if (threads)
		length = asprintf(
			text,
			"%s; the library stays mapped and counts no more; %s stood still for %.1f ms at most",
			who,
			threads == 1	  ? "its thread"
			: is_one(profile) ? "its threads"
					  : "their threads",
			profile__meta_number(profile, "stopped_ns") / 1e6);
	else
		length = asprintf(text, "%s without probes", who);
	return length < 0 ? -ENOMEM : 0;
}

int recording_text__print_beside(const struct profile *profile, const struct terminal *terminal)
{
	_cleanup_(free_ptr) char *text = NULL;
	int err = recording_text__beside(profile, false, &text);

	for (char *rest = text, *line; !err && (line = strsep(&rest, "\n")) && *line;) {
		terminal__print(terminal, line, 0);
		fputc('\n', terminal->to);
	}
	return err;
}

/* Runtimes that serve objects from memory of their own, and how to see these objects. In the
 * message the path follows the name. */
static const struct own_heap {
	const char *runtime, *name, *what;
} own_heap_texts[] = {
	{ "python", "Python",
	  "keeps objects of up to 512 bytes in arenas of its own, which are no calls of malloc; "
	  "--engine=preload --allocator python counts them, and PYTHONMALLOC=malloc in its environment "
	  "makes them calls" },
	{ "go", "Go",
	  "allocates from a heap of its own, not by malloc: only what C code of the program "
	  "allocates is counted; Go's package runtime/pprof profiles the rest" },
	{ "java", "The JVM",
	  "keeps Java's objects in a heap of its own, and classes and code in memory that it maps: only "
	  "what native code allocates is counted; jcmd PID GC.class_histogram shows the objects, and "
	  "VM.native_memory the rest, with -XX:NativeMemoryTracking" },
	{ "erlang", "The Erlang VM",
	  "carves terms, binaries and what NIFs get by enif_alloc out of carriers of its own: only the "
	  "carriers, most of which it maps, and other callers of malloc are counted; erlang:memory() "
	  "and recon_alloc show the rest, and +Mea min makes each a call of malloc" },
	{ "dotnet", ".NET",
	  "keeps objects in a heap of its own, which it maps: only what native code allocates is "
	  "counted; dotnet-counters and dotnet-gcdump show the objects" },
	{ "javascript", "V8",
	  "keeps JavaScript's objects in a heap of its own, which it maps: only buffers and what native "
	  "code allocates are counted; v8.writeHeapSnapshot() and --heap-prof show the objects" },
	{ "php", "PHP",
	  "keeps values in a heap of its own, in chunks that it maps; --allocator php counts these, "
	  "and USE_ZEND_ALLOC=0 in its environment makes them calls of malloc" },
	{ "ruby", "Ruby",
	  "keeps objects in slots of its own, in pages of 64 KiB: only what does not fit into a slot is "
	  "counted; --allocator ruby counts the objects, and ObjectSpace shows them" },
};

static bool is_library(const char *path)
{
	const char *suffix = strstr(path__name(path), ".so");

	return suffix && (!suffix[3] || suffix[3] == '.');
}

/* Returns whether code of the file is in a stack. In the mount namespace of a process its directory
 * may be another one. */
static bool has_allocated(const struct profile *profile, const char *path)
{
	for (size_t i = 0; i < profile->n_frames; i++) {
		__u32 id = profile->frames[i].module;

		if (id &&
		    !strcmp(profile_module__basename(&profile->modules[id - 1]), path__name(path)))
			return true;
	}
	return false;
}

/* Returns whether each call of the command from its first moment on is in a stack. */
static bool has_each_call(const struct profile *profile)
{
	return profile->n_stacks && profile__meta(profile, "command") &&
	       !profile__meta(profile, "window_opened") && !profile__sample_bytes(profile) &&
	       !profile__ledger(profile, "lost");
}

/* A runtime in a library may never be started: some programs are linked to it and seldom use it.
 * When it starts it calls malloc. Go starts where its library is mapped. */
static void print_own_heap(const struct profile *profile, const struct own_heap *heap,
			   const char *path, FILE *to)
{
	bool may_be_idle = is_library(path) && strcmp(heap->runtime, "go") != 0 &&
			   !has_allocated(profile, path);

	if (!may_be_idle || !has_each_call(profile))
		fprintf(to, "%s (%.1024s)%s %s\n", heap->name, path,
			may_be_idle ? ", if the program starts it," : "", heap->what);
}

int recording_text__own_heaps(const struct profile *profile, char **text)
{
	_cleanup_(free_ptr) char *lines = strdup(profile__meta(profile, "own_heaps") ?: "");
	char *made = NULL;
	size_t size;
	FILE *to = lines ? open_memstream(&made, &size) : NULL;

	if (!to)
		return -ENOMEM;
	for (char *rest = lines, *path; (path = strsep(&rest, "\n"));) {
		const char *runtime = strsep(&path, " ");

		for (size_t i = 0; path && i < ARRAY_SIZE(own_heap_texts); i++)
			if (!strcmp(own_heap_texts[i].runtime, runtime))
				print_own_heap(profile, &own_heap_texts[i], path, to);
	}
	if (fclose(to)) {
		free(made);
		return -ENOMEM;
	}
	*text = made;
	return 0;
}

int recording_text__remarks(const struct profile *profile, char **text)
{
	_cleanup_(free_ptr) char *missing = NULL, *sampled = NULL;
	int err = completeness__lines(profile, COMPLETENESS_BRIEF, &missing);

	if (err)
		return err;
	sampled = completeness__sampled(profile);
	if (asprintf(text, "%s%s%s", sampled ?: "", sampled ? "\n" : "", missing) < 0)
		return -ENOMEM;
	return 0;
}

bool runs_text__taken(const struct profile *profile, char text[RUNS_TEXT_SIZE])
{
	if (!profile__meta(profile, "run") || !profile__meta(profile, "runs"))
		return false;
	snprintf(text, RUNS_TEXT_SIZE, "run %llu of %llu", profile__meta_number(profile, "run"),
		 profile__meta_number(profile, "runs"));
	return true;
}

int runs_text__range(const struct profile *profile, struct figure_range *range)
{
	__u32 n = profile__n_runs(profile);
	_cleanup_(free_ptr) __s64 *events = calloc(n, sizeof(*events));

	if (!events)
		return -ENOMEM;
	for (__u32 i = 0; i < n; i++)
		events[i] = profile__run_ledger(profile, i + 1, "events");
	*range = figures__range(events, n);
	return 0;
}

static void print_number(const struct profile *profile, FILE *to)
{
	__u64 wanted = profile__meta_number(profile, "wanted_runs");
	__u32 n = profile__n_runs(profile);

	if (wanted > n)
		fprintf(to, "%s of %s runs", number__count(n).text, number__count(wanted).text);
	else
		fprintf(to, "%s %s", number__count(n).text, plural__of("run{|s}", n).text);
}

int runs_text__print(const struct profile *profile, FILE *to)
{
	struct figure_range range;
	int err = runs_text__range(profile, &range);

	if (err)
		return err;
	print_number(profile, to);
	if (range.min == range.max)
		fprintf(to, ": %s %s%s", number__count(range.min).text,
			plural__of("event{|s}", range.min).text,
			profile__n_runs(profile) > 1 ? " each time" : "");
	else
		fprintf(to, ": %s to %s events, median %s, spread %s",
			number__count(range.min).text, number__count(range.max).text,
			number__count(range.median).text,
			number__count(range.max - range.min).text);
	return 0;
}

int runs_text__print_subject(const struct profile *profile, FILE *to)
{
	char taken[RUNS_TEXT_SIZE];
	int err;

	if (runs_text__taken(profile, taken)) {
		fprintf(to, "%s\n", taken);
		return 0;
	}
	if (profile->n_runs < 2)
		return 0;
	err = runs_text__print(profile, to);
	if (err)
		return err;
	fputs("\nthe figures are sums of all runs", to);
	if (filter__has_live(profile))
		fprintf(to, ", but the peak is that of run %u, the highest",
			profile__peak_run(profile));
	fputs("; --run shows one\n", to);
	return 0;
}
