// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile_runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "data_file.h"
#include "data_rows.h"
#include "error.h"
#include "profile_internal.h"

/* A run that is copied from one profile to another. */
struct profile_copy {
	const struct profile *from;
	struct profile *to;
	__u32 from_run, to_run;
	/* @to is empty, and gets the frames and stacks of all runs with their ids. */
	bool keeps_ids;
	/* Filled by the copy: id in @to, indexed by id - 1 in @from; 0: not copied; owned. */
	__u32 *modules, *functions, *files, *frames, *stacks, *processes, *threads, *counts;
};

static void profile_copy__release(struct profile_copy *copy)
{
	free(copy->modules);
	free(copy->functions);
	free(copy->files);
	free(copy->frames);
	free(copy->stacks);
	free(copy->processes);
	free(copy->threads);
	free(copy->counts);
}

/* Returns the module of @to that is the same file as another profile's @module, or 0. */
static __u32 profile_copy__find_module(const struct profile *to,
				       const struct profile_module *module)
{
	for (size_t i = 0; i < to->n_modules; i++) {
		const struct profile_module *other = &to->modules[i];

		if (strcmp(other->path, module->path) || strcmp(other->build_id, module->build_id))
			continue;
		if (*module->build_id || other->file == module->file)
			return other->id;
	}
	return 0;
}

static int copy_modules(struct profile_copy *copy)
{
	int err = 0;

	for (size_t i = 0; i < copy->from->n_modules && !err; i++) {
		const struct profile_module *module = &copy->from->modules[i];
		__u32 *id = &copy->modules[i];

		err = profile__add_module_file(copy->to, module->path, module->build_id,
					       module->file, id);
		if (!err && !*copy->to->modules[*id - 1].symbols)
			err = profile__set_module_symbols(copy->to, *id, module->symbols);
	}
	return err;
}

static int copy_names(struct profile_copy *copy)
{
	int err = 0;

	for (size_t i = 0; i < copy->from->n_functions && !err; i++) {
		const struct profile_function *function = &copy->from->functions[i];

		err = profile__add_function(copy->to, function->symbol, function->name,
					    function->full_name, &copy->functions[i]);
	}
	for (size_t i = 0; i < copy->from->n_files && !err; i++)
		err = profile__add_file(copy->to, copy->from->files[i].path, &copy->files[i]);
	return err;
}

/* Returns the lines of @frame with function and file ids of @to, which the caller frees; NULL:
 * there is no memory. */
static struct profile_line *translate_lines(const struct profile_copy *copy,
					    const struct profile_frame *frame)
{
	struct profile_line *lines = calloc(frame->n_lines + 1, sizeof(*lines));

	for (__u32 i = 0; lines && i < frame->n_lines; i++) {
		lines[i] = frame->lines[i];
		lines[i].function = copy->functions[lines[i].function - 1];
		if (lines[i].file)
			lines[i].file = copy->files[lines[i].file - 1];
	}
	return lines;
}

static bool has_lines(const struct profile_frame *frame, const struct profile_line *lines,
		      __u32 n_lines)
{
	if (frame->n_lines != n_lines)
		return false;
	for (__u32 i = 0; i < n_lines; i++)
		if (frame->lines[i].function != lines[i].function ||
		    frame->lines[i].file != lines[i].file || frame->lines[i].line != lines[i].line)
			return false;
	return true;
}

/* Copies a frame that is an address without a known file: in each run it may have been other code. */
static int copy_address(struct profile_copy *copy, const struct profile_frame *frame,
			const struct profile_line *lines, __u32 *id)
{
	const struct profile_frame *found = NULL;

	if (!copy->keeps_ids)
		found = profile__find_frame(copy->to, 0, frame->offset, frame->place);
	if (!found || !has_lines(found, lines, frame->n_lines))
		return profile__add_other_frame(copy->to, frame->offset, frame->place, id);
	*id = found->id;
	return 0;
}

