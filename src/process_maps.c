// SPDX-License-Identifier: GPL-3.0-or-later
#include "process_maps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "hash_table.h"

struct process_map {
	__u32 pid;		       /* 0: free to be used again */
	struct code_mapping *mappings; /* oldest first */
	size_t n, capacity;
	__u64 birth; /* differs from that of all other processes, also of the same pid */
};

struct process_maps {
	struct process_map *processes;
	size_t n, capacity;
	size_t n_free;
	__u64 last_birth;
	/* By pid. A removed process stays in it under pid 0, which nothing looks for. */
	struct hash_table index;
};

struct process_maps *process_maps__new(void)
{
	return calloc(1, sizeof(struct process_maps));
}

static void clear(struct process_map *process)
{
	for (size_t i = 0; i < process->n; i++)
		free(process->mappings[i].path);
	process->n = 0;
}

void process_maps__free(struct process_maps *maps)
{
	if (!maps)
		return;
	for (size_t i = 0; i < maps->n; i++) {
		clear(&maps->processes[i]);
		free(maps->processes[i].mappings);
	}
	free(maps->processes);
	hash_table__release(&maps->index);
	free(maps);
}

static bool has_pid(const void *owner, __u32 id, const void *key)
{
	const struct process_maps *maps = owner;

	return maps->processes[id - 1].pid == *(const __u32 *)key;
}

static struct process_map *find_process(const struct process_maps *maps, __u32 pid)
{
	__u32 id = hash_table__find(&maps->index, hash_mix(0, pid), has_pid, maps, &pid);

	return id ? &maps->processes[id - 1] : NULL;
}

/* Leaves the removed processes out of array and index, so that a run of a million short processes
 * needs no more room than those alive. */
static void compact(struct process_maps *maps)
{
	size_t kept = 0;

	hash_table__release(&maps->index);
	memset(&maps->index, 0, sizeof(maps->index));
	for (size_t i = 0; i < maps->n; i++) {
		if (!maps->processes[i].pid) {
			free(maps->processes[i].mappings);
			continue;
		}
		maps->processes[kept++] = maps->processes[i];
		/* Without memory the process is not found; its names are lost, nothing else. */
		hash_table__insert(&maps->index, hash_mix(0, maps->processes[kept - 1].pid), kept);
	}
	maps->n = kept;
	maps->n_free = 0;
}

static struct process_map *get_process(struct process_maps *maps, __u32 pid)
{
	struct process_map *process = find_process(maps, pid);

	if (process)
		return process;
	if (maps->n == maps->capacity && maps->n_free > maps->n / 2)
		compact(maps);
	if (array__reserve(&maps->processes, &maps->capacity, maps->n + 1,
			   sizeof(*maps->processes)))
		return NULL;
	process = &maps->processes[maps->n];
	memset(process, 0, sizeof(*process));
	process->pid = pid;
	process->birth = ++maps->last_birth;
	if (hash_table__insert(&maps->index, hash_mix(0, pid), maps->n + 1))
		return NULL;
	maps->n++;
	return process;
}

static int add_mapping(struct process_map *process, const struct code_mapping *mapping)
{
	struct code_mapping *copy;

	if (array__reserve(&process->mappings, &process->capacity, process->n + 1,
			   sizeof(*process->mappings)))
		return -ENOMEM;
	copy = &process->mappings[process->n];
	*copy = *mapping;
	copy->path = strdup(mapping->path);
	if (!copy->path)
		return -ENOMEM;
	process->n++;
	return 0;
}

int process_maps__add(struct process_maps *maps, __u32 pid, const struct code_mapping *mapping)
{
	struct process_map *process = get_process(maps, pid);

	if (!process)
		return -ENOMEM;
	return add_mapping(process, mapping);
}

