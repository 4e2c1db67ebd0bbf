// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the tables of a data file into a profile, and checks each row. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "data_file_reader.h"
#include "data_rows.h"
#include "gaps.h"
#include "profile.h"
#include "profile_runs.h"
#include "text.h"

/* Rows of the table @name. next_row() sets the other fields, and the caller releases them. */
struct table_rows {
	struct data_reader *reader;
	const char *name;
	const struct data_table *table;
	sqlite3_stmt *statement;
};

static void release_rows(struct table_rows *rows)
{
	sqlite3_finalize(rows->statement);
}

/* Stores the next row in the struct @row. Returns 1, 0 at the end, or a negative errno. */
static int next_row(struct table_rows *rows, void *row)
{
	struct data_reader *reader = rows->reader;
	int err = 0;

	if (!rows->statement) {
		rows->table = data_table__find(rows->name);
		err = data_table__select(rows->table, reader->db, &rows->statement);
	}
	if (!err)
		err = data_reader__step(reader, rows->statement);
	if (err <= 0)
		return err;
	reader->digest += data_digest__row(rows->name, rows->statement);
	err = data_table__get_row(rows->table, rows->statement, row, &reader->text_left);
	return err ? err : 1;
}

/* A row of any table, for the add_*() below. */
union table_row {
	struct data_meta_row meta;
	struct data_ledger_row ledger;
	struct data_gap_row gap;
	struct profile_module module;
	struct profile_process process;
	struct profile_thread thread;
	struct profile_function function;
	struct profile_file file;
	struct profile_frame frame;
	struct data_stack_row stack;
	struct data_count_row count;
	struct data_sample_row sample;
	struct profile_lifetime lifetime;
	struct timeline_sample timeline_sample;
	struct profile_blocks ends, resident, rounding, reach;
	struct data_rss_row rss;
	struct profile_rss_sample rss_sample;
	struct data_heap_row heap;
	struct data_group_row group;
	struct data_arguments_row arguments;
	struct data_mark_row mark;
	struct data_size_class_row size_class;
	struct data_mapping_row mapping;
};

/* Checks that ids count from 1 without gaps, and that rows are unique: then the adder has made a
 * new element and returned its id. */
static int expect_new(__u64 id, size_t n_before, __u32 added)
{
	return id == n_before + 1 && added == id ? 0 : -EINVAL;
}

/* Returns whether the value of this key of meta must be a whole number. Other values are text, of
 * which only what prints it knows the form. */
static bool is_number(const char *key)
{
	/* clang-format off */
	static const char *const keys[] = {
		"attached_pid", "attached_rss_bytes", "checked_calls", "exit_status", "exit_signal",
		"impossible_calls", "oom_kills", "group_limit_bytes", "own_in_group", "own_bytes",
		"kernel_bytes", "max_live", "max_records", "events_stacks", "events_start_ns", "peak_bytes",
		"reach_bytes", "reach_stop_ns", "resident_stop_ns", "runs", "sample_bytes", "stopped_ns",
		"stopped_threads", "waits", "waits_ns", "wanted_runs", "warmup_runs", "window_delay_ns",
	};
	/* clang-format on */
	int kind;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(key, keys[i]))
			return true;
	kind = gap__by_key(key);
	return kind >= 0 && kind < GAP_NUMBERS;
}

/* Checks a value of meta. Numbers are read by strtoull(3), which returns 0 for what is no number:
 * -EINVAL for such a value. */
static int check_figure(const char *key, const char *value)
{
	static const char digits[] = "0123456789";
	size_t len = strlen(value);

	/* All times depend on this value, so it must be a positive number. */
	if (!strcmp(key, "epoch_ns"))
		return *value < '1' || *value > '9' || strspn(value, digits) != len || len > 18
			       ? -EINVAL
			       : 0;
	if (!strcmp(key, "elapsed_seconds"))
		return !strspn(value, digits) || strspn(value, "0123456789.") != len ? -EINVAL : 0;
	if (!is_number(key))
		return 0;
	if (*value == '-') {
		value++;
		len--;
	}
	return !len || strspn(value, digits) != len || len > 20 ? -EINVAL : 0;
}