static int copy_frame(struct profile_copy *copy, const struct profile_frame *frame, __u32 *id)
{
	_cleanup_(free_ptr) struct profile_line *lines = translate_lines(copy, frame);
	int err;

	if (!lines)
		return -ENOMEM;
	if (frame->tail_call)
		err = profile__add_tail_call(copy->to, copy->modules[frame->module - 1],
					     frame->offset, id);
	else if (frame->module)
		err = profile__add_frame(copy->to, copy->modules[frame->module - 1], frame->offset,
					 frame->place, id);
	else
		err = copy_address(copy, frame, lines, id);
	if (!err && frame->n_lines && !copy->to->frames[*id - 1].n_lines)
		err = profile__set_frame_lines(copy->to, *id, lines, frame->n_lines);
	return err;
}

static int copy_stacks(struct profile_copy *copy)
{
	__u32 frames[AP_MAX_DEPTH];
	int err = 0;

	for (size_t i = 0; i < copy->from->n_frames && !err; i++)
		err = copy_frame(copy, &copy->from->frames[i], &copy->frames[i]);
	for (size_t i = 0; i < copy->from->n_stacks && !err; i++) {
		const struct profile_stack *stack = &copy->from->stacks[i];

		for (__u32 j = 0; j < stack->n_frames; j++)
			frames[j] = copy->frames[stack->frames[j] - 1];
		err = profile__add_stack(copy->to, frames, stack->n_frames, stack->end,
					 &copy->stacks[i]);
	}
	return err;
}

static int copy_processes(struct profile_copy *copy)
{
	int err = 0;

	for (size_t i = 0; i < copy->from->n_processes && !err; i++) {
		const struct profile_process *process = &copy->from->processes[i];
		__u32 parent = process->parent ? copy->processes[process->parent - 1] : 0;

		if (process->run != copy->from_run)
			continue;
		err = profile__add_process(copy->to, parent, process->pid, process->start_ns,
					   process->comm, &copy->processes[i]);
		if (err)
			break;
		copy->to->processes[copy->to->n_processes - 1].end_ns = process->end_ns;
		copy->to->processes[copy->to->n_processes - 1].execed = process->execed;
		copy->to->processes[copy->to->n_processes - 1].run = copy->to_run;
		if (process->group)
			err = profile__set_group(copy->to, copy->processes[i], process->group,
						 process->group_name);
		if (!err && process->arguments)
			err = profile__set_arguments(copy->to, copy->processes[i],
						     process->arguments);
	}
	for (size_t i = 0; i < copy->from->n_threads && !err; i++) {
		const struct profile_thread *thread = &copy->from->threads[i];
		__u32 process = copy->processes[thread->process - 1];

		if (process)
			err = profile__add_thread(copy->to, process, thread->name,
						  &copy->threads[i]);
	}
	return err;
}

static int copy_blocks(struct profile_copy *copy, const struct profile_count *count, __u32 id)
{
	struct profile_blocks blocks;

	if (!profile__count_blocks(copy->from, count, &blocks))
		return 0;
	blocks.count = id;
	return profile__add_blocks(copy->to, &blocks);
}

static int copy_samples(struct profile_copy *copy, const struct profile_count *count, __u32 id)
{
	const struct profile_samples *from = profile__count_samples(copy->from, count);
	struct profile_samples *to;
	int err = from ? profile__get_samples(copy->to, id, &to) : 0;

	if (!from || err)
		return err;
	*to = *from;
	to->count = id;
	return 0;
}

/* Translates the function of a defined allocator to the other profile. */
static int copy_function(struct profile_copy *copy, enum ap_function *function)
{
	const char *name = definition_names__function(&copy->from->definitions, *function);
	int known = definition_names__take(&copy->to->definitions, name);

	if (known < 0)
		return known;
	*function = known;
	return 0;
}

