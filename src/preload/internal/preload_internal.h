/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PRELOAD_INTERNAL_H
#define ALLOCPROF_PRELOAD_INTERNAL_H

#include <sys/types.h>

#include "hash_table.h"
#include "preload.h"

struct preload {
	char directory[INSIDE_PATH_BYTES];
	char *library;
	/* Read and written by pread(2) and pwrite(2): a process that cuts the file off would end us through
	 * a mapping. */
	int memory_fd, tables_fd;
	/* The first INSIDE_SLICES_AT bytes of the tables, whose words threads wait for; only the kernel looks there. */
	void *awaited;
	int directory_fd;
	bool is_command_awaited; /* it had not begun at the last reading */
	bool has_within;
	struct ap_config sampling; /* as in the settings, which processes could change */
	bool is_tight;		   /* as in the header */
	enum inside_mode mode;
	/* Sums over threads of ended processes, whose memory was given back; only the functions, stats,
	 * regions and n_threads. */
	struct preload_results retired;
	__u64 retired_ns;    /* when that was last looked for */
	__u64 pid_namespace; /* allocprof's own */
	pid_t attached_pid; /* process that was attached to, which may know itself by another number; 0: none */
	int wake_fd; /* of the FIFO, which is never at its end */
	/* Files that were met: how many, and which of them preload__take_modules() has had. */
	bool *taken;
	size_t n_modules, modules_room;
	/* Programs that the library cannot be preloaded into, by index: whether the process was answered, and how. */
	__u8 *answers; /* enum inside_answer */
	size_t n_answers, answers_room;
};

/* preload_directory.c: makes the directory, which is locked as long as its descriptor is open. */
int preload__make_directory(struct preload *preload, struct error *error);
void preload__remove_directory(const struct preload *preload);
/* Bytes that this user may still write to the file system of @fd; UINT64_MAX where there is no limit or none is
 * known. */
__u64 preload__room_bytes(int fd);

/* The files of the shared memory are these from now on, which are empty, and which @preload closes. *@memory_fd and *@tables_fd, -1
 * where there are no tables, become -1. 0 or a negative errno. */
int preload__move(struct preload *preload, int *memory_fd, int *tables_fd);

/* Threads may wait as long again: allocprof does something. 0 or a negative errno. */
int preload__extend_waits(const struct preload *preload);

/* Wakes those that wait for a word of shared memory, which may lie beyond the end of its file. */
void preload__wake_waiting(const void *word);

/* The programs of one process. */
struct pid_program {
	__u64 pid_namespace; /* inode of that of @pid; 0 if it is not known */
	__u32 pid;
	int last;	/* index of the last one */
	int not_exited; /* likewise, if it did not say that it exits; else -1 */
};

/* Processes by their number. An empty one is zeroed but for @seed, which hash_seed() makes. */
struct pid_programs {
	__u64 seed;
	struct hash_table index;
	struct pid_program *list;
	size_t n, room;
};

/* NULL if no program was in the process. */
const struct pid_program *pid_programs__find(const struct pid_programs *programs,
					     __u64 pid_namespace, __u32 pid);
/* -ENOMEM. */
int pid_programs__add(struct pid_programs *programs, __u64 pid_namespace, __u32 pid, int program,
		      bool has_exited);
void pid_programs__release(struct pid_programs *programs);

/* Reads shared memory, and checks it. */
struct reader {
	int fd;
	__u64 end;  /* of what processes have taken */
	__u64 left; /* bytes that may still be read: tables of nonsense may overlap */
	__u64 read_bytes;
	struct inside_header header;
	/* Programs of which there can be one at the most: as many as were taken and have chunks. Indices are below. */
	__u32 n_programs;
	const struct ap_config *sampling;
	__u64 n_unfinished, n_damaged; /* as in struct preload_results */
	__u64 n_without_chunk;	       /* of the unfinished ones */
	/* What else the functions fill in; each uses its own. */
	struct preload_results *results;
	size_t programs_room, refused_room;
	struct pid_programs pids;
	void *context;
};

/* Reads the header, in which there are no more records than the file has room for. -EIO if that fails. */
int reader__begin(struct reader *reader, const struct preload *preload);

/* Processes may have taken more since then. -EIO if that cannot be read. */
int reader__look_again(struct reader *reader);

/* False where the offset is not in what was taken, or the file is shorter; counts it as damaged. */
bool reader__get(struct reader *reader, __u64 offset, void *out, size_t size);

/* The first offset from @offset on where something was written, at the most @end. */
__u64 reader__next_data(struct reader *reader, __u64 offset, __u64 end);

/* Takes an element of an array: 0 or another result, which ends the reading. */
typedef int (*reader_take_t)(struct reader *reader, __u32 index, const void *element);

/* Calls @take with the array's elements from @first on, as many as there is room for. */
int reader__each(struct reader *reader, const struct inside_array *array, __u32 first, size_t size,
		 reader_take_t take);

/* Fills @out from an element of the array of programs that the library cannot be preloaded into; false if it cannot be right. */
bool refused__read(const struct inside_refused *refused, size_t n_programs,
		   struct preload_refused *out);

/* A struct inside_thread by its offset in the array of threads; false if it is none. */
bool reader__get_thread(struct reader *reader, __u64 offset, struct inside_thread *thread);

/* Calls @take with the entries, of @size bytes, of a thread's table that is at @published. */
int reader__each_entry(struct reader *reader, const struct inside_thread *thread, __u64 published,
		       size_t size,
		       int (*take)(struct reader *reader, const struct inside_thread *thread,
				   const void *entry));

/* Adds what the thread has counted. */
void preload_results__add_thread(struct preload_results *results,
				 const struct inside_thread *thread);

/* Adds what the thread has counted by region. -ENOMEM. */
int preload_results__add_regions(struct preload_results *results, struct reader *reader,
				 const struct inside_thread *thread);
/* @results, a copy of others, gets regions of its own. -ENOMEM. */
int preload_results__copy_regions(struct preload_results *results);

/* Saturates at AP_MAX_SUM. */
__u64 reader__add(__u64 sum, __u64 n);

#endif
