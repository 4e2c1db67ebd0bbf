/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Helps preload_attach.c: reads the library's file, finds out about a process, and whether its
 * threads are within the library. */
#ifndef ALLOCPROF_ATTACH_INTERNAL_H
#define ALLOCPROF_ATTACH_INTERNAL_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hold;
struct remote;

/* Names of files in memory that the process makes: the library's, the shared memory's, and that of
 * the tables. A living allocprof has locks on the latter two (flock(2)). */
#define ATTACH_LIBRARY_NAME "allocprof-inside"
#define ATTACH_MEMORY_NAME  "allocprof-memory"
#define ATTACH_TABLES_NAME  "allocprof-tables"
/* As /proc/PID/maps shows them. */
#define ATTACH_PATH(name) "/memfd:" name " (deleted)"

/* The library's file, as read from the installation. */
struct library_file {
	unsigned char *bytes;
	size_t size;
	__u64 memory_bytes; /* size of all segments in memory */
	/* Addresses of allocprof_attach(), allocprof_request, allocprof_n_outside and
	 * allocprof_redirections, relative to the library's base. */
	__u64 attach, request, n_outside, redirections;
	__u64 code_start, code_end;
};

/* Reads allocprof's own library from @path. Returns 0 or a negative errno. */
int library_file__read(const char *path, struct library_file *out);

/* Relocates the words of the file that need no symbol for a library that is mapped at @base. */
void library_file__relocate(struct library_file *file, __u64 base);

/* Returns the program header number @index; NULL if there are fewer. */
const Elf64_Phdr *library_file__segment(const struct library_file *file, size_t index);

/* The library as it is mapped in a process. */
struct mapped_library {
	const struct library_file *file;
	pid_t pid;
	__u64 base;
};

/* Has the thread map the library, relocates @file for the address and stores that in *@base. Returns 0 or
 * a negative errno. */
int mapped_library__map(struct library_file *file, pid_t pid, struct remote *remote, __u64 *base);

/* Has the thread map the library's segments that have @flags (PF_W, ...) anew. Returns 0 or a negative
 * errno. */
int mapped_library__map_segments(const struct mapped_library *library, struct remote *remote,
				 __u32 flags);

/*
 * Has the thread make a file in memory, of the process's own: the process may belong to another user, or
 * be in another mount namespace, and cannot open files of this allocprof's directory. It is mapped there,
 * @size bytes at *@address. Returns this process's descriptor of it, or a negative errno.
 */
int process__share_file(pid_t pid, struct remote *remote, const char *name, size_t size,
			int protection, __u64 *address);

/*
 * Returns whether a thread may still use memory that the library has mapped. It may while it runs
 * the library's code, a signal handler that has interrupted this code, or a function that the
 * library has called (other than the allocator's), or if it is not held. The threads must have
 * their own registers.
 */
bool mapped_library__may_be_used(const struct mapped_library *library, const struct hold *hold);

/* Returns whether an allocprof has mapped the library in the process, all of it, and sets *@base then. @but is not
 * looked at, unless it is NULL. */
bool attach_left__find_library(pid_t pid, const struct mapped_library *but, __u64 *base);

#define ATTACH_MOST_LEFT 32

/* Mappings and descriptors of such files in a process; some may be of an allocprof that has ended. */
struct attach_left {
	__u64 starts[ATTACH_MOST_LEFT], ends[ATTACH_MOST_LEFT]; /* addresses */
	size_t n;
	int fds[ATTACH_MOST_LEFT];
	size_t n_fds;
};

/* Finds the first of them, the parts of a library among them that has not been mapped completely. */
void attach_left__find(pid_t pid, struct attach_left *out);
/* Removes those that no living allocprof has, and that do not belong to @library. All threads must be held, and none
 * may use the library's memory. */
void attach_left__remove(const struct attach_left *left, const struct mapped_library *library,
			 struct remote *remote);
/* Returns whether another allocprof measures the process from inside now. */
bool attach_left__is_measured(pid_t pid);

/* Finds the address of the dynamic linker's struct r_debug. Returns 0; -ENOTSUP if the program has
 * none; -EPERM if this user may not trace the process; or another negative errno of reading. */
int process__find_linker(pid_t pid, __u64 *linker);

/* Sets *@has_filters to whether the process has seccomp(2) filters. Returns -EACCES if its threads
 * have different ones, or are in strict mode. */
int process__find_filters(pid_t pid, bool *has_filters);

#endif
