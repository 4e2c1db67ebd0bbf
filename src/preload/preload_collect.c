// SPDX-License-Identifier: GPL-3.0-or-later
/* Collects for the profile what the engine learns from the command's files and from the processes. */
#include "preload_engine_internal.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator.h"
#include "allocator_parse.h"
#include "array.h"
#include "cleanup.h"
#include "collector.h"
#include "command_path.h"
#include "definitions.h"
#include "event_collector.h"
#include "file.h"
#include "libraries.h"
#include "live_collector.h"
#include "mapped_file.h"
#include "path.h"
#include "proc.h"
#include "profile.h"
#include "program_kind.h"
#include "runtimes.h"
#include "target.h"
#include "translator.h"

static int note_hidden(struct preload_engine *engine, int fd, const char *path)
{
	const char *name;

	if (hidden_allocator__parse(engine->parser, fd, path, &name, NULL))
		return 0;
	return profile__add_gap(engine->profile,
				&(struct profile_gap){ .kind = GAP_ALLOCATOR_HIDDEN,
						       .object = path,
						       .detail = name });
}

static int note_allocator(struct preload_engine *engine, int fd, const char *path)
{
	struct allocator *allocator;
	struct allocator_file *file;
	int err = allocator__parse(engine->parser, fd, path, &allocator, NULL);

	if (err)
		return err == -ENOENT ? note_hidden(engine, fd, path) : 0;
	if (!allocator->is_wrapper && allocator__find(allocator, AP_MALLOC)) {
		err = array__reserve(&engine->files, &engine->files_room, engine->n_files + 1,
				     sizeof(*engine->files));
		if (!err) {
			file = &engine->files[engine->n_files];
			file->path = strdup(path);
			memcpy(file->build_id, allocator->build_id, sizeof(file->build_id));
			if (file->path)
				engine->n_files++;
			else
				err = -ENOMEM;
		}
	}
	allocator__free(allocator);
	return err;
}

/* Has a file's unwind table compiled before the command maps the file. */
static int announce(struct preload_engine *engine, int fd)
{
	struct ap_module_record record = { .type = AP_RECORD_MODULE, .pid = getpid() };
	struct file_identity identity;
	char path[PATH_MAX];

	if (!engine->collector || file_identity__of(fd, &identity))
		return 0;
	/* Processes report absolute paths, so this one must be absolute, too. */
	mapped_file__path(fd, path, sizeof(path));
	record.device = identity.device;
	record.inode = identity.inode;
	/* If there is no room for the file now, it is announced when a process maps it, if there
	 * is room by then. */
	if (preload__announce(engine->preload, identity.device, identity.inode, path, &record.id))
		return 0;
	return collector__handle_module_at(engine->collector, &record, path);
}

/* Notes whether the command, which is held, will run a Python with arenas of its own. */
static void look_for_python(struct preload_engine *engine, int fd, const char *path)
{
	struct mapped_file file = { .pid = engine->target->pid, .path = path };

	if (!file_identity__of(fd, &file.identity))
		runtimes__notice_file(engine->runtimes, &file);
}

struct preparing {
	struct preload_engine *engine;
	pid_t pid; /* the running process; 0: a command */
	int err;
};

static void prepare_file(const char *path, void *context)
{
	_cleanup_(free_ptr) char *whole = realpath(path, NULL);
	_cleanup_(close_fd) int fd = whole ? regular_file__open(whole) : -1;
	struct preparing *preparing = context;

	if (fd < 0 || preparing->err)
		return;
	look_for_python(preparing->engine, fd, whole);
	preparing->err = note_allocator(preparing->engine, fd, whole);
	if (!preparing->err)
		preparing->err = preload_engine__note_regions(preparing->engine, fd, whole);
	if (!preparing->err)
		preparing->err = announce(preparing->engine, fd);
}

/* Tells the unwinder which module the library is: walks pass its frames, and stacks do not show them. */
static void announce_library(struct preload_engine *engine)
{
	const char *path = preload__library(engine->preload);
	_cleanup_(close_fd) int fd = regular_file__open(path);

	/* If its table cannot be compiled now, the library is handled like any other file. */
	if (fd >= 0)
		(void)announce(engine, fd);
}

static void use_within(int fd, void *engine)
{
	/* If its table cannot be compiled now, the library is handled like any other file. */
	(void)announce(engine, fd);
}

int preload_engine__prepare_command(struct preload_engine *engine, char *const argv[],
				    struct error *error)
{
	_cleanup_(free_ptr) char *path = NULL, *program = NULL;
	struct preparing preparing = { engine, 0 };
	_cleanup_(close_fd) int fd = -1;
	struct program_kind kind;
	int err = 0;

