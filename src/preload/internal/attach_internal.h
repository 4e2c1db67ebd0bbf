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
#include <unistd.h>

#define PAGE ((__u64)sysconf(_SC_PAGESIZE))

struct call_site;
struct error;
struct hold;
struct inside_function;
struct inside_request;
struct parser;
struct remote;

/* Set *@error to why process @pid is not measured, and return the errno: @err, unless another one says more. */
int attach__refuse(struct error *error, int err, pid_t pid, const char *why);
int attach__explain(struct error *error, int err, pid_t pid);

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
	/* Addresses of allocprof_attach(), allocprof_request, allocprof_n_outside,
	 * allocprof_redirections, allocprof_stubs and allocprof_functions, relative to the library's
	 * base, and the size of the last one. */
	__u64 attach, request, n_outside, redirections, stubs, stub_functions, stub_functions_bytes;
	__u64 code_start, code_end;
	__u64 *functions; /* where functions begin, relative to the base; sorted */
	size_t n_functions;
	__u64 *entries; /* where other code calls functions, but for the stubs */
	size_t n_entries, room_entries;
};

/* Reads allocprof's own library from @path. Returns 0 or a negative errno. */
int library_file__read(const char *path, struct library_file *out);
void library_file__release(struct library_file *file);

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

/* Has the thread map the library, relocates @file for the address and stores that in *@base: the address
 * *@base, which must be free, unless that is 0. Returns 0 or a negative errno. */
int mapped_library__map(struct library_file *file, pid_t pid, struct remote *remote, __u64 *base);

/* Has the thread map the library's data anew, but for the list of the functions that stubs lead to: programs may
 * have addresses of stubs. Returns 0 or a negative errno. */
int mapped_library__map_data(const struct mapped_library *library, struct remote *remote);

/*
 * Has the thread make a file in memory, of the process's own: the process may belong to another user, or
 * be in another mount namespace, and cannot open files of this allocprof's directory. It is mapped there,
 * @size bytes at *@address. Returns this process's descriptor of it, or a negative errno.
 */
int process__share_file(pid_t pid, struct remote *remote, const char *name, size_t size,
			int protection, __u64 *address);

/*
 * Has the thread map the first @size bytes of the file @fd of this process, at *@address: it gets the
 * descriptor through a socket, since it may not be permitted to open the file. Returns 0 or a negative
 * errno.
 */
int process__map_file(pid_t pid, struct remote *remote, int fd, size_t size, int protection,
		      __u64 *address);

/* Maps memory of the process's own there, with @size bytes of @bytes in it. Stores its address; 0 for no bytes.
 * Returns 0 or a negative errno; what is mapped stays. */
int process__map_copy(pid_t pid, struct remote *remote, const void *bytes, size_t size,
		      __u64 *address);

/* Copies the process's seccomp(2) filters to the process, where the library consults them, and states them in
 * @request. Returns 0; -EACCES if they cannot be read; or another negative errno. */
int process__copy_filters(pid_t pid, struct remote *remote, struct inside_request *request);

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

/* The headers of the program that a process runs, as they are in its memory. */
struct process_program {
	__u64 bias; /* what is added to the addresses of the program's file */
	Elf64_Phdr headers[64];
	size_t n;
};

/* Returns 0; -ENOTSUP if the memory has no such headers; -EPERM if this user may not trace the process; or
 * another negative errno of reading. */
int process__read_program(pid_t pid, struct process_program *out);

/* The allocator in a program's own file, and the instructions that lead to it. */
struct attach_calls {
	pid_t pid;
	struct process_program program;
	__u64 start, end;		   /* addresses of the program's code */
	struct inside_function *functions; /* of the allocator; stub number n leads to number n */
	size_t n_functions;		   /* 0: the program has no allocator */
	struct call_site *sites;
	size_t n_sites;
};

/* How many instructions and words were changed, and how many others had changed already. */
struct calls_changed {
	__u64 n, n_lost;
};

/* Finds the allocator in the program of process @pid, and what leads to it. The caller releases *@out, also if
 * there is none. Returns 0; -EEXIST, and the reason in *@why, if its calls cannot be redirected, or the program's
 * file cannot be read; or another negative errno. */
int attach_calls__find(struct parser *parser, pid_t pid, struct attach_calls *out,
		       const char **why);
void attach_calls__release(struct attach_calls *calls);

/* Finds room for @size bytes that the program's code can reach. Returns 0; -ENOSPC; or a negative errno. */
int attach_calls__find_room(const struct attach_calls *calls, __u64 size, __u64 *address);

/* Copies the list of functions to the process, and states it in @request. Returns 0 or a negative errno. */
int attach_calls__copy(const struct attach_calls *calls, struct remote *remote,
		       struct inside_request *request);

/* Returns 0 if all that leads to the functions can lead to the stubs at @stubs; -ENOSPC if they are too far
 * away; -EILSEQ if the code is not as in the file; -EFAULT; or -ESRCH. */
int attach_calls__check(const struct attach_calls *calls, __u64 stubs);

/* Has the program's calls lead to the stubs; all threads must be held. Returns 0 or a negative errno: the
 * process may be changed in part. Restoring changes only what does lead to stubs, as far as it can be read. */
int attach_calls__redirect(const struct attach_calls *calls, __u64 stubs,
			   struct calls_changed *out);
void attach_calls__restore(const struct attach_calls *calls, __u64 stubs,
			   struct calls_changed *out);

/* Finds the address of the dynamic linker's struct r_debug. Returns 0; -ENOTSUP if the program has
 * none; -EPERM if this user may not trace the process; or another negative errno of reading. */
int process__find_linker(pid_t pid, __u64 *linker);

/* Returns whether a child of the process has the same memory, as those of vfork(2) have and of clone(2) with CLONE_VM. */
bool process__shares_memory(pid_t pid);

/* Sets *@has_filters to whether the process has seccomp(2) filters. Returns -EACCES if its threads
 * have different ones, or are in strict mode. */
int process__find_filters(pid_t pid, bool *has_filters);

/* Returns whether this thread of the process has seccomp(2) filters, or that cannot be read. */
bool process__has_filters(pid_t pid, pid_t tid);

#endif
