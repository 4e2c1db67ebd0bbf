// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads which pages of a process are resident from its smaps and pagemap (proc_pid_smaps(5),
 * proc_pid_pagemap(5)). */
#include "resident_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "proc.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_PRESENT	  (1ULL << 63)
#define PAGEMAP_FILE	  (1ULL << 61)
#define PAGEMAP_EXCLUSIVE (1ULL << 56)

/* The request PAGEMAP_SCAN of Linux 6.7, whose names older headers lack. */
struct page_region {
	__u64 start, end, categories;
};
struct scan_request {
	__u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
	__u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN_PAGES	_IOWR('f', 16, struct scan_request)
#define SCAN_IS_PRESENT (1ULL << 3)

/* Mappings of which at most this share is resident are scanned for what is, if the kernel can: a
 * reservation of terabytes would take seconds. */
#define SPARSE_SHARE 16

/* glibc's malloc maps a heap for an arena at a multiple of its size, and describes it there. */
#define ARENA_HEAP_BYTES (64ULL << 20)

struct memory_reader {
	struct resident_pages *memory;
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

/* Returns whether the mapping begins with glibc's struct _heap_info: the arena's address, the heap
 * before it, and the sizes in use and accessible. */
static bool is_arena(pid_t pid, const struct proc_mapping *mapping)
{
	__u64 words[4], size = mapping->end - mapping->start;
	struct iovec to = { words, sizeof(words) };
	struct iovec from = { (void *)mapping->start, sizeof(words) };

	if (mapping->start % ARENA_HEAP_BYTES || size > ARENA_HEAP_BYTES ||
	    process_vm_readv(pid, &to, 1, &from, 1, 0) != sizeof(words))
		return false;
	return words[0] && words[2] && words[2] <= words[3] && words[3] == size;
}

static enum memory_kind memory_kind_of(const struct memory_reader *reader,
				       const struct proc_mapping *mapping)
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
	return is_arena(reader->memory->pid, mapping) ? MEMORY_ARENA : MEMORY_ANONYMOUS;
}

static int add_mapping(struct memory_reader *reader, const struct proc_mapping *mapping)
{
	struct resident_pages *memory = reader->memory;
	const struct memory_mapping *last =
		memory->n_mappings ? &memory->mappings[memory->n_mappings - 1] : NULL;

	/* The kernel lists mappings by their addresses; a file that does not is not smaps. */
	if (mapping->start >= mapping->end || (last && last->end > mapping->start))
		return -EINVAL;
	if (array__reserve(&memory->mappings, &memory->mappings_room, memory->n_mappings + 1,
			   sizeof(*memory->mappings)))
		return -ENOMEM;
	reader->follows_guard = last && last->end == mapping->start &&
				last->kind == MEMORY_ANONYMOUS && !reader->mapping.is_readable &&
				last->end - last->begin <= MOST_GUARD_BYTES;
	reader->follows_data = last && last->end == mapping->start && last->kind == MEMORY_FILE &&
			       reader->mapping.is_writable;
	memory->mappings[memory->n_mappings++] = (struct memory_mapping){
		.begin = mapping->start,
		.end = mapping->end,
		.kind = memory_kind_of(reader, mapping),
	};
	reader->mapping = *mapping;
	reader->mapping.path = NULL;
	return 0;
}

static void add_detail(struct resident_pages *memory, const char *line)
{
	struct memory_mapping *mapping = &memory->mappings[memory->n_mappings - 1];
	__u64 kib;

	if (sscanf(line, "Rss: %llu kB", &kib) == 1) {
		mapping->rss_bytes = kib << 10;
		memory->rss_bytes += mapping->rss_bytes;
	} else if (sscanf(line, "AnonHugePages: %llu kB", &kib) == 1) {
		mapping->huge_bytes = kib << 10;
	}
}

static int read_mappings(struct resident_pages *memory)
{
	struct memory_reader reader = { .memory = memory };
	_cleanup_(close_file) FILE *smaps = NULL;
	_cleanup_(free_ptr) char *line = NULL;
	size_t capacity = 0;
	char path[64];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/smaps", memory->pid);
	smaps = fopen(path, "re");
	if (!smaps)
		return -errno;
	while (!err && getline(&line, &capacity, smaps) > 0) {
		struct proc_mapping mapping;

		if (proc_mapping__parse(line, &mapping))
			err = add_mapping(&reader, &mapping);
		else if (memory->n_mappings)
			add_detail(memory, line);
	}
	/* A process that has ended, or is another user's, has an empty file. */
	return err || memory->n_mappings ? err : -ESRCH;
}

static struct memory_mapping *find_mapping(struct resident_pages *memory, __u64 address)
{
	size_t at = ARRAY_LOWER_BOUND(memory->n_mappings, i, memory->mappings[i].end <= address);