	engine->command = strdup(argv[0]);
	if (!engine->command)
		return -ENOMEM;
	/* If there is no such file, execve(2) reports the error. */
	if (command_path__find(argv[0], getenv("PATH"), &path) ||
	    engine->command_refusal == INSIDE_REFUSES_TRANSLATOR ||
	    command_path__elf(path, getenv("PATH"), &program))
		return 0;
	free(engine->command);
	engine->command = strdup(program);
	if (!engine->command)
		return -ENOMEM;
	/* The function's code must be known before its file is announced. */
	if (engine->within)
		err = preload_within__prepare(engine->within, program, use_within, engine, error);
	if (err)
		return err;
	if (engine->collector)
		announce_library(engine);
	prepare_file(program, &preparing);
	fd = regular_file__open(program);
	if (fd >= 0 && !program_kind__parse(engine->parser, fd, program, &kind) &&
	    kind.interpreter[0]) {
		prepare_file(kind.interpreter, &preparing);
		libraries__list(engine->parser, kind.interpreter, program, NULL, prepare_file,
				&preparing);
	}
	if (!preparing.err)
		preparing.err = preload_engine__note_expected_regions(engine);
	if (!preparing.err && engine->collector)
		collector__await_tables(engine->collector);
	return preparing.err;
}

/* Does the same for a file that a running process has mapped. */
static int announce_mapping(struct preload_engine *engine, const struct mapped_file *file,
			    __u64 offset)
{
	struct ap_module_record record = {
		.type = AP_RECORD_MODULE,
		.pid = file->pid,
		.device = file->identity.device,
		.inode = file->identity.inode,
		.start = file->start,
		.end = file->end,
		.offset = offset,
	};

	if (!engine->collector ||
	    preload__announce(engine->preload, record.device, record.inode, file->path, &record.id))
		return 0;
	return collector__handle_module_at(engine->collector, &record, file->path);
}

static int prepare_mapping(void *context, const struct proc_mapping *mapping)
{
	const struct mapped_file file = {
		.pid = ((struct preparing *)context)->pid,
		.start = mapping->start,
		.end = mapping->end,
		.identity = {
			.inode = mapping->inode,
			.device = file_identity__device(mapping->major, mapping->minor),
		},
		.path = mapping->path,
	};
	struct preparing *preparing = context;
	struct preload_engine *engine = preparing->engine;
	_cleanup_(close_fd) int fd = -1;
	struct file_identities identities;

	if (!mapping->is_executable || !mapping->inode)
		return 0;
	runtimes__notice_file(engine->runtimes, &file);
	fd = mapped_file__open(&file, &(struct file_identifier){ 0 }, &identities);
	if (fd >= 0)
		preparing->err = note_allocator(engine, fd, mapping->path);
	if (fd >= 0 && !preparing->err)
		preparing->err = preload_engine__note_regions(engine, fd, mapping->path);
	if (!preparing->err)
		preparing->err = announce_mapping(engine, &file, mapping->offset);
	return preparing->err;
}

int preload_engine__prepare_process(struct preload_engine *engine, pid_t pid, struct error *error)
{
	struct preparing preparing = { engine, pid, 0 };
	char link[32];
	int err = 0;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	if (engine->within)
		err = preload_within__prepare(engine->within, link, use_within, engine, error);
	if (err)
		return err;
	err = proc_maps__each(pid, prepare_mapping, &preparing);
	if (!err && engine->collector)
		collector__await_tables(engine->collector);
	return err;
}

static int handle_module(void *context, const struct ap_module_record *record, const char *path)
{
	const struct mapped_file file = {
		.pid = record->pid,
		.start = record->start,
		.end = record->end,
		.identity = { record->inode, record->device, 0 },
		.path = path,
	};
	struct preload_engine *engine = context;

	runtimes__notice_file(engine->runtimes, &file);
	return engine->collector ? collector__handle_module_at(engine->collector, record, path) : 0;
}

int preload_engine__take_modules(struct preload_engine *engine)
{
	return preload__take_modules(engine->preload, handle_module, engine);
}

