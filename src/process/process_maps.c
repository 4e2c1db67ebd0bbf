// SPDX-License-Identifier: GPL-3.0-or-later
#include "process_maps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "hash_table.h"
#include "proc.h"

/* Mappings are pruned when there are this many, and then each time that their number has doubled. */
#define PRUNE_AT 256

/* The longest time by which an event of another CPU's ring is read late. */
#define MOST_LATE_NS 100000000

struct process_map {
	__u32 pid;		       /* 0: unused entry */
	struct code_mapping *mappings; /* by time, oldest first */
	size_t n, capacity;
	size_t prune_at;
};

struct process_maps {
	struct process_map *processes;
	size_t n, capacity;
	size_t n_free;
	__u64 settled_ns; /* no lookup is for a time before this */
	/* Finds processes by pid. A removed process stays in the index under pid 0, which is never
	 * looked up. */
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

/* Removes unused entries, so that memory depends on live processes, not on all that ever ran. */
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
		/* On ENOMEM the process is not found and its code stays unnamed. */
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
	process->prune_at = PRUNE_AT;
	if (hash_table__insert(&maps->index, hash_mix(0, pid), maps->n + 1))
		return NULL;
	maps->n++;
	return process;
}

/* Returns how many of the process's mappings are from @time_ns or earlier. */
static size_t count_at(const struct process_map *process, __u64 time_ns)
{
	size_t n = process->n;

	while (n && process->mappings[n - 1].time_ns > time_ns)
		n--;
	return n;
}

static bool overlap(const struct code_mapping *a, const struct code_mapping *b)
{
	return a->start < b->end && b->start < a->end;
}

/* Returns whether later mappings have replaced all of this one before the earliest time that is
 * looked up. */
static bool is_past(const struct process_maps *maps, const struct process_map *process,
		    size_t index)
{
	const struct code_mapping *mapping = &process->mappings[index];

	for (size_t i = index + 1; i < process->n; i++) {
		const struct code_mapping *later = &process->mappings[i];

		if (later->time_ns > maps->settled_ns)
			return false;
		if (later->start <= mapping->start && later->end >= mapping->end)
			return true;
	}
	return false;
}

/* Returns whether an anonymous mapping hides neither any of the first @n mappings, nor one whose
 * event may still come. */
static bool hides_nothing(const struct process_map *process, size_t n, size_t index)
{
	const struct code_mapping *mapping = &process->mappings[index];

	if (mapping->time_ns + MOST_LATE_NS > process->mappings[process->n - 1].time_ns)
		return false;
	for (size_t i = 0; i < n; i++)
		if (process->mappings[i].path && overlap(&process->mappings[i], mapping))
			return false;
	return true;
}

/* Removes mappings that no look-up can need: JIT compilers map code without end, and other
 * programs load and unload the same plugin. */
static void prune(const struct process_maps *maps, struct process_map *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->n; i++) {
		struct code_mapping *mapping = &process->mappings[i];

		if (mapping->path ? is_past(maps, process, i) : hides_nothing(process, kept, i))
			free(mapping->path);
		else
			process->mappings[kept++] = *mapping;
	}
	process->n = kept;
	process->prune_at = 2 * kept + PRUNE_AT;
}

/* Inserts a mapping by its time: events come from one ring per CPU, and rings are not read at
 * once. */
static int add_mapping(struct process_maps *maps, struct process_map *process,
		       const struct code_mapping *mapping)
{
	size_t at;
	char *path = NULL;

	if (process->n >= process->prune_at)
		prune(maps, process);
	if (array__reserve(&process->mappings, &process->capacity, process->n + 1,
			   sizeof(*process->mappings)))
		return -ENOMEM;
	/* The kernel's "//anon" and "[heap]" are no files. */
	if (mapping->path && mapping->path[0] == '/' && mapping->path[1] != '/') {
		path = strdup(mapping->path);
		if (!path)
			return -ENOMEM;
	}
	at = count_at(process, mapping->time_ns);
	memmove(&process->mappings[at + 1], &process->mappings[at],
		(process->n - at) * sizeof(*process->mappings));
	process->mappings[at] = *mapping;
	process->mappings[at].path = path;
	process->n++;
	return 0;
}

int process_maps__add(struct process_maps *maps, __u32 pid, const struct code_mapping *mapping)
{
	struct process_map *process = get_process(maps, pid);

	return process ? add_mapping(maps, process, mapping) : -ENOMEM;
}

struct scanned {
	struct process_maps *maps;
	__u32 pid;
};

static int add_scanned(void *context, const struct proc_mapping *mapping)
{
	const struct scanned *scanned = context;
	struct code_mapping code = {
		.start = mapping->start,
		.end = mapping->end,
		.offset = mapping->offset,
		.identity = file_identity__of_mapping(mapping),
		.path = (char *)mapping->path,
	};

	return mapping->is_executable ? process_maps__add(scanned->maps, scanned->pid, &code) : 0;
}