static int copy_counts(struct profile_copy *copy)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;
	int err = 0;

	for (size_t i = 0; i < copy->from->n_counts && !err; i++) {
		const struct profile_count *count = &copy->from->counts[i];
		__u32 thread = copy->threads[count->thread - 1];
		enum ap_function function = count->function;

		if (!thread)
			continue;
		err = copy_function(copy, &function);
		if (!err)
			err = profile__add_count(copy->to, thread, copy->stacks[count->stack - 1],
						 function, count->calls, count->size_bytes,
						 &copy->counts[i]);
		if (!err)
			err = copy_blocks(copy, count, copy->counts[i]);
		if (!err)
			err = copy_samples(copy, count, copy->counts[i]);
	}
	while (!err && profile__next_lifetime(copy->from, &at, &lifetime)) {
		__u32 count = copy->counts[lifetime.count - 1];

		lifetime.count = count;
		if (count)
			err = profile__add_lifetime(copy->to, &lifetime);
	}
	return err;
}

static int copy_timeline(struct profile_copy *copy)
{
	int err = 0;

	for (size_t i = 0; i < copy->from->n_timeline && !err; i++) {
		struct timeline_sample sample = copy->from->timeline[i];

		if (sample.run != copy->from_run)
			continue;
		sample.run = copy->to_run;
		err = profile__add_timeline_sample(copy->to, &sample);
	}
	return err;
}

static int make_room(struct profile_copy *copy)
{
	const struct profile *from = copy->from;
	const struct {
		__u32 **ids;
		size_t n;
	} arrays[] = {
		{ &copy->modules, from->n_modules }, { &copy->functions, from->n_functions },
		{ &copy->files, from->n_files },     { &copy->frames, from->n_frames },
		{ &copy->stacks, from->n_stacks },   { &copy->processes, from->n_processes },
		{ &copy->threads, from->n_threads }, { &copy->counts, from->n_counts },
	};

	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
		*arrays[i].ids = calloc(arrays[i].n + 1, sizeof(**arrays[i].ids));
		if (!*arrays[i].ids)
			return -ENOMEM;
	}
	return 0;
}

/* Copies all of the run but meta and ledger. Returns 0 or -ENOMEM. The caller releases it in
 * either case. */
static int profile_copy__run(struct profile_copy *copy)
{
	return make_room(copy) ?: copy_modules(copy) ?: copy_names(copy) ?: copy_stacks(copy) ?:
	       copy_processes(copy) ?: copy_counts(copy) ?: copy_timeline(copy) ?:
	       profile__copy_rss(copy->to, copy->from, copy->processes) ?:
	       profile__copy_heaps(copy->to, copy->from, copy->processes) ?:
	       profile__copy_mappings(copy->to, copy->from, copy->counts);
}

/* Sets the lines of @frame in @to to those of @from's frame, and adds their functions and files.
 * Returns 0 or -ENOMEM. */
static int profile_copy__lines(struct profile *to, __u32 frame, const struct profile *from,
			       const struct profile_frame *of)
{
	_cleanup_(free_ptr) struct profile_line *lines = calloc(of->n_lines + 1, sizeof(*lines));
	int err = lines ? 0 : -ENOMEM;

	for (__u32 i = 0; i < of->n_lines && !err; i++) {
		const struct profile_function *function =
			&from->functions[of->lines[i].function - 1];

		lines[i] = of->lines[i];
		err = profile__add_function(to, function->symbol, function->name,
					    function->full_name, &lines[i].function);
		if (!err && lines[i].file)
			err = profile__add_file(to, from->files[lines[i].file - 1].path,
						&lines[i].file);
	}
	return err ? err : profile__set_frame_lines(to, frame, lines, of->n_lines);
}

__u32 profile__n_runs(const struct profile *profile)
{
	return profile->n_runs ? profile->n_runs : 1;
}

__u32 profile__count_run(const struct profile *profile, const struct profile_count *count)
{
	return profile->n_runs ? profile->processes[count->process - 1].run : 1;
}

static bool match_meta(const void *run, __u32 id, const void *key)
{
	return !strcmp(((const struct profile_run *)run)->meta[id - 1].key, key);
}

static const char *find_meta(const struct profile *profile, const struct profile_run *run,
			     const char *key)
{
	__u32 found = hash_table__find(&run->meta_index, hash_string(profile->index->seed, key),
				       match_meta, run, key);

	return found ? run->meta[found - 1].value : NULL;
}