static int add_refused(struct preload_engine *engine, const char *path, const char *why, __u32 pid)
{
	const char *slash = strrchr(path, '/');
	_cleanup_(free_ptr) char *name = strdup(slash ? slash + 1 : path);
	struct profile_gap gap = { .kind = GAP_PROGRAM_REFUSED, .number = 1, .pid = pid };

	if (!name)
		return -ENOMEM;
	for (char *at = name; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = '?';
	if (why == preload__refusal_name(INSIDE_REFUSES_MACHINE))
		gap.kind = GAP_PROGRAM_FOREIGN;
	else if (translator__is_one(path))
		gap.kind = GAP_PROGRAM_TRANSLATED;
	gap.object = name;
	gap.detail = why;
	return profile__add_gap(engine->profile, &gap);
}

static int find_library(struct dl_phdr_info *info, size_t size, void *found)
{
	if (!strcmp(path__name(info->dlpi_name), INSIDE_LIBRARY))
		*(bool *)found = true;
	return 0;
}

/* Says why the command has made no entry although its dynamic linker can load the library. If
 * another recording counts in this process, its library is the one that the command gets. */
static const char *why_no_entry(void)
{
	bool is_measured = false;

	dl_iterate_phdr(find_library, &is_measured);
	return is_measured ? "in which another recording's library counts"
			   : "whose dynamic linker did not load the library";
}

int preload_engine__collect_refused(struct preload_engine *engine)
{
	const struct preload_results *counted = &engine->counted;
	__u32 target = engine->target->pid;
	bool begins;
	int err = 0;

	for (size_t i = engine->forgotten.n_refused; i < counted->n_refused && !err; i++) {
		const struct preload_refused *refused = &counted->refused[i];

		if (refused->by_other_engine)
			continue;
		err = add_refused(engine, refused->path, preload__refusal_name(refused->reason),
				  refused->pid);
		if (!refused->was_preloaded)
			engine->processes++;
	}
	if (err || engine->is_command_by_other ||
	    preload_engine__has_entry(counted, target, &begins))
		return err;
	engine->processes++;
	/* A program that begins after the end of the measurement makes no entry, and has no calls
	 * in it. */
	if (begins || (engine->command_refusal < 0 && !counted->n_programs && counted->n_begun))
		return 0;
	return add_refused(engine, engine->command ? engine->command : "(unknown)",
			   engine->command_refusal >= 0
				   ? preload__refusal_name(engine->command_refusal)
				   : why_no_entry(),
			   target);
}

static void count_gaps(const struct preload_engine *engine, __u64 gaps[GAP_NUMBERS])
{
	const struct preload_results *counted = &engine->counted;
	__u64 execs = counted->gaps[INSIDE_GAP_EXECS];

	gaps[GAP_PROGRAMS_UNCOUNTED] = counted->gaps[INSIDE_GAP_PROGRAMS];
	gaps[GAP_THREADS_UNCOUNTED] = counted->gaps[INSIDE_GAP_THREADS];
	gaps[GAP_CALLS_EARLY] = counted->gaps[INSIDE_GAP_EARLY];
	gaps[GAP_OWN_FUNCTIONS] = counted->gaps[INSIDE_GAP_FUNCTIONS];
	gaps[GAP_COLLECTORS] = counted->gaps[INSIDE_GAP_COLLECTED];
	gaps[GAP_LIBRARIES_UNSEEN] = counted->gaps[INSIDE_GAP_LOADS];
	gaps[GAP_WORDS_UNBOUND] = engine->left.n_lost;
	gaps[GAP_PROGRAM_EXECUTED] = engine->n_executed;
	gaps[GAP_PROCESS_NOT_LEFT] = engine->n_not_left;
	gaps[GAP_COUNTED_UNSEEN] = counted->gaps[INSIDE_GAP_COUNTED];
	gaps[GAP_MEMORY_REPLACED] = counted->gaps[INSIDE_GAP_REPLACED];
	gaps[GAP_PROGRAMS_UNNAMED] = execs > counted->n_refused ? execs - counted->n_refused : 0;
	gaps[GAP_ENTRIES_UNFINISHED] = counted->n_unfinished;
	gaps[GAP_ENTRIES_DAMAGED] =
		counted->n_damaged + (engine->live ? live_collector__implausible(engine->live) : 0);
}

struct reading_stacks {
	struct preload_engine *engine;
	bool is_damaged; /* a stack has a frame of a file that does not exist */
};

static int handle_python(void *context, const struct ap_python_record *record)
{
	struct preload_engine *engine = context;

	return collector__handle_record(engine->collector, record,
					sizeof(*record) + record->n_name + record->n_file);
}

static bool has_modules(const struct preload *preload, const struct ap_stack_record *record)
{
	const struct ap_frame *frames = (const struct ap_frame *)(record + 1);

	for (__u32 i = 0; i < record->n_frames; i++)
		if (!preload__has_taken(preload, frames[i].module))
			return false;
	return true;
}

static int handle_stack(void *context, const struct ap_stack_record *record)
{
	struct reading_stacks *reading = context;
	struct preload_engine *engine = reading->engine;
	int err = 0;

	/* A file is published before any stack with a frame in it; it may have come since the last
	 * look. */
	if (!reading->is_damaged && !has_modules(engine->preload, record)) {
		err = preload_engine__take_modules(engine);
		reading->is_damaged = !has_modules(engine->preload, record);
	}
	return err ? err
		   : collector__handle_record(engine->collector, record,
					      sizeof(*record) +
						      record->n_frames * sizeof(struct ap_frame));
}

int preload_engine__read_stack(struct preload_engine *engine, const struct inside_record_key *key)
{
	struct reading_stacks reading = { .engine = engine };

	return preload__read_stack(engine->preload, key, handle_stack, &reading);
}

int preload_engine__read_stacks(struct preload_engine *engine)
{
	struct reading_stacks reading = { .engine = engine };
	bool has_python;
	int err = preload__read_stacks(engine->preload, handle_stack, &reading, &has_python);

	return err || !has_python ? err
				  : preload__read_python(engine->preload, handle_python, engine);
}

static int collect_stacks(struct preload_engine *engine)
{
	int err;

	collector__finish_tables(engine->collector);
	err = preload_engine__take_modules(engine);
	if (err)
		return err;
	return engine->live ? preload_engine__read_stacks(engine)
			    : preload_engine__move_counts(engine, false);
}

static int collect_all(struct preload_engine *engine)
{
	int err = preload_engine__read(engine, &engine->counted);

	if (!err)
		err = preload_engine__end_programs(engine);
	if (!err && engine->events)
		err = preload_engine__finish_events(engine);
	if (!err && engine->live)
		err = preload_engine__stop_live(engine);
	if (!err && engine->options.stacks)
		err = collect_stacks(engine);
	if (!err && engine->live)
		err = preload_engine__collect_live(engine);
	if (!err && engine->events)
		preload_engine__end_log(engine);
	if (!err)
		preload_engine__leave_out_forgotten(engine);
	return err;
}

int preload_engine__collect(struct preload_engine *engine)
{
	int err = engine->is_snapshot ? preload_engine__collect_snapshot(engine)
				      : collect_all(engine);
	int torn = err == -EAGAIN ? err : 0;

	if (err && !torn)
		return err;
	engine->processes = preload_engine__count_processes(&engine->counted) -
			    engine->n_forgotten_processes - engine->processes_of_other;
	err = engine->options.regions ? preload_engine__collect_regions(engine) : 0;
	if (!err)
		err = preload_engine__collect_refused(engine);
	return err ? err : torn;
}

static void add_functions(const struct preload_engine *engine)
{
	const struct preload_results *counted = &engine->counted;

	for (int i = 0; i < AP_FUNCTIONS; i++) {
		struct function_totals *function = &engine->profile->totals.functions[i];

		if (!(engine->options.functions >> i & 1))
			continue;
		/* Functions that are not C's are listed only where an allocator has them. */
		function->probed |= i < AP_C_FUNCTIONS || counted->functions[i].calls;
		site_counts__add(&function->counts, &counted->functions[i]);
	}
	for (int i = 0; i < AP_MAX_DEFINITIONS; i++) {
		enum ap_function number = definition__function(i, 0);
		struct function_totals *function = &engine->profile->totals.functions[number];

		function->probed |= counted->is_found[i];
		if (!(engine->options.functions >> number & 1))
			continue;
		function->counts.calls =
			profile__add_up(function->counts.calls, counted->counted[i]);
	}
}

/* Adds the sums of calls. Processes that still run may have counted further calls between the
 * readings, so the attributed ones may exceed the events. */
static void add_calls(const struct preload_engine *engine)
{
	const __u64 *stats = engine->counted.stats;
	struct engine_calls calls = { .events = stats[AP_STAT_EVENTS], .may_be_short = true };

	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++)
		calls.lost[reason] = stats[AP_STAT_LOST + reason];
	if (engine->options.stacks) {
		calls.attributed = collector__attributed(engine->collector);
		calls.not_sampled = stats[AP_STAT_NOT_SAMPLED];
	}
	profile__add_engine_calls(engine->profile, &calls, engine->options.stacks);
}

