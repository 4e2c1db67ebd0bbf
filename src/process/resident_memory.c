// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps the pages of each process, at the beginning of its recording and at the end. */
#include "resident_memory.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"

struct resident_memory *resident_memory__new(void)
{
	return calloc(1, sizeof(struct resident_memory));
}

void resident_memory__free(struct resident_memory *memory)
{
	if (!memory)
		return;
	for (size_t i = 0; i < memory->n; i++) {
		resident_pages__release(&memory->processes[i].before);
		resident_pages__release(&memory->processes[i].now);
	}
	free(memory->processes);
	free(memory);
}

static struct resident_process *find_process(const struct resident_memory *memory, pid_t pid)
{
	for (size_t i = 0; i < memory->n; i++)
		if (memory->processes[i].pid == pid)
			return &memory->processes[i];
	return NULL;
}

bool resident_memory__has(const struct resident_memory *memory, pid_t pid)
{
	const struct resident_process *process = find_process(memory, pid);

	return process && process->now.of.pid;
}

static struct resident_process *get_process(struct resident_memory *memory, pid_t pid)
{
	struct resident_process *process = find_process(memory, pid);

	if (process)
		return process;
	if (array__reserve(&memory->processes, &memory->room, memory->n + 1,
			   sizeof(*memory->processes)))
		return NULL;
	process = &memory->processes[memory->n++];
	*process = (struct resident_process){ .pid = pid };
	return process;
}

static int read_into(struct resident_pages *pages, pid_t pid)
{
	struct resident_pages read;
	int err = resident_pages__read(pid, &read);

	if (err)
		return err;
	resident_pages__release(pages);
	*pages = read;
	return 0;
}

int resident_memory__read_before(struct resident_memory *memory, pid_t pid)
{
	struct resident_process *process = get_process(memory, pid);

	return process ? read_into(&process->before, pid) : -ENOMEM;
}

int resident_memory__read(struct resident_memory *memory, pid_t pid)
{
	struct resident_process *process = get_process(memory, pid);

	return process ? read_into(&process->now, pid) : -ENOMEM;
}