	return at < memory->n_mappings && memory->mappings[at].begin <= address
		       ? &memory->mappings[at]
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

static void find_stacks(struct resident_pages *memory)
{
	_cleanup_(close_directory) DIR *tasks = NULL;
	const struct dirent *entry;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", memory->pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		struct memory_mapping *mapping;
		__u64 stack_pointer;

		if (*entry->d_name == '.' ||
		    !read_stack_pointer(dirfd(tasks), entry->d_name, &stack_pointer))
			continue;
		mapping = find_mapping(memory, stack_pointer);
		if (mapping && mapping->kind == MEMORY_ANONYMOUS)
			mapping->kind = MEMORY_STACK;
	}
}

static int add_page(struct resident_pages *memory, __u32 mapping, __u64 address, __u64 entry)
{
	struct memory_run *last = memory->n_runs ? &memory->runs[memory->n_runs - 1] : NULL;
	struct memory_run run = {
		.begin = address,
		.end = address + RESIDENT_PAGE_BYTES,
		.mapping = mapping,
		.is_of_file = entry & PAGEMAP_FILE,
		.is_shared = !(entry & (PAGEMAP_EXCLUSIVE | PAGEMAP_FILE)),
	};

	if (last && last->end == address && last->mapping == mapping &&
	    last->is_of_file == run.is_of_file && last->is_shared == run.is_shared) {
		last->end = run.end;
		return 0;
	}
	if (array__reserve(&memory->runs, &memory->runs_room, memory->n_runs + 1,
			   sizeof(*memory->runs)))
		return -ENOMEM;
	memory->runs[memory->n_runs++] = run;
	return 0;
}

struct page_reading {
	struct resident_pages *memory;
	int pagemap;
	bool cannot_scan;
	__u64 entries[8192];
};

static int read_pages(struct page_reading *reading, __u32 mapping, __u64 begin, __u64 end)
{
	int err = 0;

	while (begin < end && !err) {
		size_t n = (end - begin) / RESIDENT_PAGE_BYTES;
		ssize_t len;

		if (n > ARRAY_SIZE(reading->entries))
			n = ARRAY_SIZE(reading->entries);
		len = pread(reading->pagemap, reading->entries, n * sizeof(__u64),
			    begin / RESIDENT_PAGE_BYTES * sizeof(__u64));
		if (len < (ssize_t)sizeof(__u64))
			return len < 0 ? -errno : 0;
		n = len / sizeof(__u64);
		for (size_t i = 0; i < n && !err; i++, begin += RESIDENT_PAGE_BYTES)
			if (reading->entries[i] & PAGEMAP_PRESENT)
				err = add_page(reading->memory, mapping, begin,
					       reading->entries[i]);
	}
	return err;
}

/* Reads the pages of the regions that have any. Returns -ENOTTY before Linux 6.7. */
static int scan_pages(struct page_reading *reading, __u32 mapping, __u64 begin, __u64 end)
{
	struct page_region regions[64];
	struct scan_request request = {
		.size = sizeof(request),
		.start = begin,
		.end = end,
		.vec = (__u64)regions,
		.vec_len = ARRAY_SIZE(regions),
		.category_mask = SCAN_IS_PRESENT,
		.return_mask = SCAN_IS_PRESENT,
	};
	int err = 0;

	while (request.start < end && !err) {
		int n = ioctl(reading->pagemap, SCAN_PAGES, &request);

		if (n < 0)
			return -errno;
		for (int i = 0; i < n && !err; i++)
			err = read_pages(reading, mapping, regions[i].start, regions[i].end);
		if (request.walk_end <= request.start)
			break;
		request.start = request.walk_end;
	}
	return err;
}

static int read_resident(struct page_reading *reading, __u32 at)
{
	const struct memory_mapping *mapping = &reading->memory->mappings[at];
	bool is_sparse = mapping->rss_bytes < (mapping->end - mapping->begin) / SPARSE_SHARE;
	size_t n_before = reading->memory->n_runs;
	int err = -ENOTTY;

	if (!mapping->rss_bytes)
		return 0;
	if (is_sparse && !reading->cannot_scan)
		err = scan_pages(reading, at, mapping->begin, mapping->end);
	if (err != -ENOTTY && err != -EINVAL)
		return err;
	reading->cannot_scan |= is_sparse;
	reading->memory->n_runs = n_before;
	return read_pages(reading, at, mapping->begin, mapping->end);
}

/* Removes pages that are mapped and not counted in Rss: the kernel's page of zeros, which anonymous
 * memory has that was read and never written. Nothing tells it from a page that another process
 * has, too, so the first of these are taken for it. */
static void leave_out_zeros(struct resident_pages *memory, __u32 at, size_t first_run)
{
	__u64 excess = 0, rss = memory->mappings[at].rss_bytes;

	for (size_t i = first_run; i < memory->n_runs; i++)
		excess += memory->runs[i].end - memory->runs[i].begin;
	excess -= excess > rss ? rss : excess;
	for (size_t i = first_run; i < memory->n_runs && excess; i++) {
		struct memory_run *run = &memory->runs[i];
		__u64 bytes = run->is_shared ? run->end - run->begin : 0;

		bytes = bytes < excess ? bytes : excess;
		run->begin += bytes;
		excess -= bytes;
	}
}

static int read_runs(struct resident_pages *memory)
{
	_cleanup_(free_ptr) struct page_reading *reading = calloc(1, sizeof(*reading));
	_cleanup_(close_fd) int pagemap = -1;
	char path[64];
	int err = 0;

	if (!reading)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", memory->pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return -errno;
	reading->memory = memory;
	reading->pagemap = pagemap;
	for (__u32 i = 0; i < memory->n_mappings && !err; i++) {
		size_t first_run = memory->n_runs;

		err = read_resident(reading, i);
		if (!err)
			leave_out_zeros(memory, i, first_run);
	}
	return err;
}

int resident_pages__read(pid_t pid, struct resident_pages *out)
{
	struct resident_pages memory = { .pid = pid };
	int err = read_mappings(&memory);

	if (!err) {
		find_stacks(&memory);
		err = read_runs(&memory);
	}
	if (err)
		resident_pages__release(&memory);
	else
		*out = memory;
	return err;
}

void resident_pages__release(struct resident_pages *memory)
{
	free(memory->mappings);
	free(memory->runs);
	*memory = (struct resident_pages){ 0 };
}