static bool has_calls(const struct preload_results *counted)
{
	for (int i = 0; i < AP_FUNCTIONS; i++)
		if (counted->functions[i].calls)
			return true;
	return false;
}

/* Returns a clause that says why the window never opened; NULL if it did. */
static const char *why_not_opened(const struct preload_engine *engine)
{
	const struct preload_results *counted = &engine->counted;

	if (!engine->was_open)
		return engine->options.window.paused ? "`allocprof ctl start` was not called"
						     : "the target ended before the delay was over";
	if (engine->within && !counted->stats[AP_STAT_UNDECIDED] && !has_calls(counted))
		return preload_within__why_none(engine->within);
	return NULL;
}

static int add_window(const struct preload_engine *engine)
{
	int err;

	if (!window_options__any(&engine->options.window))
		return 0;
	err = profile__add_ledger(engine->profile, "undecided",
				  engine->within ? engine->counted.stats[AP_STAT_UNDECIDED] : 0);
	return err ? err : profile__note_window(engine->profile, why_not_opened(engine));
}

/* Returns whether the processes' Pythons had tables of their allocators, by which all of their objects counted. */
static bool has_domains(const struct preload_engine *engine)
{
	const struct definitions *definitions = engine->options.definitions;

	for (size_t i = 0; definitions && i < definitions->n; i++)
		if (definitions->list[i].domain &&
		    engine->counted.is_found[definitions->list[i].index])
			return true;
	return false;
}