void process_maps__scan(struct process_maps *maps, __u32 pid)
{
	_cleanup_(close_file) FILE *file = NULL;
	_cleanup_(free_ptr) char *line = NULL;
	char name[64], permissions[5];
	size_t capacity = 0;

	snprintf(name, sizeof(name), "/proc/%u/maps", pid);
	file = fopen(name, "re");
	while (file && getline(&line, &capacity, file) > 0) {
		struct code_mapping mapping = { 0 };
		unsigned int major, minor;
		int path_at = 0;

		if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &mapping.start, &mapping.end,
			   permissions, &mapping.offset, &major, &minor, &mapping.inode,
			   &path_at) < 7 ||
		    permissions[2] != 'x' || !path_at)
			continue;
		line[strcspn(line, "\n")] = '\0';
		mapping.device = major << 20 | minor;
		mapping.path = line + path_at;
		process_maps__add(maps, pid, &mapping);
	}
}

void process_maps__fork(struct process_maps *maps, __u32 parent, __u32 child)
{
	struct process_map own = { 0 }, *from, *to = get_process(maps, child);

	if (!to)
		return;
	from = find_process(maps, parent);
	if (!from)
		return;
	own = *to;
	to->mappings = NULL;
	to->n = to->capacity = 0;
	for (size_t i = 0; i < from->n; i++)
		add_mapping(to, &from->mappings[i]);
	for (size_t i = 0; i < own.n; i++)
		add_mapping(to, &own.mappings[i]);
	clear(&own);
	free(own.mappings);
}

void process_maps__remove(struct process_maps *maps, __u32 pid)
{
	struct process_map *process = find_process(maps, pid);

	if (!process)
		return;
	clear(process);
	process->pid = 0;
	maps->n_free++;
}

const struct code_mapping *process_maps__find(const struct process_maps *maps, __u32 pid,
					      __u64 address, __u64 time_ns)
{
	const struct process_map *process = find_process(maps, pid);

	if (!process)
		return NULL;
	for (size_t i = process->n; i-- > 0;) {
		const struct code_mapping *mapping = &process->mappings[i];

		if (mapping->time_ns <= time_ns && address >= mapping->start &&
		    address < mapping->end)
			return mapping;
	}
	return NULL;
}

const struct code_mapping *process_maps__find_file(const struct process_maps *maps, __u32 pid,
						   __u32 device, __u64 inode, __u32 generation)
{
	const struct process_map *process = find_process(maps, pid);

	for (size_t i = process ? process->n : 0; i-- > 0;) {
		const struct code_mapping *mapping = &process->mappings[i];

		/* /proc/PID/maps, from which the first ones come, tells no generation. */
		if (mapping->device == device && mapping->inode == inode &&
		    (!mapping->generation || mapping->generation == generation))
			return mapping;
	}
	return NULL;
}

/* How many of the process's mappings there were at @time_ns. */
static size_t count_at(const struct process_map *process, __u64 time_ns)
{
	size_t n = process->n;

	while (n && process->mappings[n - 1].time_ns > time_ns)
		n--;
	return n;
}

__u64 process_maps__version(const struct process_maps *maps, __u32 pid, __u64 time_ns)
{
	const struct process_map *process = find_process(maps, pid);

	/* Mappings are only ever added, until the process's others all go with an exec. */
	return process ? hash_mix(process->birth, count_at(process, time_ns)) : 0;
}

static bool is_hidden(const struct process_map *process, size_t index, size_t n)
{
	const struct code_mapping *mapping = &process->mappings[index];

	for (size_t i = index + 1; i < n; i++)
		if (process->mappings[i].start < mapping->end &&
		    mapping->start < process->mappings[i].end)
			return true;
	return false;
}

void process_maps__for_each(const struct process_maps *maps, __u32 pid, __u64 time_ns,
			    void (*fn)(const struct code_mapping *mapping, void *context),
			    void *context)
{
	const struct process_map *process = find_process(maps, pid);
	size_t n = process ? count_at(process, time_ns) : 0;

	for (size_t i = 0; i < n; i++)
		if (!is_hidden(process, i, n))
			fn(&process->mappings[i], context);
}
