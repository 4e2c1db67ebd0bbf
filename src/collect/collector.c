// SPDX-License-Identifier: GPL-3.0-or-later
#include "collector_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "control_group.h"
#include "dump_unwind.h"
#include "elf_headers.h"
#include "hash_table.h"
#include "jit_names.h"
#include "mapping_events.h"
#include "parser.h"
#include "proc.h"
#include "process_maps.h"
#include "profile.h"
#include "record_abi.h"
#include "sampling.h"
#include "table_cache.h"

struct collector *collector__new(const struct collector_options *options)
{
	struct collector *collector = calloc(1, sizeof(*collector));

	if (!collector) {
		unwind_tables__free(options->tables.tables);
		table_cache__close(options->tables.cache);
		parser__free(options->tables.parser);
		return NULL;
	}
	collector->options = *options;
	collector->profile = options->profile;
	collector->maps = process_maps__new();
	collector->tables = table_loader__new(&options->tables);
	collector->dumps_end = &collector->dumps;
	collector->jit_names = jit_names__new(&(struct jit_names_options){
		.each_mapped = collector__each_mapped,
		.context = collector,
	});
	if (collector->maps)
		collector->unwinder =
			dump_unwinder__new(collector->maps, collector__find_file, collector);
	if (!collector->maps || !collector->tables || !collector->jit_names ||
	    !collector->unwinder) {
		collector__free(collector);
		return NULL;
	}
	return collector;
}

static void drop_dumps(struct collector *collector)
{
	struct pending_dump *dump;

	while ((dump = collector->dumps)) {
		collector->dumps = dump->next;
		free(dump);
	}
	collector->dumps_end = &collector->dumps;
}

void collector__free(struct collector *collector)
{
	if (!collector)
		return;
	/* The table loader uses the modules' files. */
	table_loader__free(collector->tables);
	for (size_t i = 0; i < collector->n_modules; i++) {
		close_fd(&collector->modules[i].fd);
		free(collector->modules[i].path);
		elf_headers__free(collector->modules[i].elf);
	}
	free(collector->modules);
	free(collector->module_by_kernel_id);
	free(collector->programs);
	free(collector->stacks);
	free(collector->dumped);
	free(collector->followers);
	hash_table__release(&collector->follower_index);
	hash_table__release(&collector->stack_index);
	drop_dumps(collector);
	free(collector->ended);
	dump_unwinder__free(collector->unwinder);
	jit_names__free(collector->jit_names);
	process_maps__free(collector->maps);
	free(collector);
}

void collector__list_without_table(const struct collector *collector, FILE *to)
{
	for (size_t i = 0; i < collector->n_modules; i++) {
		const struct module *module = &collector->modules[i];
		struct loaded_table loaded;

		if (module->id && module->path &&
		    !table_loader__find(collector->tables, module->table, &loaded) &&
		    !loaded.n_slices)
			fprintf(to, "%s\n", module->path);
	}
}

void collector__await_tables(struct collector *collector)
{
	table_loader__wait(collector->tables);
}

bool collector__brings_tables(struct collector *collector)
{
	return table_loader__progresses(collector->tables);
}

void collector__finish_tables(struct collector *collector)
{
	table_loader__finish(collector->tables);
}

struct profile *collector__profile(struct collector *collector)
{
	return collector->profile;
}

__u64 collector__attributed(const struct collector *collector)
{
	return collector->attributed;
}

__u64 collector__accounted(const struct collector *collector)
{
	__u64 calls = collector->attributed;

	for (const struct pending_dump *dump = collector->dumps; dump; dump = dump->next) {
		const struct ap_dump_record *record = (const void *)dump->record;

		calls += !(record->key.function & (AP_FUNCTION_UNDECIDED | AP_FUNCTION_DUMPED));
	}
	return calls;
}

void collector__forget(struct collector *collector)
{
	drop_dumps(collector);
	profile__forget_counts(collector->profile);
	collector->attributed = 0;
	collector->undecided = 0;
}

__u64 collector__found_within(const struct collector *collector)
{
	return collector->found_within;
}

__u64 collector__undecided(const struct collector *collector)
{
	return collector->undecided;
}