/* Stores the lines of runtimes with heaps that were not counted; NULL if there is none. The caller frees *@out. */
static int list_own_heaps(const struct preload_engine *engine, char **out)
{
	_cleanup_(free_ptr) char *lines = strdup(runtimes__own_heaps(engine->runtimes) ?: "");
	_cleanup_(free_ptr) char *listed = NULL;
	bool skips_python = has_domains(engine);

	for (char *rest = lines, *line; rest && (line = strsep(&rest, "\n"));) {
		char *more;

		if (!*line || (skips_python && !strncmp(line, "python ", strlen("python "))))
			continue;
		if (asprintf(&more, "%s%s%s", listed ?: "", listed ? "\n" : "", line) < 0)
			return -ENOMEM;
		free(listed);
		listed = more;
	}
	if (!lines)
		return -ENOMEM;
	*out = listed;
	listed = NULL;
	return 0;
}

/* Adds figures that the user reads beside the counts of calls. */
static int add_figures(const struct preload_engine *engine)
{
	const struct preload_results *counted = &engine->counted;
	const struct {
		const char *key;
		__u64 number;
		bool may_be_0;
	} numbers[] = {
		{ "own_bytes", preload__memory_bytes(engine->preload) },
		{ "impossible_calls", counted->stats[AP_STAT_IMPOSSIBLE] },
		{ "common_names", counted->gaps[INSIDE_GAP_NAMES] },
		{ "waits", counted->waits, true },
		{ "waits_ns", counted->waits_ns, true },
		{ "stopped_threads", engine->entered.n_threads },
		{ "stopped_ns", engine->entered.stopped_ns > engine->left.stopped_ns
					? engine->entered.stopped_ns
					: engine->left.stopped_ns },
	};
	_cleanup_(free_ptr) char *own_heaps = NULL;
	struct profile *profile = engine->profile;
	int err = list_own_heaps(engine, &own_heaps);

	profile->totals.processes += engine->processes;
	profile->totals.processes_left += engine->processes_left;
	for (size_t i = 0; i < ARRAY_SIZE(numbers) && !err; i++)
		if (numbers[i].number || numbers[i].may_be_0)
			err = profile__add_meta_number(profile, numbers[i].key, numbers[i].number);
	if (!err && own_heaps && !profile__meta(profile, "own_heaps"))
		err = profile__set_meta(profile, "own_heaps", own_heaps);
	return err;
}

/* Adds how many events the log has, and how many it lacks. */
static int add_log(const struct preload_engine *engine)
{
	struct event_log_results log = engine->log_at_cut;

	if (engine->events)
		preload_engine__log_results(engine, &log);
	return event_log_results__add(&log, engine->profile);
}

int preload_engine__results(struct engine *base)
{
	struct preload_engine *engine = preload_engine__of(base);
	__u64 gaps[GAP_NUMBERS] = { 0 };
	int err = preload_engine__add_regions(engine, gaps);

	add_functions(engine);
	add_calls(engine);
	if (engine->live)
		preload_engine__add_live(engine);
	if (!err)
		err = add_figures(engine);
	if (!err)
		err = add_window(engine);
	if (!err)
		err = add_log(engine);
	count_gaps(engine, gaps);
	return err ? err : profile__add_numbers(engine->profile, gaps, GAP_NUMBERS);
}
