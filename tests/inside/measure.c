// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * measure MODE LIBRARY OUTPUT [NAME=VALUE...] COMMAND [ARGUMENT...]: runs the command with the library in its
 * processes, and with these variables in their environment, and writes what they counted as JSON. Exit status
 * is the command's. MODE is "count", "record" for stacks, or "live" for blocks, too.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "preload.h"
#include "preload_tables.h"

static const char *const names[AP_DEFINED] = {
	"malloc",	 "calloc",   "realloc",	   "reallocarray", "posix_memalign",
	"aligned_alloc", "memalign", "valloc",	   "pvalloc",	   "free",
	"new",		 "delete",   "free_sized",
};

static void add_number(struct json_object *to, const char *name, __u64 value)
{
	json_object_object_add(to, name, json_object_new_uint64(value));
}

static struct json_object *functions_json(const struct preload_results *results)
{
	struct json_object *all = json_object_new_object();

	for (int i = 0; i < AP_DEFINED; i++) {
		const struct ap_site_counts *counts = &results->functions[i];
		struct json_object *one;

		if (!names[i])
			continue;
		one = json_object_new_object();
		add_number(one, "calls", counts->calls);
		add_number(one, "bytes", counts->size_bytes);
		add_number(one, "fresh", counts->fresh);
		add_number(one, "fresh_bytes", counts->fresh_size_bytes);
		add_number(one, "released", counts->released);
		add_number(one, "null", counts->null);
		add_number(one, "internal", counts->internal);
		json_object_object_add(all, names[i], one);
	}
	return all;
}

static struct json_object *programs_json(const struct preload_results *results)
{
	struct json_object *all = json_object_new_array();

	for (size_t i = 0; i < results->n_programs; i++) {
		const struct preload_program *program = &results->programs[i];
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "comm", json_object_new_string(program->comm));
		add_number(one, "pid", program->pid);
		add_number(one, "parent", program->parent);
		json_object_object_add(one, "before", json_object_new_int(program->before));
		json_object_object_add(one, "is_fork", json_object_new_boolean(program->is_fork));
		json_object_array_add(all, one);
	}
	return all;
}

static struct json_object *refused_json(const struct preload_results *results)
{
	struct json_object *all = json_object_new_array();

	for (size_t i = 0; i < results->n_refused; i++) {
		const struct preload_refused *refused = &results->refused[i];
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "path", json_object_new_string(refused->path));
		json_object_object_add(
			one, "reason",
			json_object_new_string(preload__refusal_name(refused->reason)));
		json_object_array_add(all, one);
	}
	return all;
}

struct stacks {
	const struct preload_tables *tables;
	struct json_object *rows;
};

static int add_stack(void *context, const struct ap_stack_record *record)
{
	const struct ap_frame *frames = (const struct ap_frame *)(record + 1);
	struct stacks *stacks = context;
	struct json_object *one = json_object_new_object(), *list = json_object_new_array();

	add_number(one, "stack", record->stack);
	add_number(one, "end", record->end);
	for (__u32 i = 0; i < record->n_frames; i++) {
		const char *path = preload_tables__path(stacks->tables, frames[i].module);
		struct json_object *frame = json_object_new_array();

		json_object_array_add(frame, path ? json_object_new_string(path) : NULL);
		json_object_array_add(frame,
				      json_object_new_uint64(preload_tables__vaddr(
					      stacks->tables, frames[i].module, frames[i].offset)));
		json_object_array_add(list, frame);
	}
	json_object_object_add(one, "frames", list);
	json_object_array_add(stacks->rows, one);
	return 0;
}

static int add_count(void *context, __u32 thread, const struct ap_count_key *key,
		     const struct ap_count *count)
{
	struct json_object *one = json_object_new_object();

	add_number(one, "stack", key->stack);
	add_number(one, "process", key->process);
	json_object_object_add(one, "function", json_object_new_string(names[key->function]));
	json_object_object_add(one, "thread", json_object_new_string(key->thread));
	add_number(one, "calls", count->calls);
	add_number(one, "bytes", count->size_bytes);
	json_object_array_add(context, one);
	return 0;
}

static int sum_block(void *context, const struct ap_block_key *key, const struct ap_block *block)
{
	__u64 *sums = context;

	sums[0]++;
	sums[1] += block->size_bytes;
	return 0;
}

static int sum_lifetime(void *context, const struct ap_lifetime_key *key,
			const struct ap_lifetime *lifetime)
{
	__u64 *sums = context;

	sums[2] += lifetime->blocks;
	sums[3] += lifetime->size_bytes;
	return 0;
}

/* Blocks in the histogram whose first tag is @first. */
static __u64 sum_buckets(const struct preload_record *record, __u32 first)
{
	__u64 sum = 0;

	for (int i = 0; i < AP_SLOTS; i++)
		if ((record->blocks.tags >> 8 * i & 0xff) - first < AP_BUCKETS)
			sum += record->blocks.slots[i];
	for (int i = 0; i < AP_BUCKETS && record->more; i++)
		sum += record->more->buckets[first - 1 + i];
	return sum;
}

