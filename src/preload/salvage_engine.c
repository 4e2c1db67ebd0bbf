// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes a profile of files in which processes with ALLOCPROF_OUTPUT have counted. */
#include "salvage_engine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "elf_headers.h"
#include "error.h"
#include "file.h"
#include "live_collector.h"
#include "own_file.h"
#include "preload_engine_internal.h"
#include "preload_internal.h"
#include "profile.h"
#include "runtimes.h"
#include "target.h"

struct salvage_engine {
	struct preload_engine base; /* must be the first member */
	const struct own_files *files;
	struct target target; /* stands for the processes, none of which is allocprof's child */
	__u32 n_modules;      /* numbers of modules that the collector has */
};

/* The file that is read. It has its own numbers of modules, and hashes of stacks, which depend on
 * them; the collector has those of all files. */
struct reading {
	struct salvage_engine *engine;
	const struct own_file *file;
	__u32 program;	   /* number of its program in the recording, from 1 */
	__u32 module_base; /* what is added to its numbers of modules */
	__u32 n_modules;   /* how many modules it has */
};

/* Frames without a module are of code that the process has made. Their names would be looked for by
 * the process's number, which may be another process's by now. */
#define NO_MODULE UINT32_MAX

static __u64 stack_of(const struct reading *reading, __u64 stack)
{
	/* The records of --live, of which there is one file only, refer to the file's own hashes. */
	return reading->program == 1 ? stack : hash_mix(reading->program, stack) | 1;
}

