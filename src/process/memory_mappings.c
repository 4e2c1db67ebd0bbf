// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the mappings of a process from its maps or smaps (proc_pid_maps(5), proc_pid_smaps(5)), and
 * tells by names and neighbours what they are for. */
#include "memory_mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "proc.h"

/* glibc's malloc maps a heap for an arena at a multiple of its size, and describes it there. */
#define ARENA_HEAP_BYTES (64ULL << 20)
#define LEAST_CHUNK	 32

struct memory_reader {
	struct memory_mappings *memory;
	struct proc_mapping mapping; /* the last one, without its path */
	bool follows_data;	     /* the mapping before it has a program's data */
	bool follows_guard;	     /* the mapping before it is small and cannot be read */
};

/* The C libraries map a thread's stack with an inaccessible page below, or some. */
#define MOST_GUARD_BYTES (64 << 10)

/* Files that src/inside maps, by their names in src/preload. */
static bool is_own(const struct proc_mapping *mapping)
{
	const char *path = mapping->path, *name = strrchr(path, '/');

	if (!strncmp(path, "/memfd:allocprof-", 17))
		return true;
	if (!name)
		return false;
	if (mapping->is_shared && (!strcmp(name, "/memory") || !strcmp(name, "/tables")))
		return strstr(path, "/allocprof-") != NULL;
	return !strcmp(name, "/liballocprof-inside.so");
}

/* Reads the first four words of a mapping. */
static bool read_words(pid_t pid, const struct proc_mapping *mapping, __u64 words[4])
{
	struct iovec to = { words, 4 * sizeof(*words) };
	struct iovec from = { (void *)mapping->start, 4 * sizeof(*words) };

	return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)to.iov_len;
}

/* Returns whether the heap of brk(2) begins with a chunk of glibc's malloc: its size, of which the
 * last bits say that none is before it, and that it is neither mapped nor an arena's. */
static bool is_main_heap(pid_t pid, const struct proc_mapping *mapping)
{
	__u64 words[4];

	return read_words(pid, mapping, words) && !words[0] && (words[1] & 15) == 1 &&
	       words[1] >= LEAST_CHUNK && words[1] <= mapping->end - mapping->start;
}

/* Returns whether the mapping begins with glibc's struct _heap_info: the arena's address, the heap
 * before it, and the sizes in use and accessible. */
static bool is_arena(pid_t pid, const struct proc_mapping *mapping, __u64 words[4])
{
	__u64 size = mapping->end - mapping->start;

	if (mapping->start % ARENA_HEAP_BYTES || size > ARENA_HEAP_BYTES ||
	    !read_words(pid, mapping, words))
		return false;
	return words[0] && words[2] && words[2] <= words[3] && words[3] == size;
}

/* Memory of a device may change when it is read; that of the kernel cannot be read: [vvar],
 * [uprobes]. */
static bool is_device(const char *path)
{
	static const char *const programs[] = { "[heap]", "[stack", "[anon" };

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (!strncmp(path, programs[i], strlen(programs[i])))
			return false;
	return *path == '[' || (!strncmp(path, "/dev/", 5) && strncmp(path, "/dev/shm/", 9) != 0 &&
				strncmp(path, "/dev/zero", 9) != 0);
}

bool memory_mapping__is_c_library(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "libc.so.6", 9) || !strncmp(name, "libc-2.", 7);
}

/* @words: those of an arena's heap are set. */
static enum memory_kind memory_kind_of(const struct memory_reader *reader,
				       const struct proc_mapping *mapping, __u64 words[4])
{
	if (is_own(mapping))
		return MEMORY_OWN;
	if (mapping->is_shared)
		return MEMORY_SHARED;
	if (!strcmp(mapping->path, "[heap]"))
		return MEMORY_BREAK;
	if (!strcmp(mapping->path, "[stack]"))
		return MEMORY_STACK;
	if (mapping->inode || mapping->path[0] == '/' || !strcmp(mapping->path, "[vdso]"))
		return MEMORY_FILE;
	if (reader->follows_data && mapping->is_writable && !mapping->path[0])
		return MEMORY_DATA;
	if (reader->follows_guard && mapping->is_writable)
		return MEMORY_STACK;
	return is_arena(reader->memory->pid, mapping, words) ? MEMORY_ARENA : MEMORY_ANONYMOUS;
}