int collector__handle_mapping(struct collector *collector, const struct mapping_event *event)
{
	struct code_mapping mapping = {
		.start = event->start,
		.end = event->end,
		.offset = event->offset,
		.identity = {
			.inode = event->inode,
			.device = file_identity__device(event->major, event->minor),
			.generation = event->generation,
		},
		.time_ns = event->time_ns,
		.path = event->path,
	};

	if (event->kind == MAPPING_EXEC)
		return process_maps__exec(collector->maps, event->pid, event->time_ns);
	return process_maps__add(collector->maps, event->pid, &mapping);
}

void collector__know_mappings(struct collector *collector, __u64 time_ns)
{
	if (time_ns < collector->mappings_known_ns)
		return;
	collector->mappings_known_ns = clock__now_ns();
	if (!collector->options.refresh_mappings)
		return;
	collector->options.refresh_mappings(collector->options.context);
}

struct ap_count collector__count_one(const struct collector *collector, __u32 weight,
				     __u64 size_bytes)
{
	return sampling__count_one(weight, size_bytes, collector->options.sample_unit_shift);
}

int collector__add_count(struct collector *collector, const struct ap_count_key *key,
			 const struct ap_count *sum, __u32 *count)
{
	__u32 stack = collector__key_stack(collector, key), thread;
	int err;

	/* Programs send a stack before its counter exists, and it is read before the counter. If a
	 * stack is unknown nevertheless, its calls are not attributed, and the ledger reports them
	 * as lost. */
	*count = 0;
	if (!stack)
		return 0;
	err = collector__key_thread(collector, key, &thread);
	if (err)
		return err;
	return collector__add_calls(collector, thread, stack, key->function & ~AP_FUNCTION_DUMPED,
				    sum, count);
}

int collector__name_jit_frames(struct collector *collector)
{
	return jit_names__apply(collector->jit_names, collector->profile);
}

static bool follower_has_pid(const void *owner, __u32 id, const void *key)
{
	const struct collector *collector = owner;

	return collector->followers[id - 1].pid == *(const __u32 *)key;
}

/* Returns the last follower with this pid; NULL if there is none. */
static struct follower *find_follower(const struct collector *collector, __u32 pid)
{
	__u32 id = hash_table__find(&collector->follower_index, hash_mix(0, pid), follower_has_pid,
				    collector, &pid);

	return id ? &collector->followers[id - 1] : NULL;
}

bool collector__is_followed(const struct collector *collector, pid_t pid, __u64 time_ns)
{
	const struct follower *follower = find_follower(collector, pid);

	while (follower && time_ns < follower->begin_ns)
		follower = follower->earlier ? &collector->followers[follower->earlier - 1] : NULL;
	return follower && (!follower->end_ns || time_ns <= follower->end_ns);
}

static int follow(struct collector *collector, const struct ap_process_record *record)
{
	struct follower *follower;
	struct follower next = { .pid = record->pid };

	if (record->event == AP_PROCESS_FORKED)
		next.begin_ns = record->time_ns;
	if (array__reserve(&collector->followers, &collector->followers_capacity,
			   collector->n_followers + 1, sizeof(*collector->followers)))
		return -ENOMEM;
	follower = find_follower(collector, record->pid);
	if (follower && !follower->end_ns && record->event != AP_PROCESS_FORKED)
		return 0;
	/* The new follower takes the slot in the index, and the earlier one of the same pid moves
	 * to the end of the list. */
	if (follower) {
		if (!follower->end_ns)
			follower->end_ns = next.begin_ns;
		collector->followers[collector->n_followers++] = *follower;
		next.earlier = collector->n_followers;
		*follower = next;
		return 0;
	}
	collector->followers[collector->n_followers++] = next;
	return hash_table__insert(&collector->follower_index, hash_mix(0, record->pid),
				  collector->n_followers);
}

static void unfollow(struct collector *collector, __u32 pid, __u64 time_ns)
{
	struct follower *follower = find_follower(collector, pid);

	if (follower)
		follower->end_ns = time_ns;
}

void collector__forget_process(struct collector *collector, pid_t pid)
{
	process_maps__forget(collector->maps, pid, UINT64_MAX);
}

int collector__scan_process(struct collector *collector, pid_t pid)
{
	return process_maps__scan(collector->maps, pid);
}

struct program *collector__get_program(struct collector *collector, __u32 id)
{
	if (!id || array__reserve_zeroed(&collector->programs, &collector->programs_capacity, id,
					 sizeof(*collector->programs)))
		return NULL;
	if (id > collector->n_programs)
		collector->n_programs = id;
	return &collector->programs[id - 1];
}