/* Adds an entry of meta (@run is 0) or of run_meta. */
static int add_entry(struct data_reader *reader, __u32 run, const char *key, const char *value)
{
	int err = check_figure(key, value);

	if (!err)
		err = profile__add_old_gap(reader->profile, run, key, value);
	if (err)
		return err < 0 ? err : 0;
	return run ? profile__add_run_meta(reader->profile, run, key, value)
		   : profile__set_meta(reader->profile, key, value);
}

static int add_meta(struct data_reader *reader, const union table_row *row)
{
	const struct profile_meta *meta = &row->meta.meta;

	if (!strcmp(meta->key, DATA_DIGEST_KEY)) {
		snprintf(reader->written_digest, sizeof(reader->written_digest), "%s", meta->value);
		return 0;
	}
	return profile__meta(reader->profile, meta->key)
		       ? -EINVAL
		       : add_entry(reader, 0, meta->key, meta->value);
}

static int add_ledger(struct data_reader *reader, const union table_row *row)
{
	const struct profile_ledger_entry *entry = &row->ledger.entry;
	size_t n_before = reader->profile->n_ledger;
	int err;

	/* The name becomes a key in JSON, so it must be UTF-8. */
	if (!utf8__is_valid(entry->name))
		return -EINVAL;
	err = profile__set_ledger(reader->profile, entry->name, entry->value);
	return !err && reader->profile->n_ledger == n_before ? -EINVAL : err;
}

static int add_run_meta(struct data_reader *reader, const union table_row *row)
{
	__u32 run = row->meta.run;

	return run && run <= PROFILE_MAX_RUNS
		       ? add_entry(reader, run, row->meta.meta.key, row->meta.meta.value)
		       : -EINVAL;
}

/* Adds an entry of a run's ledger; only runs with meta may have one. */
static int add_run_ledger(struct data_reader *reader, const union table_row *row)
{
	const struct profile_ledger_entry *entry = &row->ledger.entry;

	return row->ledger.run <= reader->profile->n_runs
		       ? profile__add_run_ledger(reader->profile, row->ledger.run, entry->name,
						 entry->value)
		       : -EINVAL;
}

static int add_gap(struct data_reader *reader, const union table_row *row)
{
	struct profile_gap gap = row->gap.gap;
	int kind = gap__by_key(row->gap.kind);

	if (kind < 0 || gap.run > reader->profile->n_runs || gap.pid > INT32_MAX)
		return -EINVAL;
	gap.kind = kind;
	return profile__add_gap(reader->profile, &gap);
}

static int add_module(struct data_reader *reader, const union table_row *row)
{
	const struct profile_module *module = &row->module;
	size_t n_before = reader->profile->n_modules;
	__u32 added = 0;
	int err;

	if (module->build_id[strspn(module->build_id, "0123456789abcdef")])
		return -EINVAL;
	err = profile__add_module_file(reader->profile, module->path, module->build_id, module->id,
				       &added);
	if (!err)
		err = profile__set_module_symbols(reader->profile, added, module->symbols);
	return err ?: expect_new(module->id, n_before, added);
}

/* Returns whether the number is that of a run. Files made by hand need not list their runs. */
static bool is_run(const struct profile *profile, __u32 run)
{
	return run && run <= (profile->n_runs ? profile->n_runs : PROFILE_MAX_RUNS);
}

static int add_process(struct data_reader *reader, const union table_row *row)
{
	const struct profile_process *process = &row->process;
	size_t n_before = reader->profile->n_processes;
	struct profile_process *made;
	__u32 added = 0;
	int err;

	if (process->parent > n_before || process->pid > INT32_MAX ||
	    !is_run(reader->profile, process->run))
		return -EINVAL;
	err = profile__add_process(reader->profile, process->parent, process->pid,
				   process->start_ns, process->comm, &added);
	if (!err)
		err = expect_new(process->id, n_before, added);
	if (err)
		return err;
	made = &reader->profile->processes[n_before];
	made->end_ns = process->end_ns;
	made->execed = process->execed;
	made->run = process->run;
	return 0;
}

static int add_thread(struct data_reader *reader, const union table_row *row)
{
	const struct profile_thread *thread = &row->thread;
	size_t n_before = reader->profile->n_threads;
	__u32 added = 0;
	int err;

	if (thread->process > reader->profile->n_processes)
		return -EINVAL;
	err = profile__add_thread(reader->profile, thread->process, thread->name, &added);
	return err ?: expect_new(thread->id, n_before, added);
}