static int add_mapping(struct memory_reader *reader, const struct proc_mapping *mapping)
{
	struct memory_mappings *memory = reader->memory;
	const struct memory_mapping *last;
	enum memory_kind kind;
	__u64 words[4] = { 0 };

	if (array__reserve(&memory->mappings, &memory->room, memory->n + 1,
			   sizeof(*memory->mappings)))
		return -ENOMEM;
	last = memory->n ? &memory->mappings[memory->n - 1] : NULL;
	/* The kernel lists mappings by their addresses; a file that does not is not smaps. */
	if (mapping->start >= mapping->end || (last && last->end > mapping->start))
		return -EINVAL;
	reader->follows_guard = last && last->end == mapping->start &&
				last->kind == MEMORY_ANONYMOUS && !reader->mapping.is_readable &&
				last->end - last->begin <= MOST_GUARD_BYTES;
	reader->follows_data = last && last->end == mapping->start && last->kind == MEMORY_FILE &&
			       reader->mapping.is_writable;
	kind = memory_kind_of(reader, mapping, words);
	memory->mappings[memory->n] = (struct memory_mapping){
		.begin = mapping->start,
		.end = mapping->end,
		.kind = kind,
		.is_writable = mapping->is_writable,
		.is_main_stack = !strcmp(mapping->path, "[stack]"),
		.is_guarded = reader->follows_guard,
		.is_code = mapping->is_executable && mapping->inode,
		.is_device = is_device(mapping->path),
		.is_c_library = kind == MEMORY_DATA ? memory->mappings[memory->n - 1].is_c_library
						    : memory_mapping__is_c_library(mapping->path),
		.is_glibc = kind == MEMORY_ARENA ||
			    (kind == MEMORY_BREAK && is_main_heap(memory->pid, mapping)),
		.arena = kind == MEMORY_ARENA ? words[0] : 0,
	};
	memory->has_jemalloc |= strstr(mapping->path, "/libjemalloc") != NULL;
	memory->n++;
	reader->mapping = *mapping;
	reader->mapping.path = NULL;
	return 0;
}

static void add_detail(struct memory_mappings *memory, const char *line)
{
	struct memory_mapping *mapping = &memory->mappings[memory->n - 1];
	__u64 kib;

	if (sscanf(line, "Rss: %llu kB", &kib) == 1) {
		mapping->rss_bytes = kib << 10;
		memory->rss_bytes += mapping->rss_bytes;
	} else if (sscanf(line, "AnonHugePages: %llu kB", &kib) == 1) {
		mapping->huge_bytes = kib << 10;
	}
}

static int read_mappings(struct memory_mappings *memory, bool with_rss)
{
	struct memory_reader reader = { .memory = memory };
	_cleanup_(close_file) FILE *list = NULL;
	_cleanup_(free_ptr) char *line = NULL;
	size_t capacity = 0;
	char path[64];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", memory->pid, with_rss ? "smaps" : "maps");
	list = fopen(path, "re");
	if (!list)
		return -errno;
	while (!err && getline(&line, &capacity, list) > 0) {
		struct proc_mapping mapping;

		if (proc_mapping__parse(line, &mapping))
			err = add_mapping(&reader, &mapping);
		else if (memory->n)
			add_detail(memory, line);
	}
	/* A process that has ended, or is another user's, has an empty file. */
	return err || memory->n ? err : -ESRCH;
}

/* Returns the mapping at @address, or NULL. */
static const struct memory_mapping *memory_mappings__find(const struct memory_mappings *memory,
							  __u64 address)
{
	size_t at = ARRAY_LOWER_BOUND(memory->n, i, memory->mappings[i].end <= address);

	return at < memory->n && memory->mappings[at].begin <= address ? &memory->mappings[at]
								       : NULL;
}

/* Reads a thread's stack pointer from /proc/PID/task/TID/syscall: the last number but one. Returns
 * false for a thread that runs. */
static bool read_stack_pointer(int tasks, const char *tid, __u64 *stack_pointer)
{
	_cleanup_(close_fd) int fd = -1;
	char path[64], text[256], *last, *before;
	ssize_t len;

	snprintf(path, sizeof(path), "%.32s/syscall", tid);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		return false;
	text[len] = '\0';
	last = strrchr(text, ' ');
	if (!last)
		return false;
	*last = '\0';
	before = strrchr(text, ' ');
	return before && sscanf(before, " 0x%llx", stack_pointer) == 1;
}

static void find_stacks(struct memory_mappings *memory)
{
	_cleanup_(close_directory) DIR *tasks = NULL;
	const struct dirent *entry;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", memory->pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		const struct memory_mapping *mapping;
		__u64 stack_pointer;

		if (*entry->d_name == '.' ||
		    !read_stack_pointer(dirfd(tasks), entry->d_name, &stack_pointer))
			continue;
		mapping = memory_mappings__find(memory, stack_pointer);
		if (mapping && mapping->kind == MEMORY_ANONYMOUS)
			memory->mappings[mapping - memory->mappings].kind = MEMORY_STACK;
	}
}

int memory_mappings__read(pid_t pid, bool with_rss, struct memory_mappings *out)
{
	struct memory_mappings memory = { .pid = pid };
	int err = read_mappings(&memory, with_rss);

	if (err) {
		memory_mappings__release(&memory);
		return err;
	}
	find_stacks(&memory);
	*out = memory;
	return 0;
}

void memory_mappings__release(struct memory_mappings *memory)
{
	free(memory->mappings);
	*memory = (struct memory_mappings){ 0 };
}
