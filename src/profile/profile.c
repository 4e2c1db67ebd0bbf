// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "hash_table.h"
#include "profile_internal.h"

struct profile *profile__new(void)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->index = calloc(1, sizeof(*profile->index));
	if (!profile->index) {
		free(profile);
		return NULL;
	}
	profile->index->seed = hash_seed();
	return profile;
}

static void release_module(struct profile_module *module)
{
	free(module->path);
	free(module->build_id);
	free(module->symbols);
}

static void release_function(struct profile_function *function)
{
	free(function->symbol);
	free(function->name);
	free(function->full_name);
}

static void free_meta(struct profile_meta *meta, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(meta[i].key);
		free(meta[i].value);
	}
	free(meta);
}

static void free_ledger(struct profile_ledger_entry *ledger, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(ledger[i].name);
	free(ledger);
}

static void free_stacks(struct profile *profile)
{
	struct profile_index *index = profile->index;

	profile__forget_counts(profile);
	free(profile->stacks);
	free(profile->counts);
	free(profile->samples);
	profile->stacks = NULL;
	profile->counts = NULL;
	profile->samples = NULL;
	profile->n_stacks = 0;
	arena__release(&index->stack_frames);
	hash_table__release(&index->stacks);
	free(index->blocks);
	free(index->samples_of);
	free(index->lifetimes);
	index->blocks = NULL;
	index->samples_of = NULL;
	index->lifetimes = NULL;
	index->stacks_room = index->counts_room = index->samples_room = index->samples_of_room =
		index->blocks_room = index->lifetimes_room = 0;
}

void profile__free_stacks(struct profile *profile)
{
	profile->index->ledger_adds_up = profile__ledger_adds_up(profile);
	profile->index->blocks_add_up = profile__blocks_add_up(profile);
	profile->index->is_without_stacks = true;
	free_stacks(profile);
}

void profile__free(struct profile *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < profile->n_modules; i++)
		release_module(&profile->modules[i]);
	for (size_t i = 0; i < profile->n_processes; i++) {
		free(profile->processes[i].comm);
		free(profile->processes[i].group);
		free(profile->processes[i].group_name);
		free(profile->processes[i].arguments);
		free(profile->processes[i].label);
	}
	for (size_t i = 0; i < profile->n_threads; i++)
		free(profile->threads[i].name);
	for (size_t i = 0; i < profile->n_functions; i++)
		release_function(&profile->functions[i]);
	for (size_t i = 0; i < profile->n_files; i++)
		free(profile->files[i].path);
	for (size_t i = 0; i < profile->n_frames; i++)
		free(profile->frames[i].lines);
	free_meta(profile->meta, profile->n_meta);
	free_ledger(profile->ledger, profile->n_ledger);
	for (size_t i = 0; i < profile->n_runs; i++) {
		free_meta(profile->runs[i].meta, profile->runs[i].n_meta);
		free_ledger(profile->runs[i].ledger, profile->runs[i].n_ledger);
		hash_table__release(&profile->runs[i].meta_index);
		hash_table__release(&profile->runs[i].ledger_index);
	}
	free(profile->runs);
	free(profile->modules);
	free(profile->processes);
	free(profile->threads);
	free(profile->functions);
	free(profile->files);
	free(profile->frames);
	free_stacks(profile);
	free(profile->timeline);
	free(profile->rss);
	free(profile->rss_samples);
	for (size_t i = 0; i < profile->n_marks; i++)
		free(profile->marks[i].name);
	free(profile->marks);
	free(profile->heaps);
	free(profile->size_classes);
	free(profile->mappings);
	profile__free_gaps(profile);
	profile__free_totals(profile);
	hash_table__release(&profile->index->modules);
	hash_table__release(&profile->index->threads);
	hash_table__release(&profile->index->functions);
	hash_table__release(&profile->index->files);
	hash_table__release(&profile->index->frames);
	hash_table__release(&profile->index->meta);
	hash_table__release(&profile->index->ledger);
	free(profile->index);
	free(profile);
}

int profile__set_group(struct profile *profile, __u32 process, const char *group, const char *name)
{
	struct profile_process *to = &profile->processes[process - 1];
	char *group_copy = strdup(group), *name_copy = strdup(name);

	if (!group_copy || !name_copy) {
		free(group_copy);
		free(name_copy);
		return -ENOMEM;
	}
	free(to->group);
	free(to->group_name);
	to->group = group_copy;
	to->group_name = name_copy;
	return 0;
}

