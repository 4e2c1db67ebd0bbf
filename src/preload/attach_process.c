// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds out what allocprof has to know of a process that runs to attach to it, and whether a process
 * to which it has attached has forked this one. */
#include "attach_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "file.h"
#include "preload_attach.h"
#include "preload_internal.h"
#include "proc.h"
#include "remote.h"

int process__read_program(pid_t pid, struct process_program *out)
{
	_cleanup_(close_fd) int fd = -1;
	__u64 headers = 0, n = 0;
	char path[64];
	Elf64_auxv_t entry;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? -EPERM : -errno;
	while (read(fd, &entry, sizeof(entry)) == sizeof(entry) && entry.a_type != AT_NULL)
		if (entry.a_type == AT_PHDR)
			headers = entry.a_un.a_val;
		else if (entry.a_type == AT_PHNUM)
			n = entry.a_un.a_val;
	*out = (struct process_program){ .n = n > ARRAY_SIZE(out->headers)
						      ? ARRAY_SIZE(out->headers)
						      : n };
	if (process_memory__read(pid, headers, out->headers, out->n * sizeof(*out->headers)))
		return -ENOTSUP;
	for (size_t i = 0; i < out->n; i++)
		if (out->headers[i].p_type == PT_PHDR)
			out->bias = headers - out->headers[i].p_vaddr;
	return 0;
}

int process__find_linker(pid_t pid, __u64 *linker)
{
	struct process_program program;
	int err = process__read_program(pid, &program);
	__u64 dynamic = 0;
	Elf64_Dyn tag;

	if (err)
		return err;
	for (size_t i = 0; i < program.n; i++)
		if (program.headers[i].p_type == PT_DYNAMIC)
			dynamic = program.headers[i].p_vaddr;
	for (int i = 0; dynamic && i < 256; i++) {
		if (process_memory__read(pid, program.bias + dynamic + i * sizeof(tag), &tag,
					 sizeof(tag)) ||
		    tag.d_tag == DT_NULL)
			break;
		if (tag.d_tag == DT_DEBUG && tag.d_un.d_ptr) {
			*linker = tag.d_un.d_ptr;
			return 0;
		}
	}
	return -ENOTSUP;
}

/* Calls @fn with the file /proc/PID/task/TID/@name of each of the process's threads, until it returns
 * true. Returns whether it did. */
static bool any_thread(pid_t pid, const char *name, bool (*fn)(void *context, FILE *file),
		       void *context)
{
	_cleanup_(close_directory) DIR *tasks = NULL;
	const struct dirent *entry;
	char path[320];
	bool is = false;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !is && (entry = readdir(tasks))) {
		_cleanup_(close_file) FILE *file = NULL;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", pid, entry->d_name, name);
		file = fopen(path, "re");
		is = file && fn(context, file);
	}
	return is;
}

#define STRICT_FILTERS 1

/* A thread's seccomp(2) filters, as /proc/PID/task/TID/status shows them. */
struct thread_filters {
	bool is_known;
	int mode; /* mode of seccomp; 0: none */
	int n;	  /* number of filters, which Linux 5.9 and later show */
};

/* The status of a thread that has ended has no such lines. */
static struct thread_filters thread_filters__read(FILE *status)
{
	struct thread_filters filters = { 0 };
	char line[256];

	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "Seccomp: %d", &filters.mode) == 1)
			filters.is_known = true;
		else
			sscanf(line, "Seccomp_filters: %d", &filters.n);
	return filters;
}

/* Returns whether the thread has other filters than those before it. */
static bool has_other_filters(void *context, FILE *status)
{
	struct thread_filters *all = context, filters = thread_filters__read(status);

	if (!filters.is_known)
		return false;
	if (!all->is_known)
		*all = filters;
	return filters.mode != all->mode || filters.n != all->n;
}

int process__find_filters(pid_t pid, bool *has_filters)
{
	struct thread_filters all = { 0 };

	if (any_thread(pid, "status", has_other_filters, &all) || all.mode == STRICT_FILTERS)
		return -EACCES;
	*has_filters = all.mode;
	return 0;
}

bool process__has_filters(pid_t pid, pid_t tid)
{
	_cleanup_(close_file) FILE *status = NULL;
	struct thread_filters filters = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	status = fopen(path, "re");
	if (status)
		filters = thread_filters__read(status);
	return !filters.is_known || filters.mode;
}

/* Returns whether one of the thread's children shares the process's memory. The file has their
 * numbers, with spaces between. */
static bool has_sharing_child(void *context, FILE *children)
{
	const pid_t *pid = context;
	pid_t child;

	while (fscanf(children, "%d", &child) == 1)
		if (!syscall(SYS_kcmp, *pid, child, KCMP_VM, 0, 0))
			return true;
	return false;
}

bool process__shares_memory(pid_t pid)
{
	return any_thread(pid, "children", has_sharing_child, &pid);
}

struct seeking_memory {
	struct stat memory;
	bool is_mapped;
};

static int look_for_memory(void *context, const struct proc_mapping *mapping)
{
	struct seeking_memory *seeking = context;

	seeking->is_mapped = mapping->inode == seeking->memory.st_ino &&
			     !strcmp(mapping->path, ATTACH_PATH(ATTACH_MEMORY_NAME));
	return seeking->is_mapped;
}

bool preload_forked__find(const struct preload *preload, pid_t pid, struct preload_forked *out)
{
	struct seeking_memory seeking = { .is_mapped = false };

	*out = (struct preload_forked){ .pid = pid };
	return !fstat(preload->memory_fd, &seeking.memory) &&
	       proc_maps__each(pid, look_for_memory, &seeking) == 1 &&
	       attach_left__find_library(pid, NULL, &out->base) &&
	       !process__find_linker(pid, &out->linker);
}