static bool match_entry(const void *run, __u32 id, const void *name)
{
	return !strcmp(((const struct profile_run *)run)->ledger[id - 1].name, name);
}

static const struct profile_ledger_entry *
find_entry(const struct profile *profile, const struct profile_run *run, const char *name)
{
	__u32 found = hash_table__find(&run->ledger_index, hash_string(profile->index->seed, name),
				       match_entry, run, name);

	return found ? &run->ledger[found - 1] : NULL;
}

const char *profile__run_meta(const struct profile *profile, __u32 run, const char *key)
{
	return profile->n_runs ? find_meta(profile, &profile->runs[run - 1], key)
			       : profile__meta(profile, key);
}

__u64 profile__run_ledger(const struct profile *profile, __u32 run, const char *name)
{
	const struct profile_ledger_entry *entry;

	if (!profile->n_runs)
		return profile__ledger(profile, name);
	entry = find_entry(profile, &profile->runs[run - 1], name);
	return entry ? entry->value : 0;
}

static __u64 number_of(const char *text)
{
	return text ? strtoull(text, NULL, 10) : 0;
}

__u32 profile__peak_run(const struct profile *profile)
{
	__u64 most = 0;
	__u32 found = 1;

	for (__u32 run = 1; run <= profile__n_runs(profile); run++) {
		__u64 peak = number_of(profile__run_meta(profile, run, "peak_bytes"));

		if (peak > most) {
			most = peak;
			found = run;
		}
	}
	return found;
}

static int get_run(struct profile *profile, __u32 number, struct profile_run **run)
{
	if (!number || number > profile->n_runs + 1 || number > PROFILE_MAX_RUNS)
		return -EINVAL;
	if (number > profile->n_runs) {
		if (array__reserve(&profile->runs, &profile->index->runs_room, number,
				   sizeof(*profile->runs)))
			return -ENOMEM;
		profile->runs[profile->n_runs++] = (struct profile_run){ 0 };
	}
	*run = &profile->runs[number - 1];
	return 0;
}

int profile__add_run_meta(struct profile *profile, __u32 number, const char *key, const char *value)
{
	struct profile_meta entry;
	struct profile_run *run;
	int err = get_run(profile, number, &run);

	if (!err && find_meta(profile, run, key))
		err = -EINVAL;
	if (err)
		return err;
	entry.key = strdup(key);
	entry.value = strdup(value);
	if (!entry.key || !entry.value ||
	    profile_index__append(&run->meta_index, hash_string(profile->index->seed, key),
				  &run->meta, &run->meta_room, &run->n_meta, &entry,
				  sizeof(entry))) {
		free(entry.key);
		free(entry.value);
		return -ENOMEM;
	}
	return 0;
}

int profile__add_run_ledger(struct profile *profile, __u32 number, const char *name, __u64 value)
{
	struct profile_ledger_entry entry = { .value = value };
	struct profile_run *run;
	int err = get_run(profile, number, &run);

	if (!err && find_entry(profile, run, name))
		err = -EINVAL;
	if (err)
		return err;
	entry.name = strdup(name);
	if (!entry.name ||
	    profile_index__append(&run->ledger_index, hash_string(profile->index->seed, name),
				  &run->ledger, &run->ledger_room, &run->n_ledger, &entry,
				  sizeof(entry))) {
		free(entry.name);
		return -ENOMEM;
	}
	return 0;
}

/* How a meta entry of a series of runs is computed from the entries of the runs. An entry without
 * a rule is that of the first run. */
enum rule {
	RULE_FIRST,
	RULE_SUM,
	RULE_SECONDS,
	RULE_LEAST,
	RULE_MOST,
	RULE_FAILURE, /* the first that is not 0 */
	RULE_LINES,   /* the union of all lines */
};

