/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PRELOAD_INTERNAL_H
#define ALLOCPROF_PRELOAD_INTERNAL_H

#include <sys/types.h>

#include "hash_table.h"
#include "preload.h"

struct preload {
	char directory[INSIDE_PATH_BYTES];
	char *library;
	/* The files are accessed by pread(2) and pwrite(2) only: if they were mapped, a process
	 * that truncates one could crash allocprof. */
	int memory_fd, tables_fd;
	/* A mapping of the first INSIDE_SLICES_AT bytes of the tables, whose words threads wait
	 * for. Only the kernel accesses it. */
	void *awaited;
	int directory_fd;
	bool is_command_awaited; /* at the last reading the command had not begun */
	bool has_within;
	struct ap_config sampling; /* a copy of the settings, which processes could change */
	bool is_tight;		   /* a copy of the header's */
	enum inside_mode mode;
	__u64 functions; /* mask of the functions that processes count */
	/* Sums over threads of ended processes, whose memory was released. Only functions, counted, stats,
	 * regions and n_threads are used. */
	struct preload_results retired;
	__u64 retired_ns;    /* when ended processes were last looked for */
	__u64 pid_namespace; /* inode of allocprof's own PID namespace */
	/* The processes that were attached to, which may be in other PID namespaces. */
	struct attached_number {
		pid_t pid;	     /* in allocprof's namespace */
		__u32 own_pid;	     /* in the process's own */
		__u64 pid_namespace; /* inode of that; 0: it is not known */
	} * attached;
	size_t n_attached, attached_room;
	int wake_fd; /* the FIFO by which processes wake allocprof, held open for writing, too */
	/* How many files processes have met, and which of them preload__take_modules() has passed
	 * on. */
	bool *taken;
	size_t n_modules, modules_room;
	/* For each program that the library cannot be preloaded into, by index: whether and how
	 * the process was answered. */
	__u8 *answers; /* enum inside_answer */
	size_t n_answers, answers_room;
};

/* preload_directory.c: makes the directory of the measurement. It is locked as long as its
 * descriptor is open. */
int preload__make_directory(struct preload *preload, struct error *error);
void preload__remove_directory(const struct preload *preload);
/* Returns how many bytes this user may still write to the file system of @fd; UINT64_MAX if there
 * is no limit or it is not known. */
__u64 preload__room_bytes(int fd);

/* Moves the shared memory to these files, which must be empty and then belong to @preload.
 * *@memory_fd and *@tables_fd, which is -1 if there are no tables, are set to -1. Returns 0 or a
 * negative errno. */
int preload__move(struct preload *preload, int *memory_fd, int *tables_fd);

/* Notes a process that was attached to. Returns 0 or -ENOMEM. */
int preload__add_attached(struct preload *preload, pid_t pid);

/* Wakes the threads that wait for the word at @offset of the shared memory. Returns 0. */
int preload__wake_at(int fd, __u64 offset);
/* Returns the offset of an array's element; 0 if the array has no chunk for it. */
__u64 inside_array__offset(const struct inside_array *array, __u32 index, size_t size);

/* The programs that were in one process. */
struct pid_program {
	/* Inode of the PID namespace in which @pid is valid; 0 if it is not known. */
	__u64 pid_namespace;
	__u32 pid;
	int last; /* index of the last program */
	/* Index of the last program if it has not reported that it exits; else -1. */
	int not_exited;
};

/* A table of processes by number. An empty one is zeroed except for @seed, which hash_seed()
 * makes. */
struct pid_programs {
	__u64 seed;
	struct hash_table index;
	struct pid_program *list;
	size_t n, room;
};

/* The state of a reader of the processes' shared memory, who checks all of it. */
struct reader {
	int fd;
	__u64 end;  /* end of the part of the file that processes have taken */
	__u64 left; /* bytes that may still be read: damaged tables could overlap */
	__u64 read_bytes;
	struct inside_header header;
	/* Upper limit of the number of programs: those that were taken and have a chunk. All
	 * indices must be below. */
	__u32 n_programs;
	const struct ap_config *sampling;
	__u64 functions;	       /* as in struct preload */
	__u64 n_unfinished, n_damaged; /* as in struct preload_results */
	__u64 n_without_chunk;	       /* those of n_unfinished that have no chunk */
	/* Results that the functions fill in, each its own ones. */
	struct preload_results *results;
	size_t programs_room, refused_room;
	struct pid_programs pids;
	void *context;
};

/* Reads the header, and limits its numbers of elements to what the file has room for. Returns -EIO
 * if that fails. */
int reader__begin(struct reader *reader, const struct preload *preload);

/* Reads again how much processes have taken. Returns -EIO if that fails. */
int reader__look_again(struct reader *reader);

/* Reads @size bytes at @offset. Returns false, and counts the offset as damaged, if it is not in
 * the part that was taken, or the file is shorter. */
bool reader__get(struct reader *reader, __u64 offset, void *out, size_t size);

/* Returns whether processes count calls of the function. */
static inline bool reader__has_function(const struct reader *reader, __u32 function)
{
	return function < AP_FUNCTIONS && reader->functions >> function & 1;
}

/* Returns the first offset at or after @offset at which the file has data, at most @end. */
__u64 reader__next_data(struct reader *reader, __u64 offset, __u64 end);

/* Takes an element of an array. Returns 0, or another result, which ends the reading. */
typedef int (*reader_take_t)(struct reader *reader, __u32 index, const void *element);

/* Calls @take with the array's elements from number @first on, as many as there is room for. */
int reader__each(struct reader *reader, const struct inside_array *array, __u32 first, size_t size,
		 reader_take_t take);

/* Fills @out from an element of the array of refused programs. Returns false if the element cannot
 * be right. */
bool refused__read(const struct inside_refused *refused, size_t n_programs,
		   struct preload_refused *out);

/* Reads the struct inside_thread to which element @offset of the array of threads refers. Returns
 * false if there is none. */
bool reader__get_thread(struct reader *reader, __u64 offset, struct inside_thread *thread);

/* Calls @take with the entries, each of @size bytes, of a thread's table that is at @published. */
int reader__each_entry(struct reader *reader, const struct inside_thread *thread, __u64 published,
		       size_t size,
		       int (*take)(struct reader *reader, const struct inside_thread *thread,
				   const void *entry));

/* Adds the thread's counters to @results. */
void preload_results__add_thread(struct preload_results *results, struct reader *reader,
				 const struct inside_thread *thread);

/* Adds the thread's counters by region to @results. Fails with -ENOMEM. */
int preload_results__add_regions(struct preload_results *results, struct reader *reader,
				 const struct inside_thread *thread);

/* Returns sum + n, which saturates at AP_MAX_SUM. */
__u64 reader__add(__u64 sum, __u64 n);

#endif