static int add_live(const struct preload *preload, struct json_object *all)
{
	struct json_object *rows = json_object_new_array();
	struct preload_live live;
	__u64 sums[4] = { 0 };

	json_object_object_add(all, "records", rows);
	if (preload__read_live(preload, &live) ||
	    preload__read_blocks(preload, sum_block, sums, NULL) ||
	    preload__read_lifetimes(preload, sum_lifetime, sums))
		return -EIO;
	add_number(all, "live", sums[0]);
	add_number(all, "live_bytes", sums[1]);
	add_number(all, "lifetimes", sums[2]);
	add_number(all, "lifetime_bytes", sums[3]);
	add_number(all, "max_bytes", live.max_bytes);
	for (size_t i = 0; i < live.n_records; i++) {
		const struct preload_record *record = &live.records[i];
		struct json_object *one = json_object_new_object();

		if (!record->key.stack)
			continue;
		add_number(one, "stack", record->key.stack);
		json_object_object_add(one, "function",
				       json_object_new_string(names[record->key.function]));
		json_object_object_add(one, "thread", json_object_new_string(record->key.thread));
		add_number(one, "calls", record->blocks.calls);
		add_number(one, "bytes", record->blocks.asked_bytes);
		add_number(one, "failed", record->blocks.failed);
		add_number(one, "allocations", record->blocks.allocations);
		add_number(one, "size_bytes", record->blocks.size_bytes);
		add_number(one, "frees", record->blocks.frees);
		add_number(one, "freed_bytes", record->blocks.freed_bytes);
		add_number(one, "temporary", record->blocks.temporary);
		add_number(one, "temporary_bytes", record->blocks.temporary_bytes);
		add_number(one, "peak", record->blocks.peak);
		add_number(one, "peak_bytes", record->blocks.peak_bytes);
		add_number(one, "in_sizes", sum_buckets(record, AP_SIZE_TAG));
		add_number(one, "in_lifetimes", sum_buckets(record, AP_LIFETIME_TAG));
		json_object_array_add(rows, one);
	}
	preload_live__free(&live);
	return 0;
}

static int add_stacks(const struct preload *preload, const struct preload_tables *tables,
		      struct json_object *all)
{
	struct stacks stacks = { tables, json_object_new_array() };
	struct json_object *counts = json_object_new_array();
	bool has_python;

	json_object_object_add(all, "stacks", stacks.rows);
	json_object_object_add(all, "counts", counts);
	return preload__read_stacks(preload, add_stack, &stacks, &has_python) ||
	       preload__read_counts(preload, add_count, counts);
}

static int write_results(const struct preload *preload, const struct preload_tables *tables,
			 __u64 elapsed_ns, const char *path)
{
	struct json_object *all, *gaps;
	struct preload_results results;
	int err = preload__read(preload, &results);

	if (err)
		return err;
	all = json_object_new_object();
	json_object_object_add(all, "functions", functions_json(&results));
	json_object_object_add(all, "programs", programs_json(&results));
	json_object_object_add(all, "refused", refused_json(&results));
	gaps = json_object_new_array();
	for (int i = 0; i < INSIDE_GAPS; i++)
		json_object_array_add(gaps, json_object_new_uint64(results.gaps[i]));
	json_object_object_add(all, "gaps", gaps);
	add_number(all, "elapsed_ns", elapsed_ns);
	add_number(all, "threads", results.n_threads);
	add_number(all, "unfinished", results.n_unfinished);
	add_number(all, "damaged", results.n_damaged);
	if (tables && (add_stacks(preload, tables, all) || add_live(preload, all)))
		err = -EIO;
	gaps = json_object_new_array();
	for (int i = 0; i < AP_STATS; i++)
		json_object_array_add(gaps, json_object_new_uint64(results.stats[i]));
	json_object_object_add(all, "stats", gaps);
	if (json_object_to_file_ext(path, all, JSON_C_TO_STRING_PRETTY))
		err = -EIO;
	json_object_put(all);
	preload_results__free(&results);
	return err;
}

int main(int argc, char **argv)
{
	struct preload_options options = {
		.settings = { .mode = INSIDE_COUNT,
			      .max_depth = 127,
			      .follow = 1,
			      .wait_ms = 10000,
			      .max_live_shift = 26,
			      .stacks = 1,
			      .recorded = AP_ALL_FUNCTIONS & ~AP_FREEING },
	};
	struct preload_tables *tables = NULL;
	struct error error = { "" };
	struct preload *preload;
	char **environment, **command = argv + 4;
	__u64 begin_ns, elapsed_ns;
	int status;
	pid_t pid;

	if (argc < 5) {
		fprintf(stderr,
			"usage: measure MODE LIBRARY OUTPUT [NAME=VALUE...] COMMAND [ARGUMENT...]\n");
		return 2;
	}
	options.library = argv[2];
	if (!strcmp(argv[1], "record"))
		options.settings.mode = INSIDE_RECORD;
	if (!strcmp(argv[1], "live"))
		options.settings.mode = INSIDE_LIVE;
	for (; *command && strchr(*command, '='); command++)
		putenv(*command);
	if (preload__new(&options, &preload, &error)) {
		fprintf(stderr, "measure: %s\n", error.text);
		return 126;
	}
	if (options.settings.mode != INSIDE_COUNT && !preload_tables__new(preload, &tables))
		preload_tables__announce_command(tables, command, argv[2]);
	preload__set_gate(preload, INSIDE_OPEN);
	environment = preload__environment(preload, environ, false);
	begin_ns = clock__now_ns();
	pid = environment ? fork() : -1;
	if (!pid) {
		execvpe(command[0], command, environment);
		_exit(127);
	}
	if (tables)
		preload_tables__start(tables);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		status = 126 << 8;
	elapsed_ns = clock__now_ns() - begin_ns;
	if (tables)
		preload_tables__stop(tables);
	if (write_results(preload, tables, elapsed_ns, argv[3])) {
		fprintf(stderr, "measure: failed\n");
		status = 126 << 8;
	}
	free(environment);
	preload_tables__free(tables);
	preload__free(preload);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