static enum rule rule_of(const char *key)
{
	static const struct {
		const char *key;
		enum rule rule;
	} rules[] = {
		{ "elapsed_seconds", RULE_SECONDS }, { "exit_status", RULE_FAILURE },
		{ "allocators", RULE_LINES },	     { "uprobe_programs", RULE_LINES },
		{ "no_unwind_table", RULE_LINES },   { "own_heaps", RULE_LINES },
		{ "epoch_ns", RULE_MOST },	     { "peak_bytes", RULE_MOST },
		{ "kernel_bytes", RULE_MOST },	     { "max_live", RULE_LEAST },
		{ "max_records", RULE_LEAST },	     { "window_opened", RULE_LEAST },
		{ "unread_files", RULE_LINES },	     { "common_names", RULE_SUM },
		{ "exit_signal", RULE_FAILURE },     { "oom_kills", RULE_SUM },
		{ "impossible_calls", RULE_SUM },    { "own_bytes", RULE_MOST },
		{ "group_limit_bytes", RULE_LEAST },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (!strcmp(rules[i].key, key))
			return rules[i].rule;
	return RULE_FIRST;
}

static bool has_line(const char *text, const char *line, size_t len)
{
	while (*text) {
		size_t text_len = strcspn(text, "\n");

		if (text_len == len && !memcmp(text, line, len))
			return true;
		text += text_len + (text[text_len] == '\n');
	}
	return false;
}

/* Returns the lines of @old and those of @more that @old lacks, which the caller frees; NULL:
 * there is no memory. */
static char *add_lines(const char *old, const char *more)
{
	char *text = malloc(strlen(old) + strlen(more) + 2), *to;

	if (!text)
		return NULL;
	to = stpcpy(text, old);
	while (*more) {
		size_t len = strcspn(more, "\n");

		if (len && !has_line(text, more, len)) {
			if (to > text)
				*to++ = '\n';
			to = mempcpy(to, more, len);
			*to = '\0';
		}
		more += len + (more[len] == '\n');
	}
	return text;
}

int profile__add_unread(struct profile *profile, const char *path, const char *why)
{
	const char *old = profile__meta(profile, "unread_files");
	_cleanup_(free_ptr) char *line = NULL;
	_cleanup_(free_ptr) char *lines = NULL;

	if (asprintf(&line, "%s: %s", path, why) < 0) {
		line = NULL;
		return -ENOMEM;
	}
	for (char *c = line; *c; c++)
		if (*c == '\n')
			*c = '?';
	lines = add_lines(old ?: "", line);
	return lines ? profile__set_meta(profile, "unread_files", lines) : -ENOMEM;
}

int profile__forget_unread(struct profile *profile)
{
	return profile__meta(profile, "unread_files")
		       ? profile__set_meta(profile, "unread_files", "")
		       : 0;
}

static int combine(struct profile *profile, const char *key, const char *old, const char *more)
{
	_cleanup_(free_ptr) char *lines = NULL;
	enum rule rule = rule_of(key);
	__u64 a = number_of(old), b = number_of(more);
	char text[64];

	switch (rule) {
	case RULE_FIRST:
		return 0;
	case RULE_LINES:
		lines = add_lines(old, more);
		return lines ? profile__set_meta(profile, key, lines) : -ENOMEM;
	case RULE_SECONDS:
		snprintf(text, sizeof(text), "%.6f", strtod(old, NULL) + strtod(more, NULL));
		return profile__set_meta(profile, key, text);
	case RULE_SUM:
		snprintf(text, sizeof(text), "%llu", profile__add_up(a, b));
		return profile__set_meta(profile, key, text);
	case RULE_FAILURE:
		return a ? 0 : profile__set_meta(profile, key, more);
	case RULE_LEAST:
		return b < a ? profile__set_meta(profile, key, more) : 0;
	case RULE_MOST:
		return b > a ? profile__set_meta(profile, key, more) : 0;
	}
	return -EINVAL;
}

static int settle_run(struct profile *profile, const struct profile_run *run)
{
	int err = 0;

	for (size_t i = 0; i < run->n_meta && !err; i++) {
		const struct profile_meta *entry = &run->meta[i];
		const char *old = profile__meta(profile, entry->key);

		err = old ? combine(profile, entry->key, old, entry->value)
			  : profile__set_meta(profile, entry->key, entry->value);
	}
	for (size_t i = 0; i < run->n_ledger && !err; i++) {
		const struct profile_ledger_entry *entry = &run->ledger[i];

		err = profile__set_ledger(
			profile, entry->name,
			profile__add_up(profile__ledger(profile, entry->name), entry->value));
	}
	return err;
}

static int set_number(struct profile *profile, const char *key, __u64 value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", value);
	return profile__set_meta(profile, key, text);
}

int profile__settle_runs(struct profile *profile, __u64 wanted, __u64 warmup)
{
	int err = 0;

	for (size_t i = 0; i < profile->n_runs && !err; i++)
		err = settle_run(profile, &profile->runs[i]);
	for (__u32 run = 1; run <= profile->n_runs && !err; run++)
		err = profile__add_gaps_of(profile, profile, run, 0);
	if (!err)
		err = set_number(profile, "runs", profile->n_runs);
	if (!err)
		err = set_number(profile, "wanted_runs", wanted);
	return err ? err : set_number(profile, "warmup_runs", warmup);
}

static int add_meta(struct profile *profile, __u32 number, const struct profile *run)
{
	int err = 0;

	for (size_t i = 0; i < run->n_meta && !err; i++)
		err = profile__add_run_meta(profile, number, run->meta[i].key, run->meta[i].value);
	for (size_t i = 0; i < run->n_ledger && !err; i++)
		err = profile__add_run_ledger(profile, number, run->ledger[i].name,
					      run->ledger[i].value);
	return err;
}

int profile__add_run(struct profile *profile, const struct profile *run)
{
	struct profile_copy copy = {
		.from = run,
		.to = profile,
		.from_run = 1,
		.to_run = profile->n_runs + 1,
	};
	int err;

	if (run->n_runs)
		return -EINVAL;
	err = profile_copy__run(&copy);
	profile_copy__release(&copy);
	if (!err)
		err = profile__add_gaps_of(profile, run, 0, copy.to_run);
	return err ? err : add_meta(profile, copy.to_run, run);
}

static int take_meta(struct profile *to, const struct profile *from, __u32 number)
{
	const struct profile_run *run = &from->runs[number - 1];
	int err = 0;

	for (size_t i = 0; i < run->n_meta && !err; i++)
		err = profile__set_meta(to, run->meta[i].key, run->meta[i].value);
	for (size_t i = 0; i < run->n_ledger && !err; i++)
		err = profile__set_ledger(to, run->ledger[i].name, run->ledger[i].value);
	if (!err)
		err = profile__add_gaps_of(to, from, number, 0);
	if (!err && data_file__is_altered(from))
		err = profile__set_meta(to, DATA_DIGEST_KEY, DATA_DIGEST_WRONG);
	if (!err)
		err = set_number(to, "run", number);
	return err ? err : set_number(to, "runs", from->n_runs);
}

int profile__take_run(const struct profile *profile, __u32 run, struct profile **taken)
{
	struct profile_copy copy = {
		.from = profile,
		.from_run = run,
		.to_run = 1,
		.keeps_ids = true,
	};
	int err;

	if (!run || run > profile->n_runs)
		return -ENOENT;
	copy.to = profile__new();
	if (!copy.to)
		return -ENOMEM;
	err = profile_copy__run(&copy);
	profile_copy__release(&copy);
	if (!err)
		err = take_meta(copy.to, profile, run);
	if (err)
		profile__free(copy.to);
	else
		*taken = copy.to;
	return err;
}

int profile__borrow_names(struct profile *profile, const struct profile *named)
{
	_cleanup_(free_ptr) __u32 *modules = calloc(profile->n_modules + 1, sizeof(*modules));
	int err = 0;

	if (!modules)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_modules; i++)
		modules[i] = profile_copy__find_module(named, &profile->modules[i]);
	for (size_t i = 0; i < profile->n_frames && !err; i++) {
		const struct profile_frame *frame = &profile->frames[i], *found;

		if (!frame->module || !modules[frame->module - 1] || frame->n_lines)
			continue;
		found = profile__find_frame(named, modules[frame->module - 1], frame->offset,
					    frame->place);
		if (found && found->n_lines)
			err = profile_copy__lines(profile, frame->id, named, found);
	}
	return err;
}
