// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds out what has to be known about a running process before the library is mapped into it. */
#include "attach_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "file.h"
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

#define STRICT_FILTERS 1

/* A thread's seccomp(2) filters, as /proc/PID/status shows them. */
struct thread_filters {
	int mode; /* mode of seccomp; 0: none */
	int n;	  /* number of filters, which Linux 5.9 and later show */
};

static struct thread_filters thread_filters__read(const char *path)
{
	struct thread_filters filters = { 0 };
	char line[256];
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Seccomp: %d", &filters.mode) != 1)
			sscanf(line, "Seccomp_filters: %d", &filters.n);
	if (file)
		fclose(file);
	return filters;
}

int process__find_filters(pid_t pid, bool *has_filters)
{
	struct thread_filters all = { 0 }, filters;
	const struct dirent *entry;
	char path[320];
	bool differ = false;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	all = thread_filters__read(path);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, entry->d_name);
		filters = thread_filters__read(path);
		differ |= filters.mode != all.mode || filters.n != all.n;
	}
	if (tasks)
		closedir(tasks);
	*has_filters = all.mode;
	return differ || all.mode == STRICT_FILTERS ? -EACCES : 0;
}

/* Returns whether one of the children in the list, numbers with spaces between, has the process's memory. */
static bool is_any_sharing(pid_t pid, FILE *children)
{
	pid_t child;

	while (fscanf(children, "%d", &child) == 1)
		if (!syscall(SYS_kcmp, pid, child, KCMP_VM, 0, 0))
			return true;
	return false;
}

bool process__shares_memory(pid_t pid)
{
	const struct dirent *entry;
	char path[320];
	bool shares = false;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !shares && (entry = readdir(tasks))) {
		FILE *children;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, entry->d_name);
		children = fopen(path, "re");
		if (children) {
			shares = is_any_sharing(pid, children);
			fclose(children);
		}
	}
	if (tasks)
		closedir(tasks);
	return shares;
}