static int add_function(struct data_reader *reader, const union table_row *row)
{
	const struct profile_function *function = &row->function;
	__u32 added;
	int err;

	if (function->id != reader->n_functions + 1)
		return -EINVAL;
	err = profile__add_function(reader->profile, function->symbol, function->name,
				    function->full_name, &added);
	if (!err)
		err = array__reserve(&reader->functions, &reader->functions_room,
				     reader->n_functions + 1, sizeof(added));
	if (!err)
		reader->functions[reader->n_functions++] = added;
	return err;
}

static int add_file(struct data_reader *reader, const union table_row *row)
{
	size_t n_before = reader->profile->n_files;
	__u32 added = 0;
	int err = profile__add_file(reader->profile, row->file.path, &added);

	return err ?: expect_new(row->file.id, n_before, added);
}

static int add_frame(struct data_reader *reader, const union table_row *row)
{
	const struct profile_frame *frame = &row->frame;
	struct profile *profile = reader->profile;
	size_t n_before = profile->n_frames;
	__u32 added = 0;
	int err;

	if (frame->module > profile->n_modules || frame->place >= PROFILE_PLACES ||
	    (frame->tail_call && (frame->place || !frame->module)))
		return -EINVAL;
	if (frame->tail_call)
		err = profile__add_tail_call(profile, frame->module, frame->offset, &added);
	else if (frame->module)
		err = profile__add_frame(profile, frame->module, frame->offset, frame->place,
					 &added);
	else
		err = profile__add_other_frame(profile, frame->offset, frame->place, &added);
	return err ?: expect_new(frame->id, n_before, added);
}

/* How many lines a frame may have, more than compilers inline. */
#define MAX_LINES 1024

struct frame_lines {
	__u32 frame;
	__u32 n;
	struct profile_line lines[MAX_LINES];
};

static int set_lines(struct data_reader *reader, struct frame_lines *lines)
{
	int err = lines->n ? profile__set_frame_lines(reader->profile, lines->frame, lines->lines,
						      lines->n)
			   : 0;

	lines->n = 0;
	return err;
}

static int read_lines(struct data_reader *reader)
{
	_cleanup_(release_rows) struct table_rows rows = { reader, "lines" };
	_cleanup_(free_ptr) struct frame_lines *lines = calloc(1, sizeof(*lines));
	struct data_line_row row = { 0 };
	int err;

	if (!lines)
		return -ENOMEM;
	while ((err = next_row(&rows, &row)) > 0) {
		if (!row.line.function || row.line.function > reader->n_functions)
			return -EINVAL;
		if (row.frame != lines->frame) {
			err = set_lines(reader, lines);
			if (err)
				return err;
			lines->frame = row.frame;
		}
		if (row.depth != lines->n || lines->n == MAX_LINES)
			return -EINVAL;
		row.line.function = reader->functions[row.line.function - 1];
		lines->lines[lines->n++] = row.line;
	}
	return err ? err : set_lines(reader, lines);
}

/*
 * Reads the frames of a stack, a JSON array as the writer prints it: "[3,14]", without spaces or
 * leading zeros. Returns how many there are, or -EINVAL.
 */
static int parse_frames(const char *text, size_t n_known, __u32 frames[AP_MAX_DEPTH])
{
	int n = 0;

	if (*text++ != '[')
		return -EINVAL;
	if (text[0] == ']' && !text[1])
		return 0;
	while (n < AP_MAX_DEPTH && *text >= '1' && *text <= '9') {
		__u64 frame = 0;

		for (; *text >= '0' && *text <= '9' && frame <= n_known; text++)
			frame = 10 * frame + (*text - '0');
		if (frame > n_known)
			return -EINVAL;
		frames[n++] = frame;
		if (*text == ']' && !text[1])
			return n;
		if (*text++ != ',')
			return -EINVAL;
	}
	return -EINVAL;
}