__u32 collector__process_of(const struct collector *collector, __u32 id)
{
	return id && id <= collector->n_programs ? collector->programs[id - 1].process : 0;
}

int collector__set_process(struct collector *collector, __u32 id, __u32 pid, __u32 process)
{
	struct program *program = collector__get_program(collector, id);

	if (!program)
		return -ENOMEM;
	program->pid = pid;
	program->process = process;
	return 0;
}

/* Ends a program: an exit ends the record's program, an exec the parent program. */
static void end_program(struct collector *collector, const struct ap_process_record *record)
{
	bool execed = record->event == AP_PROCESS_EXECED;
	__u32 id = execed ? record->parent : record->id;

	if (id && id <= collector->n_programs && collector->programs[id - 1].process)
		profile__end_process(collector->profile, collector->programs[id - 1].process,
				     record->time_ns, execed);
}

/* Returns whether the process that has the number now is the one that began a program at @time_ns, and does not exit: then
 * what was just read of it is the program's. The kernel says of a process that exits that it is in no group and has no arguments. */
static bool still_runs(pid_t pid, __u64 time_ns)
{
	__u64 tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
	__u64 asleep_ns = clock__ns(CLOCK_BOOTTIME) - clock__now_ns();
	struct proc_stat stat;

	return !proc_stat__read(pid, &stat) && !(stat.flags & PROC_IS_EXITING) &&
	       stat.start_ticks * tick_ns <= time_ns + asleep_ns + tick_ns;
}

static bool is_same_group(const char *group, const char *other)
{
	const char *container = control_group__container(group);
	const char *of_other = control_group__container(other);

	/* A container may have groups below its own. */
	if (container && of_other)
		return !strncmp(container, of_other, CONTAINER_ID_DIGITS);
	return !strcmp(group, other);
}

/* Returns what the group is called, which the caller frees: as for other processes that are in it, so that
 * files of containers are read once. */
static char *name_group(const struct profile *profile, const char *group, pid_t pid)
{
	for (size_t i = profile->n_processes; i-- > 0;) {
		const struct profile_process *process = &profile->processes[i];

		if (process->group && is_same_group(process->group, group))
			return strdup(process->group_name);
	}
	return control_group__name(group, pid);
}

/* Returns the control group that the program began in, which the caller frees, or NULL if it is not known.
 * One that has ended was in that of its parent, or came into the container that is followed. */
static char *find_group(const struct collector *collector, const struct ap_process_record *record,
			const struct program *parent)
{
	const char *joined = collector->options.joined_group, *group = NULL;
	char *path = control_group__read(record->pid);

	if (path && still_runs(record->pid, record->time_ns))
		return path;
	free(path);
	if (parent && parent->process)
		group = collector->profile->processes[parent->process - 1].group;
	else if (joined && control_group__container(joined))
		group = joined;
	return group ? strdup(group) : NULL;
}

static int place_program(struct collector *collector, const struct ap_process_record *record,
			 const struct program *parent, __u32 process)
{
	_cleanup_(free_ptr) char *group = find_group(collector, record, parent);
	_cleanup_(free_ptr) char *name =
		group ? name_group(collector->profile, group, record->pid) : NULL;

	if (!group)
		return 0;
	return name ? profile__set_group(collector->profile, process, group, name) : -ENOMEM;
}

/* Keeps the command line of a program that has just begun: its parent's, from which it was forked, or as it is read. It may
 * have executed another program since, which mostly has another name: then nothing is kept. */
static int keep_arguments(struct collector *collector, const struct ap_process_record *record,
			  const struct program *parent, __u32 process)
{
	struct profile *profile = collector->profile;
	_cleanup_(free_ptr) char *text = NULL, *comm = NULL;

	if (record->event == AP_PROCESS_FORKED && parent && parent->process) {
		const char *arguments = profile->processes[parent->process - 1].arguments;

		return arguments ? profile__set_arguments(profile, process, arguments) : 0;
	}
	if (!collector->options.reads_arguments)
		return 0;
	text = proc_command__read(record->pid, COLLECTOR_MOST_ARGUMENT_BYTES);
	comm = proc_comm__read(record->pid);
	if (!text || !comm || strcmp(comm, profile->processes[process - 1].comm) != 0 ||
	    !still_runs(record->pid, record->time_ns))
		return 0;
	return profile__set_arguments(profile, process, text);
}