static bool has_build_id(int fd, const struct inside_module *module)
{
	char text[2 * INSIDE_BUILD_ID_BYTES + 1] = "";
	struct elf_headers *elf;
	bool has;

	for (__u32 i = 0; i < module->build_id_bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", module->build_id[i]);
	if (elf_headers__read(fd, &elf))
		return false;
	has = !strcmp(elf_headers__build_id(elf), text);
	elf_headers__free(elf);
	return has;
}

/* Returns whether the file has not been changed since the process met it. */
static bool is_unchanged(int fd, const struct inside_module *module,
			 const struct inside_origin *origin)
{
	__u64 met_ns = module->time_ns - origin->monotonic_ns + origin->realtime_ns;
	struct stat status;

	return !fstat(fd, &status) && (__u64)status.st_ctim.tv_sec <= met_ns / NS_PER_S;
}

/* Finds the file that the process has mapped: one of the same path with its build id, or else the
 * same file, unchanged. If it is gone, no other one that has got its inode may be taken for it. */
static void identify(const struct reading *reading, const struct inside_module *module,
		     const char *path, struct ap_module_record *record)
{
	_cleanup_(close_fd) int fd = *path == '/' ? regular_file__open(path) : -1;
	struct file_identity identity;
	bool is_it;

	if (fd < 0 || file_identity__of(fd, &identity))
		return;
	if (module->build_id_bytes && module->build_id_bytes <= INSIDE_BUILD_ID_BYTES)
		is_it = has_build_id(fd, module);
	else
		is_it = is_unchanged(fd, module, &reading->file->origin);
	record->device = is_it ? identity.device : ~module->device;
	if (is_it)
		record->inode = identity.inode;
}

static int take_module(struct reader *reader, __u32 index, const void *element)
{
	const struct inside_module *module = element;
	const struct reading *reading = reader->context;
	struct ap_module_record record = {
		.type = AP_RECORD_MODULE,
		.id = reading->module_base + INSIDE_FIRST_MODULE + index,
		/* No stack will be unwound, so no table is needed. */
		.pid = getpid(),
		.device = module->device,
		.inode = module->inode,
		.time_ns = module->time_ns,
	};
	char path[sizeof(module->path) + 1];

	if (module->state != INSIDE_READY)
		return 0;
	memcpy(path, module->path, sizeof(module->path));
	path[sizeof(module->path)] = 0;
	identify(reading, module, path, &record);
	return collector__handle_module_at(reading->engine->base.collector, &record, path);
}

static int read_modules(struct reading *reading)
{
	struct reader reader = { .context = reading };
	int err = reader__begin(&reader, reading->file->preload);

	if (err)
		return err;
	if (reader.header.modules.n > UNWIND_MAX_MODULES - INSIDE_FIRST_MODULE)
		reader.header.modules.n = UNWIND_MAX_MODULES - INSIDE_FIRST_MODULE;
	reading->module_base = reading->engine->n_modules;
	reading->n_modules = reader.header.modules.n;
	reading->engine->n_modules += reading->n_modules;
	return reader__each(&reader, &reader.header.modules, 0, sizeof(struct inside_module),
			    take_module);
}

struct stack_copy {
	struct ap_stack_record record;
	struct ap_frame frames[AP_MAX_DEPTH];
};

static int take_stack(void *context, const struct ap_stack_record *record)
{
	size_t size = sizeof(*record) + record->n_frames * sizeof(struct ap_frame);
	struct reading *reading = context;
	struct stack_copy copy;

	memcpy(&copy, record, size);
	copy.record.stack = stack_of(reading, record->stack);
	copy.record.process = reading->program;
	for (__u32 i = 0; i < record->n_frames; i++) {
		struct ap_frame *frame = &copy.frames[i];

		if (frame->flags & AP_FRAME_PYTHON)
			continue;
		if (!frame->module)
			frame->module = NO_MODULE;
		else if (frame->module < INSIDE_FIRST_MODULE)
			continue;
		else if (frame->module - INSIDE_FIRST_MODULE < reading->n_modules)
			frame->module += reading->module_base;
		else
			frame->module = NO_MODULE;
	}
	return collector__handle_record(reading->engine->base.collector, &copy, size);
}

static int take_python(void *context, const struct ap_python_record *record)
{
	const struct reading *reading = context;

	return collector__handle_record(reading->engine->base.collector, record,
					sizeof(*record) + record->n_name + record->n_file);
}

static int take_count(void *context, __u32 thread, const struct ap_count_key *key,
		      const struct ap_count *count)
{
	const struct reading *reading = context;
	struct ap_count_key own = *key;
	__u32 id;

	own.stack = stack_of(reading, key->stack);
	own.process = reading->program;
	return collector__add_count(reading->engine->base.collector, &own, count, &id);
}

/* Reads what the process has counted by stack. While it runs, it may count under a stack that it has
 * stored after the stacks were read: then the call is not attributed, and the report says so. */
static int read_counts(struct salvage_engine *engine, size_t index)
{
	struct reading reading = {
		.engine = engine,
		.file = own_files__get(engine->files, index),
		.program = index + 1,
	};
	bool has_python;
	int err = read_modules(&reading);

	if (!err)
		err = preload__read_stacks(reading.file->preload, take_stack, &reading,
					   &has_python);
	if (!err && has_python)
		err = preload__read_python(reading.file->preload, take_python, &reading);
	if (!err && !engine->base.live)
		err = preload__read_counts(reading.file->preload, take_count, &reading);
	return err;
}

static void add_words(__u64 *sum, const __u64 *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum[i] = reader__add(sum[i], words[i]);
}

/* Returns the last program before @index that was in the process with this number; -1: none. */
static int find_program(const struct salvage_engine *engine, size_t index, __u32 pid)
{
	const struct own_file *file = own_files__get(engine->files, index);

	while (index-- > 0) {
		const struct inside_program *other = &own_files__get(engine->files, index)->program;

		if (other->pid == pid && other->pid_namespace == file->program.pid_namespace)
			return index;
	}
	return -1;
}

static void relate(const struct salvage_engine *engine, size_t index,
		   struct preload_program *program)
{
	const struct preload_program *before;

	program->parent_program = find_program(engine, index, program->parent);
	if (program->is_fork) {
		program->before = program->parent_program;
		return;
	}
	program->before = find_program(engine, index, program->pid);
	before = program->before < 0 ? NULL : &engine->base.counted.programs[program->before];
	/* After an exit the number was another process's. */
	if (before && before->end == INSIDE_EXITED)
		program->before = -1;
}

/* Adds what was read of a file to the sums. */
static int add_results(struct salvage_engine *engine, size_t index,
		       const struct preload_results *read)
{
	struct preload_results *sums = &engine->base.counted;
	struct preload_program *program = &sums->programs[index];
	struct preload_refused *refused;

	*program = (struct preload_program){ .before = -1, .parent_program = -1 };
	if (read->n_programs && read->programs[0].pid) {
		*program = read->programs[0];
		/* Only of processes of this PID namespace is it asked whether they run. */
		program->in_other_namespace = !own_files__get(engine->files, index)->runs;
		relate(engine, index, program);
	}
	sums->n_programs = index + 1;
	refused =
		realloc(sums->refused, (sums->n_refused + read->n_refused + 1) * sizeof(*refused));
	if (!refused)
		return -ENOMEM;
	sums->refused = refused;
	for (size_t i = 0; i < read->n_refused; i++)
		refused[sums->n_refused++] = read->refused[i];
	add_words((__u64 *)sums->functions, (const __u64 *)read->functions,
		  sizeof(sums->functions) / (sizeof(__u64)));
	add_words(sums->stats, read->stats, AP_STATS);
	add_words(sums->gaps, read->gaps, INSIDE_GAPS);
	sums->n_begun = reader__add(sums->n_begun, 1);
	sums->n_threads = reader__add(sums->n_threads, read->n_threads);
	sums->n_unfinished = reader__add(sums->n_unfinished, read->n_unfinished);
	sums->n_damaged = reader__add(sums->n_damaged, read->n_damaged);
	return 0;
}

static int read_all(struct salvage_engine *engine)
{
	size_t n = own_files__count(engine->files);
	struct preload_results read;
	int err = 0;

	engine->base.counted.programs = calloc(n, sizeof(*engine->base.counted.programs));
	if (!engine->base.counted.programs)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++) {
		err = preload__read(own_files__get(engine->files, i)->preload, &read);
		if (err)
			break;
		err = add_results(engine, i, &read);
		preload_results__free(&read);
	}
	return err;
}