static int add_stack(struct data_reader *reader, const union table_row *row)
{
	size_t n_before = reader->profile->n_stacks;
	int end = profile__stack_end_by_name(row->stack.end);
	__u32 frames[AP_MAX_DEPTH];
	int n_frames = parse_frames(row->stack.frames, reader->profile->n_frames, frames);
	__u32 id;
	int err;

	if (end < 0 || n_frames < 0)
		return -EINVAL;
	err = profile__add_stack(reader->profile, frames, n_frames, end, &id);
	return err ?: expect_new(row->stack.id, n_before, id);
}

static int add_count(struct data_reader *reader, const union table_row *row)
{
	const struct profile_count *count = &row->count.count;
	struct profile *profile = reader->profile;
	int function = definition_names__take(&profile->definitions, row->count.function);
	__u32 added = ++reader->n_counts;
	int err = 0;

	if (function < 0 || !count->thread || count->thread > profile->n_threads || !count->stack ||
	    count->stack > profile->n_stacks ||
	    profile->threads[count->thread - 1].process != count->process)
		return -EINVAL;
	if (!reader->only_checks)
		err = profile__add_count(profile, count->thread, count->stack, function,
					 count->calls, count->size_bytes, &added);
	return err ?: expect_new(count->id, reader->n_counts - 1, added);
}

/* Returns whether no number of blocks, such as that of frees, exceeds the allocations. */
static bool is_plausible(const struct profile_blocks *blocks)
{
	return profile__add_up(blocks->frees, blocks->discarded) <= blocks->allocations &&
	       profile__add_up(blocks->freed_bytes, blocks->discarded_bytes) <=
		       blocks->size_bytes &&
	       blocks->temporary <= blocks->frees && blocks->temporary_bytes <= blocks->freed_bytes;
}

/* Reads a histogram's table, one row ahead. */
struct histogram_rows {
	struct table_rows rows;
	struct data_histogram_row next; /* count 0: no rows left */
};

static void release_histogram(struct histogram_rows *histogram)
{
	release_rows(&histogram->rows);
}

static int next_histogram_row(struct histogram_rows *histogram)
{
	struct data_histogram_row *next = &histogram->next;
	__u32 last = next->count;
	int err;

	next->count = 0;
	err = next_row(&histogram->rows, next);
	if (err <= 0)
		return err;
	return next->count && next->count >= last && next->bucket < PROFILE_BUCKETS ? 0 : -EINVAL;
}

/* Reads the rows of @count, which must come next. */
static int read_histogram(struct histogram_rows *histogram, __u32 count,
			  __u64 buckets[PROFILE_BUCKETS])
{
	int err = 0;

	while (!err && histogram->next.count == count) {
		buckets[histogram->next.bucket] = histogram->next.blocks;
		err = next_histogram_row(histogram);
	}
	return err;
}

static int read_blocks(struct data_reader *reader)
{
	_cleanup_(release_rows) struct table_rows rows = { reader, "blocks" };
	_cleanup_(release_histogram) struct histogram_rows sizes = { { reader, "size_histogram" } };
	_cleanup_(release_histogram) struct histogram_rows lifetimes = { { reader,
									   "lifetime_histogram" } };
	struct profile_blocks row = { 0 };
	int err = next_histogram_row(&sizes);
	__u32 last = 0;

	if (!err)
		err = next_histogram_row(&lifetimes);
	while (!err && (err = next_row(&rows, &row)) > 0) {
		if (row.count <= last || row.count > reader->n_counts || !is_plausible(&row))
			return -EINVAL;
		last = row.count;
		err = read_histogram(&sizes, row.count, row.sizes);
		if (!err)
			err = read_histogram(&lifetimes, row.count, row.lifetimes);
		if (!err && !reader->only_checks)
			err = profile__add_blocks(reader->profile, &row);
		row = (struct profile_blocks){ 0 };
	}
	/* A row that is left is a histogram of a count without blocks. */
	return !err && (sizes.next.count || lifetimes.next.count) ? -EINVAL : err;
}

static int add_sample(struct data_reader *reader, const union table_row *row)
{
	const struct data_sample_row *sample = &row->sample;
	int err, what = profile__sampled_by_name(sample->what);
	struct profile_samples *samples;

	if (what < 0 || !sample->estimate.samples || !sample->count ||
	    sample->count > reader->n_counts)
		return -EINVAL;
	if (reader->only_checks)
		return 0;
	err = profile__get_samples(reader->profile, sample->count, &samples);
	if (err || samples->of[what].samples)
		return err ?: -EINVAL;
	samples->of[what] = sample->estimate;
	return 0;
}

