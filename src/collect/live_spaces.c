// SPDX-License-Identifier: GPL-3.0-or-later
#include "live_spaces.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "array.h"
#include "proc.h"
#include "record_abi.h"

void live_spaces__release(struct live_spaces *spaces)
{
	free(spaces->spaces);
	free(spaces->programs);
	free(spaces->running);
}

static void stop_running(struct live_spaces *spaces, __u32 id)
{
	for (size_t i = 0; i < spaces->n_running; i++) {
		if (spaces->running[i] != id)
			continue;
		spaces->running[i] = spaces->running[--spaces->n_running];
		return;
	}
}

static int end_space(struct live_spaces *spaces, __u32 number, const struct live_space *space)
{
	if (array__reserve_zeroed(&spaces->spaces, &spaces->n_spaces, (size_t)number + 1,
				  sizeof(*spaces->spaces)))
		return -ENOMEM;
	spaces->spaces[number] = *space;
	return 0;
}

static int start_program(struct live_spaces *spaces, const struct ap_process_record *record)
{
	if (array__reserve_zeroed(&spaces->programs, &spaces->n_programs, (size_t)record->id + 1,
				  sizeof(*spaces->programs)) ||
	    array__reserve_zeroed(&spaces->running, &spaces->running_room, spaces->n_running + 1,
				  sizeof(*spaces->running)))
		return -ENOMEM;
	spaces->programs[record->id] = (struct live_program){
		.pid = record->pid,
		.space = record->space,
	};
	spaces->running[spaces->n_running++] = record->id;
	return 0;
}

int live_spaces__handle(struct live_spaces *spaces, const struct ap_process_record *record,
			bool *ended)
{
	const struct live_space space = {
		.state = record->event == AP_PROCESS_EXECED ? SPACE_DISCARDED : SPACE_LEFT,
		.end_ns = record->time_ns,
		.generation = record->generation,
	};
	int err = record->ended_space ? end_space(spaces, record->ended_space, &space) : 0;

	if (err)
		return err;
	if (record->ended_space)
		*ended = true;
	if (record->event == AP_PROCESS_EXITED) {
		if (record->id < spaces->n_programs)
			spaces->programs[record->id].end_ns = record->time_ns;
		stop_running(spaces, record->id);
		return 0;
	}
	if (record->event == AP_PROCESS_EXECED)
		stop_running(spaces, record->parent);
	return start_program(spaces, record);
}

int live_spaces__leave(struct live_spaces *spaces, const struct ap_space_record *record)
{
	const struct live_space space = { SPACE_LEFT, record->time_ns, record->generation };

	return end_space(spaces, record->space, &space);
}

const struct live_space *live_spaces__get(const struct live_spaces *spaces, __u32 number)
{
	static const struct live_space unknown = { .state = SPACE_USED };

	return number < spaces->n_spaces ? &spaces->spaces[number] : &unknown;
}

const struct live_space *live_spaces__of_program(const struct live_spaces *spaces, __u32 program)
{
	return live_spaces__get(spaces,
				program < spaces->n_programs ? spaces->programs[program].space : 0);
}

__u32 live_spaces__of_process(const struct live_spaces *spaces, pid_t pid)
{
	for (size_t i = spaces->n_programs; i-- > 0;)
		if (spaces->programs[i].pid == (__u32)pid)
			return spaces->programs[i].space;
	return 0;
}

__u64 live_spaces__end_ns(const struct live_spaces *spaces, __u32 pid)
{
	/* The search begins with the last program, since another process may have had the id
	 * before. */
	for (size_t i = spaces->n_programs; i-- > 0;)
		if (spaces->programs[i].pid == pid && spaces->programs[i].end_ns)
			return spaces->programs[i].end_ns;
	return UINT64_MAX;
}

__u64 live_spaces__rss_bytes(const struct live_spaces *spaces)
{
	__u64 sum = 0;

	for (size_t i = 0; i < spaces->n_running; i++) {
		struct proc_memory memory;

		/* RssAnon of proc_pid_status(5) */
		if (proc_memory__read(spaces->programs[spaces->running[i]].pid, &memory) &&
		    memory.shared_bytes < memory.rss_bytes)
			sum += memory.rss_bytes - memory.shared_bytes;
	}
	return sum;
}