int profile__set_arguments(struct profile *profile, __u32 process, const char *arguments)
{
	struct profile_process *to = &profile->processes[process - 1];
	char *copy = strdup(arguments);

	if (!copy)
		return -ENOMEM;
	free(to->arguments);
	to->arguments = copy;
	return 0;
}

static int set_label(struct profile_process *process, const char *text)
{
	char *label = strdup(text);

	if (!label)
		return -ENOMEM;
	free(process->label);
	process->label = label;
	return 0;
}

int profile__label_by_group(struct profile *profile)
{
	int err = 0;

	for (size_t i = 0; i < profile->n_processes && !err; i++)
		err = set_label(&profile->processes[i],
				profile->processes[i].group_name ?: "[unknown group]");
	profile->is_labelled_by_group = !err;
	return err;
}

int profile__label_by_arguments(struct profile *profile)
{
	int err = 0;

	for (size_t i = 0; i < profile->n_processes && !err; i++)
		err = set_label(&profile->processes[i],
				profile->processes[i].arguments ?: profile->processes[i].comm);
	return err;
}

int profile__label_by_pid(struct profile *profile)
{
	for (size_t i = 0; i < profile->n_processes; i++) {
		struct profile_process *process = &profile->processes[i];

		free(process->label);
		if (asprintf(&process->label, "%s %u", process->comm, process->pid) < 0) {
			process->label = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

const char *profile_process__label(const struct profile_process *process)
{
	return process->label ?: process->comm;
}

/* Ids are 32 bits wide. */
int profile_index__reserve(void *array, size_t *room, size_t n, size_t size)
{
	if (n >= UINT32_MAX)
		return -ENOMEM;
	return array__reserve(array, room, n + 1, size);
}

int profile_index__append(struct hash_table *table, __u64 hash, void *array, size_t *room,
			  size_t *n, const void *entry, size_t size)
{
	char *elements;
	int err = profile_index__reserve(array, room, *n, size);

	if (!err)
		err = hash_table__insert(table, hash, *n + 1);
	if (err)
		return err;
	memcpy(&elements, array, sizeof(elements));
	memcpy(elements + *n * size, entry, size);
	++*n;
	return 0;
}

static bool match_module(const void *owner, __u32 id, const void *key)
{
	const struct profile_module *module = &((const struct profile *)owner)->modules[id - 1];
	const struct profile_module *wanted = key;

	return !strcmp(module->path, wanted->path) && !strcmp(module->build_id, wanted->build_id) &&
	       (*wanted->build_id || module->file == wanted->file);
}

int profile__add_module(struct profile *profile, const char *path, const char *build_id, __u32 *id)
{
	return profile__add_module_file(profile, path, build_id, 0, id);
}

int profile__add_module_file(struct profile *profile, const char *path, const char *build_id,
			     __u64 file, __u32 *id)
{
	struct profile_index *index = profile->index;
	__u64 hash = hash_string(hash_string(index->seed, path), build_id);
	struct profile_module wanted = {
		.path = (char *)path,
		.build_id = (char *)build_id,
		.file = file,
	};
	struct profile_module module;
	__u32 found;

	found = hash_table__find(&index->modules, hash, match_module, profile, &wanted);
	if (found) {
		*id = found;
		return 0;
	}
	module = (struct profile_module){
		.id = profile->n_modules + 1,
		.path = strdup(path),
		.build_id = strdup(build_id),
		.symbols = strdup(""),
		.file = file,
	};
	if (!module.path || !module.build_id || !module.symbols ||
	    profile_index__append(&index->modules, hash, &profile->modules, &index->modules_room,
				  &profile->n_modules, &module, sizeof(module))) {
		release_module(&module);
		return -ENOMEM;
	}
	*id = module.id;
	return 0;
}

int profile__set_module_symbols(struct profile *profile, __u32 module, const char *symbols)
{
	char *copy;

	if (!module || module > profile->n_modules)
		return -EINVAL;
	copy = strdup(symbols);
	if (!copy)
		return -ENOMEM;
	free(profile->modules[module - 1].symbols);
	profile->modules[module - 1].symbols = copy;
	return 0;
}

int profile__add_process(struct profile *profile, __u32 parent, __u32 pid, __u64 start_ns,
			 const char *comm, __u32 *id)
{
	struct profile_process process = {
		.parent = parent,
		.pid = pid,
		.start_ns = start_ns,
		.run = 1,
	};
	int err;

	if (parent > profile->n_processes)
		return -EINVAL;
	err = profile_index__reserve(&profile->processes, &profile->index->processes_room,
				     profile->n_processes, sizeof(process));
	if (err)
		return err;
	process.id = profile->n_processes + 1;
	process.comm = strdup(comm);
	if (!process.comm)
		return -ENOMEM;
	profile->processes[profile->n_processes++] = process;
	*id = process.id;
	return 0;
}

static bool match_thread(const void *owner, __u32 id, const void *key)
{
	const struct profile_thread *thread = &((const struct profile *)owner)->threads[id - 1];
	const struct profile_thread *wanted = key;

	return thread->process == wanted->process && !strcmp(thread->name, wanted->name);
}

/* An exec makes another program of the same process. */
bool profile__is_forked(const struct profile *profile, __u32 process)
{
	__u32 parent = profile->processes[process - 1].parent;

	return parent && profile->processes[parent - 1].pid != profile->processes[process - 1].pid;
}

__u32 profile__find_process(const struct profile *profile, pid_t pid)
{
	for (size_t i = profile->n_processes; i-- > 0;)
		if (profile->processes[i].pid == (__u32)pid)
			return profile->processes[i].id;
	return 0;
}

int profile__end_process(struct profile *profile, __u32 id, __u64 end_ns, bool execed)
{
	struct profile_process *process;

	if (!id || id > profile->n_processes || profile->processes[id - 1].end_ns)
		return -EINVAL;
	process = &profile->processes[id - 1];
	process->end_ns = end_ns;
	process->execed = execed;
	return 0;
}

int profile__add_thread(struct profile *profile, __u32 process, const char *name, __u32 *id)
{
	struct profile_index *index = profile->index;
	__u64 hash = hash_string(hash_mix(index->seed, process), name);
	struct profile_thread thread = { .process = process, .name = (char *)name };
	__u32 found;

	if (!process || process > profile->n_processes)
		return -EINVAL;
	found = hash_table__find(&index->threads, hash, match_thread, profile, &thread);
	if (found) {
		*id = found;
		return 0;
	}
	thread.id = profile->n_threads + 1;
	thread.name = strdup(name);
	if (!thread.name ||
	    profile_index__append(&index->threads, hash, &profile->threads, &index->threads_room,
				  &profile->n_threads, &thread, sizeof(thread))) {
		free(thread.name);
		return -ENOMEM;
	}
	*id = thread.id;
	return 0;
}

static bool match_function(const void *owner, __u32 id, const void *key)
{
	return !strcmp(((const struct profile *)owner)->functions[id - 1].symbol, key);
}

static bool is_demangled(const char *symbol, const char *name, const char *full_name)
{
	return strcmp(name, symbol) || strcmp(full_name, symbol);
}

/* Adds names to a function that is known only by its symbol. */
static int complete_names(struct profile *profile, __u32 id, const char *name,
			  const char *full_name)
{
	const struct profile_function *function = &profile->functions[id - 1];

	if (is_demangled(function->symbol, function->name, function->full_name) ||
	    !is_demangled(function->symbol, name, full_name))
		return 0;
	return profile__set_function_names(profile, id, name, full_name);
}

int profile__add_function(struct profile *profile, const char *symbol, const char *name,
			  const char *full_name, __u32 *id)
{
	struct profile_index *index = profile->index;
	__u64 hash = hash_string(index->seed, symbol);
	struct profile_function function;
	__u32 found;
	int err;

	found = hash_table__find(&index->functions, hash, match_function, profile, symbol);
	if (found) {
		err = complete_names(profile, found, name, full_name);
		if (!err)
			*id = found;
		return err;
	}
	function = (struct profile_function){
		.id = profile->n_functions + 1,
		.symbol = strdup(symbol),
		.name = strdup(name),
		.full_name = strdup(full_name),
	};
	if (!function.symbol || !function.name || !function.full_name ||
	    profile_index__append(&index->functions, hash, &profile->functions,
				  &index->functions_room, &profile->n_functions, &function,
				  sizeof(function))) {
		release_function(&function);
		return -ENOMEM;
	}
	*id = function.id;
	return 0;
}

int profile__set_function_names(struct profile *profile, __u32 id, const char *name,
				const char *full_name)
{
	struct profile_function *function;
	char *name_copy, *full_copy;

	if (!id || id > profile->n_functions)
		return -EINVAL;
	function = &profile->functions[id - 1];
	name_copy = strdup(name);
	full_copy = strdup(full_name);
	if (!name_copy || !full_copy) {
		free(name_copy);
		free(full_copy);
		return -ENOMEM;
	}
	free(function->name);
	free(function->full_name);
	function->name = name_copy;
	function->full_name = full_copy;
	return 0;
}

static bool match_file(const void *owner, __u32 id, const void *key)
{
	return !strcmp(((const struct profile *)owner)->files[id - 1].path, key);
}

int profile__add_file(struct profile *profile, const char *path, __u32 *id)
{
	struct profile_index *index = profile->index;
	__u64 hash = hash_string(index->seed, path);
	struct profile_file file;
	__u32 found;

	found = hash_table__find(&index->files, hash, match_file, profile, path);
	if (found) {
		*id = found;
		return 0;
	}
	file = (struct profile_file){ .id = profile->n_files + 1, .path = strdup(path) };
	if (!file.path ||
	    profile_index__append(&index->files, hash, &profile->files, &index->files_room,
				  &profile->n_files, &file, sizeof(file))) {
		free(file.path);
		return -ENOMEM;
	}
	*id = file.id;
	return 0;
}

static bool match_meta(const void *owner, __u32 id, const void *key)
{
	return !strcmp(((const struct profile *)owner)->meta[id - 1].key, key);
}

static __u32 find_meta(const struct profile *profile, const char *key)
{
	return hash_table__find(&profile->index->meta, hash_string(profile->index->seed, key),
				match_meta, profile, key);
}

int profile__set_meta(struct profile *profile, const char *key, const char *value)
{
	struct profile_index *index = profile->index;
	__u32 found = find_meta(profile, key);
	struct profile_meta entry;

	entry.value = strdup(value);
	if (!entry.value)
		return -ENOMEM;
	if (found) {
		free(profile->meta[found - 1].value);
		profile->meta[found - 1].value = entry.value;
		return 0;
	}
	entry.key = strdup(key);
	if (!entry.key ||
	    profile_index__append(&index->meta, hash_string(index->seed, key), &profile->meta,
				  &index->meta_room, &profile->n_meta, &entry, sizeof(entry))) {
		free(entry.key);
		free(entry.value);
		return -ENOMEM;
	}
	return 0;
}

const char *profile__meta(const struct profile *profile, const char *key)
{
	__u32 found = find_meta(profile, key);

	return found ? profile->meta[found - 1].value : NULL;
}

__u64 profile__meta_number(const struct profile *profile, const char *key)
{
	const char *text = profile__meta(profile, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

int profile__add_meta_number(struct profile *profile, const char *key, __u64 number)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", profile__meta_number(profile, key) + number);
	return profile__set_meta(profile, key, text);
}

const char *profile__engine(const struct profile *profile)
{
	return profile__meta(profile, "engine") ?: "uprobe";
}

static bool match_ledger(const void *owner, __u32 id, const void *key)
{
	return !strcmp(((const struct profile *)owner)->ledger[id - 1].name, key);
}

static __u32 find_ledger(const struct profile *profile, const char *name)
{
	return hash_table__find(&profile->index->ledger, hash_string(profile->index->seed, name),
				match_ledger, profile, name);
}

int profile__set_ledger(struct profile *profile, const char *name, __u64 value)
{
	struct profile_index *index = profile->index;
	__u32 found = find_ledger(profile, name);
	struct profile_ledger_entry entry = { .value = profile__add_up(value, 0) };

	if (found) {
		profile->ledger[found - 1].value = entry.value;
		return 0;
	}
	entry.name = strdup(name);
	if (!entry.name ||
	    profile_index__append(&index->ledger, hash_string(index->seed, name), &profile->ledger,
				  &index->ledger_room, &profile->n_ledger, &entry, sizeof(entry))) {
		free(entry.name);
		return -ENOMEM;
	}
	return 0;
}

__u64 profile__ledger(const struct profile *profile, const char *name)
{
	__u32 found = find_ledger(profile, name);

	return found ? profile->ledger[found - 1].value : 0;
}

int profile__add_ledger(struct profile *profile, const char *name, __u64 number)
{
	return profile__set_ledger(profile, name, profile__ledger(profile, name) + number);
}

const char *profile_module__basename(const struct profile_module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash && slash[1] ? slash + 1 : module->path;
}