static int add_lifetime(struct data_reader *reader, const union table_row *row)
{
	const struct profile_lifetime *lifetime = &row->lifetime;

	if (!lifetime->count || lifetime->count > reader->n_counts ||
	    lifetime->born > lifetime->died || lifetime->born > lifetime->exited ||
	    (lifetime->died != PROFILE_LIVE && lifetime->exited != PROFILE_LIVE))
		return -EINVAL;
	return reader->only_checks ? 0 : profile__add_lifetime(reader->profile, lifetime);
}

static int add_timeline_sample(struct data_reader *reader, const union table_row *row)
{
	return is_run(reader->profile, row->timeline_sample.run)
		       ? profile__add_timeline_sample(reader->profile, &row->timeline_sample)
		       : -EINVAL;
}

static int add_ends(struct data_reader *reader, const union table_row *row)
{
	const struct profile_blocks *ends = &row->ends;
	struct profile_blocks blocks;

	if (!ends->count || ends->count > reader->n_counts)
		return -EINVAL;
	if (reader->only_checks)
		return 0;
	(void)profile__count_blocks(reader->profile, &reader->profile->counts[ends->count - 1],
				    &blocks);
	if (profile__add_up(ends->grown, ends->freed_by_others) > blocks.frees ||
	    ends->grown_bytes > blocks.freed_bytes)
		return -EINVAL;
	return profile__add_blocks(reader->profile, ends);
}

static int add_resident(struct data_reader *reader, const union table_row *row)
{
	const struct profile_blocks *resident = &row->resident;

	if (!resident->count || resident->count > reader->n_counts ||
	    resident->pages > PROFILE_MAX / PROFILE_PAGE_BYTES ||
	    resident->unique_pages > resident->pages ||
	    resident->unique_slack_bytes > resident->unique_pages * PROFILE_PAGE_BYTES)
		return -EINVAL;
	return reader->only_checks ? 0 : profile__add_blocks(reader->profile, resident);
}

static int add_rounding(struct data_reader *reader, const union table_row *row)
{
	const struct profile_blocks *rounding = &row->rounding;

	if (!rounding->count || rounding->count > reader->n_counts)
		return -EINVAL;
	return reader->only_checks ? 0 : profile__add_blocks(reader->profile, rounding);
}

static int add_reach(struct data_reader *reader, const union table_row *row)
{
	const struct profile_blocks *reach = &row->reach;
	struct profile_blocks blocks;
	__u64 live, size_bytes;

	if (!reach->count || reach->count > reader->n_counts)
		return -EINVAL;
	if (reader->only_checks)
		return 0;
	(void)profile__count_blocks(reader->profile, &reader->profile->counts[reach->count - 1],
				    &blocks);
	live = profile_blocks__live(&blocks);
	size_bytes = profile_blocks__live_bytes(&blocks);
	for (int i = 0; i < PROFILE_REACHES; i++) {
		if (reach->reached[i].blocks > live || reach->reached[i].size_bytes > size_bytes)
			return -EINVAL;
		live -= reach->reached[i].blocks;
		size_bytes -= reach->reached[i].size_bytes;
	}
	return profile__add_blocks(reader->profile, reach);
}

static int add_rss(struct data_reader *reader, const union table_row *row)
{
	struct profile_rss rss = row->rss.rss;
	int kind = rss_kind__by_name(row->rss.kind);

	if (kind < 0)
		return -EINVAL;
	rss.kind = kind;
	return profile__add_rss(reader->profile, &rss);
}

static int add_rss_sample(struct data_reader *reader, const union table_row *row)
{
	return profile__add_rss_sample(reader->profile, &row->rss_sample);
}

static int add_group(struct data_reader *reader, const union table_row *row)
{
	if (!row->group.process || row->group.process > reader->profile->n_processes)
		return -EINVAL;
	return profile__set_group(reader->profile, row->group.process, row->group.path,
				  row->group.name);
}

