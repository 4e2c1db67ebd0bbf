// SPDX-License-Identifier: GPL-3.0-or-later
/* Turns the programs of a run into records of their begin and end. */
#include "preload_engine_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "collector.h"
#include "live_collector.h"
#include "proc.h"
#include "profile.h"
#include "target.h"

/* Returns a number of an address space for the program. Programs never share one. */
static __u32 space_of(size_t index)
{
	return index + 1;
}

static int handle(struct preload_engine *engine, const struct ap_process_record *record)
{
	int err = 0;

	/* A new program's begin is logged before anything else of it, and all events of the one
	 * before in front of that. */
	if (engine->events && record->event == AP_PROCESS_EXECED)
		err = preload_engine__finish_program(engine, record->ended_space - 1, false);
	if (!err && engine->collector)
		err = collector__handle_record(engine->collector, record, sizeof(*record));
	if (!err && engine->live)
		err = live_collector__handle_record(engine->live, record, sizeof(*record));
	if (!err && engine->events)
		err = preload_engine__log_process(engine, record);
	return err;
}

/* Returns the generation of the peak in which the program ended. A program that could not report
 * its end may have been live in the last one. */
static __u64 end_generation(const struct preload_program *program)
{
	return program->end == INSIDE_RUNS ? ~0ULL : program->end_generation;
}

/* A forked program that tells none has its parent's, and of one that ran before the collector has read them. */
static int keep_arguments(struct preload_engine *engine, const struct preload_program *program,
			  size_t index)
{
	_cleanup_(free_ptr) char *text = NULL;
	char words[sizeof(program->arguments)];

	if (!engine->collector || !program->argument_bytes)
		return 0;
	memcpy(words, program->arguments, sizeof(words));
	text = proc_command__text(words, program->argument_bytes, COLLECTOR_MOST_ARGUMENT_BYTES);
	return text ? profile__set_arguments(engine->profile,
					     collector__process_of(engine->collector, index + 1),
					     text)
		    : 0;
}

static int begin_program(struct preload_engine *engine, const struct preload_results *counted,
			 size_t index)
{
	const struct preload_program *program = &counted->programs[index];
	struct ap_process_record record = {
		.type = AP_RECORD_PROCESS,
		.event = AP_PROCESS_FORKED,
		.id = index + 1,
		.parent = program->before + 1,
		.pid = program->pid,
		.time_ns = program->begin_ns,
		.space = space_of(index),
	};
	struct followed_by_other other;

	/* The other engine records the begin and end of programs that it follows. */
	if (preload_engine__is_followed_by_other(engine, index, &other)) {
		engine->programs[index] = PROGRAM_FOLLOWED_BY_OTHER;
		engine->processes_of_other +=
			!other.is_known && (program->is_fork || program->before < 0);
		return other.process && engine->collector
			       ? collector__set_process(engine->collector, index + 1, program->pid,
							other.process)
			       : 0;
	}
	memcpy(record.comm, program->comm, sizeof(record.comm));
	if (!program->is_fork && program->before >= 0) {
		record.event = AP_PROCESS_EXECED;
		record.ended_space = space_of(program->before);
		record.generation = end_generation(&counted->programs[program->before]);
		engine->programs[program->before] = PROGRAM_ENDED;
	} else if (!program->is_fork) {
		/* The program was begun by vfork(2) and an exec, or is the command itself. */
		record.parent = program->parent_program + 1;
	}
	if (!record.parent)
		record.event = AP_PROCESS_SEEDED;
	engine->programs[index] = PROGRAM_RUNS;
	return handle(engine, &record) ?: keep_arguments(engine, program, index);
}