int process_maps__scan(struct process_maps *maps, __u32 pid)
{
	struct scanned scanned = { maps, pid };

	return proc_maps__each(pid, add_scanned, &scanned);
}

int process_maps__exec(struct process_maps *maps, __u32 pid, __u64 time_ns)
{
	struct code_mapping nothing = { .end = UINT64_MAX, .time_ns = time_ns };

	return process_maps__add(maps, pid, &nothing);
}

/* Returns the index of the first mapping behind the last exec or fork among the first @n; that
 * exec or fork hides all before it. */
static size_t first_of_program(const struct process_map *process, size_t n)
{
	while (n && (process->mappings[n - 1].path || process->mappings[n - 1].start ||
		     process->mappings[n - 1].end != UINT64_MAX))
		n--;
	return n;
}

int process_maps__fork(struct process_maps *maps, __u32 parent, __u32 child, __u64 time_ns)
{
	struct process_map *from, *to;
	size_t n;
	int err;

	/* Only damaged data make a process its own parent; nothing is copied onto itself. */
	if (parent == child)
		return 0;
	to = get_process(maps, child);
	if (!to)
		return -ENOMEM;
	err = process_maps__exec(maps, child, time_ns);
	from = find_process(maps, parent);
	n = from ? count_at(from, time_ns) : 0;
	/* Hidden mappings are not copied: else two processes that fork each other would double
	 * their mappings at each fork. */
	for (size_t i = from ? first_of_program(from, n) : 0; i < n && !err; i++) {
		struct code_mapping mapping = from->mappings[i];

		mapping.time_ns = time_ns;
		err = add_mapping(maps, to, &mapping);
	}
	return err;
}

void process_maps__forget(struct process_maps *maps, __u32 pid, __u64 time_ns)
{
	struct process_map *process = find_process(maps, pid);
	size_t n = process ? count_at(process, time_ns) : 0;

	if (!process)
		return;
	for (size_t i = 0; i < n; i++)
		free(process->mappings[i].path);
	process->n -= n;
	memmove(process->mappings, process->mappings + n, process->n * sizeof(*process->mappings));
	if (process->n)
		return;
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
			return mapping->path ? mapping : NULL;
	}
	return NULL;
}

static bool is_same_code(const struct code_mapping *a, const struct code_mapping *b)
{
	return file_identity__is_same(&a->identity, &b->identity) &&
	       a->start - a->offset == b->start - b->offset;
}

const struct code_mapping *process_maps__find_lasting(const struct process_maps *maps, __u32 pid,
						      __u64 address)
{
	const struct process_map *process = find_process(maps, pid);
	const struct code_mapping *found = NULL;

	for (size_t i = 0; process && i < process->n; i++) {
		const struct code_mapping *mapping = &process->mappings[i];

		if (!mapping->path || address < mapping->start || address >= mapping->end)
			continue;
		if (found && !is_same_code(found, mapping))
			return NULL;
		found = mapping;
	}
	return found;
}

/* Stores what later mappings have left of one, up to the first of them. Returns false if its start is not left. The kernel maps
 * a program's first segment with the room of all, and into the holes between them others are mapped. */
static bool left_of(const struct process_map *process, size_t index, size_t n,
		    struct code_mapping *left)
{
	*left = process->mappings[index];
	for (size_t i = index + 1; i < n; i++) {
		const struct code_mapping *later = &process->mappings[i];

		if (!overlap(later, left))
			continue;
		if (later->start <= left->start)
			return false;
		left->end = later->start;
	}
	return true;
}

void process_maps__for_each(const struct process_maps *maps, __u32 pid, __u64 time_ns,
			    void (*fn)(const struct code_mapping *mapping, void *context),
			    void *context)
{
	const struct process_map *process = find_process(maps, pid);
	size_t n = process ? count_at(process, time_ns) : 0;
	struct code_mapping left;

	for (size_t i = 0; i < n; i++)
		if (process->mappings[i].path && left_of(process, i, n, &left))
			fn(&left, context);
}

static void add_to_version(const struct code_mapping *mapping, void *context)
{
	const struct file_identity *identity = &mapping->identity;
	__u64 *version = context;

	*version = hash_mix(*version + 1, mapping->start);
	*version = hash_mix(*version + 1, mapping->end);
	*version = hash_mix(*version + 1, mapping->offset);
	*version = hash_mix(*version + 1, identity->inode);
	*version = hash_mix(*version + 1, (__u64)identity->device << 32 | identity->generation);
}

__u64 process_maps__version(const struct process_maps *maps, __u32 pid, __u64 time_ns)
{
	__u64 version = 0;

	process_maps__for_each(maps, pid, time_ns, add_to_version, &version);
	return version;
}

void process_maps__settle(struct process_maps *maps, __u64 time_ns)
{
	maps->settled_ns = time_ns;
}