static int add_arguments(struct data_reader *reader, const union table_row *row)
{
	if (!row->arguments.process || row->arguments.process > reader->profile->n_processes)
		return -EINVAL;
	return profile__set_arguments(reader->profile, row->arguments.process, row->arguments.text);
}

static int add_mark(struct data_reader *reader, const union table_row *row)
{
	int kind = mark_kind__by_name(row->mark.kind);

	return kind < 0 ? -EINVAL
			: profile__add_mark(reader->profile, row->mark.time_ns, kind,
					    row->mark.name);
}

static int add_heap(struct data_reader *reader, const union table_row *row)
{
	struct profile_heap heap = row->heap.heap;
	int kind = heap_kind__by_name(row->heap.kind);

	if (kind < 0)
		return -EINVAL;
	heap.kind = kind;
	return profile__add_heap(reader->profile, &heap);
}

static int add_size_class(struct data_reader *reader, const union table_row *row)
{
	struct profile_size_class sizes = row->size_class.sizes;
	int rule = size_rule__by_name(row->size_class.rule);

	if (rule < 0 || (rule == SIZE_RULE_UNKNOWN ? sizes.usable_bytes > 0
						   : sizes.usable_bytes < sizes.size_bytes))
		return -EINVAL;
	sizes.rule = rule;
	return profile__add_size_class(reader->profile, &sizes);
}

static int add_mapping(struct data_reader *reader, const union table_row *row)
{
	struct profile_mapping mapping = row->mapping.mapping;
	int kind = mapping_kind__by_name(row->mapping.kind);

	if (kind < 0 || !mapping.count || mapping.count > reader->n_counts || !mapping.size_bytes)
		return -EINVAL;
	mapping.kind = kind;
	return reader->only_checks ? 0 : profile__add_mapping(reader->profile, &mapping);
}

static int read_rows(struct data_reader *reader, const char *name,
		     int (*add)(struct data_reader *reader, const union table_row *row))
{
	_cleanup_(release_rows) struct table_rows rows = { reader, name };
	union table_row row;
	int err = 0;

	/* Elements of the profile are copied from rows, so their padding must be zero, too. */
	memset(&row, 0, sizeof(row));
	while (!err && (err = next_row(&rows, &row)) > 0)
		err = add(reader, &row);
	return err;
}

int data_reader__read_tables(struct data_reader *reader, const char **table)
{
	static const struct {
		const char *name;
		int (*add)(struct data_reader *reader, const union table_row *row);
		/* Reads the table if its rows depend on each other. */
		int (*read)(struct data_reader *reader);
	} tables[] = {
		{ "definitions", .read = data_reader__read_definitions },
		{ "meta", add_meta },
		{ "ledger", add_ledger },
		{ "run_meta", add_run_meta },
		{ "run_ledger", add_run_ledger },
		{ "gaps", add_gap },
		{ "modules", add_module },
		{ "processes", add_process },
		{ "control_groups", add_group },
		{ "arguments", add_arguments },
		{ "threads", add_thread },
		{ "functions", add_function },
		{ "files", add_file },
		{ "frames", add_frame },
		{ "lines", .read = read_lines },
		{ "stacks", add_stack },
		{ "counts", add_count },
		{ "blocks", .read = read_blocks },
		{ "samples", add_sample },
		{ "lifetimes", add_lifetime },
		{ "timeline", add_timeline_sample },
		{ "ends", add_ends },
		{ "resident", add_resident },
		{ "rss", add_rss },
		{ "rss_samples", add_rss_sample },
		{ "marks", add_mark },
		{ "heaps", add_heap },
		{ "size_classes", add_size_class },
		{ "rounding", add_rounding },
		{ "reach", add_reach },
		{ "mappings", add_mapping },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const char *name = tables[i].name;
		const struct data_table *known = data_table__find(name);
		int err = 0;

		if (tables[i].read)
			err = tables[i].read(reader);
		else if (!(reader->lacking >> (known - data_tables) & 1))
			err = read_rows(reader, name, tables[i].add);
		if (err) {
			*table = name;
			return err;
		}
	}
	if (strcmp(reader->written_digest, data_digest__text(reader->digest).text) != 0)
		return profile__set_meta(reader->profile, DATA_DIGEST_KEY, DATA_DIGEST_WRONG);
	return 0;
}