static int end_program(struct preload_engine *engine, const struct preload_results *counted,
		       size_t index)
{
	const struct preload_program *program = &counted->programs[index];
	struct ap_process_record record = {
		.type = AP_RECORD_PROCESS,
		.event = AP_PROCESS_EXITED,
		.id = index + 1,
		.pid = program->pid,
		/* The command's end is known without its report; other programs that have not
		 * reported theirs ended at an unknown time before now. */
		.time_ns = program->end == INSIDE_RUNS ? preload_engine__end_ns(engine)
						       : program->end_ns,
		.generation = end_generation(program),
		.space = space_of(index),
		.ended_space = space_of(index),
	};
	int err;

	engine->programs[index] = PROGRAM_ENDED;
	if (program->end != INSIDE_EXECED)
		return handle(engine, &record);
	/* The process executed a program that the library could not be preloaded into, and of
	 * which nothing is known. */
	if (engine->live) {
		struct ap_process_record executed = record;

		executed.event = AP_PROCESS_EXECED;
		executed.id = counted->n_programs + index + 1;
		executed.parent = index + 1;
		executed.space = 0;
		err = live_collector__handle_record(engine->live, &executed, sizeof(executed));
		record.id = executed.id;
		record.ended_space = 0;
		if (!err)
			err = live_collector__handle_record(engine->live, &record, sizeof(record));
		if (err)
			return err;
		record.id = index + 1;
	}
	return engine->collector
		       ? collector__handle_record(engine->collector, &record, sizeof(record))
		       : 0;
}

int preload_engine__take_programs(struct preload_engine *engine,
				  const struct preload_results *counted)
{
	size_t had = engine->n_programs;
	int err = 0;

	if (array__reserve_zeroed(&engine->programs, &engine->programs_room, counted->n_programs,
				  sizeof(*engine->programs)))
		return -ENOMEM;
	engine->n_programs = counted->n_programs > had ? counted->n_programs : had;
	for (size_t i = 0; i < counted->n_programs && !err; i++)
		/* A program whose process was killed early has no pid. */
		if (engine->programs[i] == PROGRAM_UNKNOWN && counted->programs[i].pid)
			err = begin_program(engine, counted, i);
	for (size_t i = 0; i < counted->n_programs && !err; i++)
		if (engine->programs[i] == PROGRAM_RUNS &&
		    counted->programs[i].end == INSIDE_EXITED)
			err = end_program(engine, counted, i);
	return err;
}

static int is_memory(void *context, const struct proc_mapping *mapping)
{
	return !strcmp(mapping->path, context);
}

bool preload_engine__runs(const struct preload_engine *engine, __u32 pid)
{
	char memory[INSIDE_PATH_BYTES + sizeof("/" INSIDE_MEMORY)];

	struct proc_stat stat;

	if (!pid || proc_stat__read(pid, &stat) || strchr("ZXx", stat.state))
		return false;
	/* The library has left the process, or its memory has no path. */
	if (!engine->target->launched)
		return true;
	preload__memory_path(engine->preload, memory, sizeof(memory));
	return proc_maps__each(pid, is_memory, memory) == 1;
}

__u64 preload_engine__count_processes(const struct preload_results *counted)
{
	__u64 n = 0;

	for (size_t i = 0; i < counted->n_programs; i++) {
		const struct preload_program *program = &counted->programs[i];

		if (program->pid && (program->is_fork || program->before < 0))
			n++;
	}
	return n;
}

__u64 preload_engine__end_ns(const struct preload_engine *engine)
{
	return engine->is_snapshot ? engine->cut_ns : engine->target->end_ns;
}

int preload_engine__end_programs(struct preload_engine *engine)
{
	const struct preload_results *counted = &engine->counted;
	int err = preload_engine__take_programs(engine, counted);

	for (size_t i = 0; i < counted->n_programs && !err; i++) {
		const struct preload_program *program = &counted->programs[i];
		bool is_target =
			!program->in_other_namespace && target__has(engine->target, program->pid);

		if (engine->programs[i] != PROGRAM_RUNS)
			continue;
		if ((is_target && engine->target->waited) || program->end == INSIDE_EXECED ||
		    program->in_other_namespace || !preload_engine__runs(engine, program->pid))
			err = end_program(engine, counted, i);
		else if (!is_target)
			engine->processes_left++;
	}
	return err;
}