/* Fails with -EAGAIN if the process has counted something since its counters were read. */
static int check_unchanged(const struct salvage_engine *engine)
{
	const struct preload_results *counted = &engine->base.counted;
	struct preload_results now;
	int err = preload__read(own_files__get(engine->files, 0)->preload, &now);

	if (err)
		return err;
	err = preload_engine__sum_stats(&now) == preload_engine__sum_stats(counted) ? 0 : -EAGAIN;
	preload_results__free(&now);
	return err;
}

static int finish(struct engine *base)
{
	struct salvage_engine *engine = (struct salvage_engine *)base;
	struct preload_engine *preload = &engine->base;
	int err = read_all(engine);

	if (!err)
		err = preload_engine__end_programs(preload);
	if (!err && preload->live)
		err = preload_engine__stop_live(preload);
	for (size_t i = 0; i < own_files__count(engine->files) && !err; i++)
		err = read_counts(engine, i);
	if (!err && preload->live)
		err = preload_engine__collect_live(preload);
	preload->processes = preload_engine__count_processes(&preload->counted);
	if (!err)
		err = preload_engine__collect_refused(preload);
	return !err && preload->live ? check_unchanged(engine) : err;
}

static void close_engine(struct engine *base)
{
	struct salvage_engine *engine = (struct salvage_engine *)base;
	struct preload_engine *preload = &engine->base;

	collector__free(preload->collector);
	live_collector__free(preload->live);
	runtimes__free(preload->runtimes);
	preload_results__free(&preload->counted);
	free(preload->programs);
	free(engine);
}

/* No name of code that a process has made can be had any more. */
static int name_frames(struct engine *base)
{
	return 0;
}

/* Only the processes knew which files have no call frame information. */
static void list_without_table(const struct engine *base, FILE *to)
{
}

static bool file(const struct engine *base, size_t index, struct probed_file *out)
{
	return false;
}

static const struct engine_operations operations = {
	.name = "preload",
	.close = close_engine,
	.finish = finish,
	.results = preload_engine__results,
	.add_modules = preload_engine__add_modules,
	.name_frames = name_frames,
	.list_without_table = list_without_table,
	.file = file,
};

static int ignore_table(void *context, enum unwind_map map, __u32 index, const void *value)
{
	return 0;
}

static int open_collector(struct preload_engine *engine)
{
	const struct unwind_writer writer = { .write = ignore_table };
	const struct collector_options options = {
		.profile = engine->profile,
		.tables.tables = unwind_tables__new(&writer),
		.max_depth = engine->options.max_depth,
		.sample = engine->options.sample_bytes,
		.sample_unit_shift = engine->sample_unit_shift,
	};

	engine->collector = collector__new(&options);
	if (!engine->collector)
		return -ENOMEM;
	/* No stack is unwound any more, so no table need be compiled, and no worker runs that could. */
	collector__finish_tables(engine->collector);
	return collector__add_vdso(engine->collector);
}

int salvage_engine__open(const struct own_files *files, const struct engine_options *options,
			 struct engine **out, struct error *error)
{
	struct salvage_engine *engine = calloc(1, sizeof(*engine));
	const struct own_file *first = own_files__get(files, 0);
	struct preload_engine *preload;
	int err = -ENOMEM;

	if (!engine)
		return error__set(error, -ENOMEM, "no memory");
	preload = &engine->base;
	engine->files = files;
	engine->target.end_ns = options->target->end_ns;
	preload->engine.operations = &operations;
	preload->options = *options->session;
	preload->target = &engine->target;
	preload->profile = options->profile;
	preload->preload = first->preload;
	preload->sample_unit_shift = first->preload->sampling.sample_unit_shift;
	preload->was_open = true;
	/* There is no command whose absence could be reported. */
	preload->is_command_by_other = true;
	/* It is asked what it has found, which is nothing: no process can be looked at. */
	preload->runtimes = runtimes__new(&(struct file_identifier){ 0 }, NULL);
	if (preload->runtimes)
		err = open_collector(preload);
	if (!err && preload->options.live)
		err = preload_engine__open_live(preload);
	if (err) {
		close_engine(&preload->engine);
		return error__set(error, err, "no memory");
	}
	if (preload->live)
		live_collector__start(preload->live, first->settings.epoch_ns, true);
	*out = &preload->engine;
	return 0;
}