static int handle_process(struct collector *collector, const struct ap_process_record *record)
{
	struct program *program, *parent;
	char comm[AP_COMM_LEN + 1];
	int err;

	if (record->event == AP_PROCESS_EXITED || record->event == AP_PROCESS_EXECED)
		end_program(collector, record);
	if (record->event == AP_PROCESS_EXITED) {
		if (array__reserve_zeroed(&collector->ended, &collector->ended_capacity,
					  collector->n_ended + 1, sizeof(*collector->ended)))
			return -ENOMEM;
		collector->ended[collector->n_ended++] =
			(struct ended_process){ record->pid, record->time_ns };
		unfollow(collector, record->pid, record->time_ns);
		return 0;
	}
	program = collector__get_program(collector, record->id);
	if (!program)
		return -ENOMEM;
	parent = record->parent && record->parent <= collector->n_programs
			 ? &collector->programs[record->parent - 1]
			 : NULL;
	program->pid = record->pid;
	if (record->event == AP_PROCESS_FORKED && parent) {
		collector__know_mappings(collector, record->time_ns);
		err = process_maps__fork(collector->maps, parent->pid, record->pid,
					 record->time_ns);
		if (err)
			return err;
	}
	err = follow(collector, record);
	if (err)
		return err;
	memcpy(comm, record->comm, AP_COMM_LEN);
	comm[AP_COMM_LEN] = '\0';
	err = profile__add_process(collector->profile, parent ? parent->process : 0, record->pid,
				   record->time_ns, comm, &program->process);
	if (!err && collector->options.reads_groups)
		err = place_program(collector, record, parent, program->process);
	return err ?: keep_arguments(collector, record, parent, program->process);
}

int collector__handle_record(struct collector *collector, const void *record, size_t size)
{
	const struct ap_stack_record *stack = record;
	const struct ap_count_record *count = record;
	const struct ap_dump_record *dump = record;
	struct ap_count one;
	__u32 id;

	if (size < sizeof(__u32))
		return 0;
	switch (*(const __u32 *)record) {
	case AP_RECORD_PROCESS:
		return size < sizeof(struct ap_process_record) ? 0
							       : handle_process(collector, record);
	case AP_RECORD_MODULE:
		return size < sizeof(struct ap_module_record)
			       ? 0
			       : collector__handle_module(collector, record);
	case AP_RECORD_STACK:
		if (size < sizeof(*stack) || stack->n_frames > AP_MAX_DEPTH ||
		    stack->end >= AP_STACK_ENDS ||
		    size < sizeof(*stack) + stack->n_frames * sizeof(struct ap_frame))
			return 0;
		return collector__handle_stack(collector, stack);
	case AP_RECORD_PYTHON:
		return collector__handle_python(collector, record, size);
	case AP_RECORD_COUNT:
		if (size < sizeof(*count))
			return 0;
		one = collector__count_one(collector, count->weight, count->size_bytes);
		return collector__add_count(collector, &count->key, &one, &id);
	case AP_RECORD_DUMP:
		if (size < sizeof(*dump) || dump->n_bytes > AP_MAX_STACK_DUMP + 4096 ||
		    dump->end >= AP_STACK_ENDS || size < sizeof(*dump) + dump->n_bytes)
			return 0;
		return collector__queue_dump(collector, dump, sizeof(*dump) + dump->n_bytes);
	}
	return 0;
}

/* Stores the profile's process of the kernel side's program @id in *@process, even if the
 * program's record was lost. */
static int program_process(struct collector *collector, __u32 id, __u32 *process)
{
	struct program *program = collector__get_program(collector, id);
	int err = 0;

	if (!program)
		return -ENOMEM;
	if (!program->process)
		err = profile__add_process(collector->profile, 0, program->pid, 0, "[unknown]",
					   &program->process);
	if (!err)
		*process = program->process;
	return err;
}

int collector__key_thread(struct collector *collector, const struct ap_count_key *key,
			  __u32 *thread)
{
	char name[AP_COMM_LEN + 1];
	__u32 process;
	int err = program_process(collector, key->process, &process);

	if (err)
		return err;
	memcpy(name, key->thread, AP_COMM_LEN);
	name[AP_COMM_LEN] = '\0';
	return profile__add_thread(collector->profile, process, name, thread);
}
