/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PRELOAD_INTERNAL_H
#define ALLOCPROF_PRELOAD_INTERNAL_H

#include "preload.h"

struct preload {
	char directory[INSIDE_PATH_BYTES];
	char *library;
	/* Read and written by pread(2) and pwrite(2): a process that cuts the file off would end us through
	 * a mapping. */
	int memory_fd, tables_fd;
	int directory_fd;
	int wake_fd; /* of the FIFO, which is never at its end */
	/* Files that were met: how many, and which of them preload__take_modules() has had. */
	bool *taken;
	size_t n_modules, modules_room;
};

/* Reads shared memory, and checks it. */
struct reader {
	int fd;
	__u64 end;  /* of what processes have taken */
	__u64 left; /* bytes that may still be read: tables of nonsense may overlap */
	struct inside_header header;
	__u64 n_unfinished, n_damaged; /* as in struct preload_results */
	/* What else the functions fill in; each uses its own. */
	struct preload_results *results;
	size_t images_room, refused_room;
	void *context;
};

/* Reads the header. -EIO if that fails. */
int reader__begin(struct reader *reader, const struct preload *preload);

/* False where the place is not in what was taken, or the file is shorter; counts it as damaged. */
bool reader__get(struct reader *reader, __u64 place, void *out, size_t size);

/* The first place from @place on where something was written, at the most @end. */
__u64 reader__next_data(struct reader *reader, __u64 place, __u64 end);

/* Takes an element of an array: 0 or another result, which ends the reading. */
typedef int (*reader_take_t)(struct reader *reader, __u32 index, const void *element);

/* Calls @take with the array's elements from @first on, as many as there is room for. */
int reader__each(struct reader *reader, const struct inside_array *array, __u32 first, size_t size,
		 reader_take_t take);

/* A struct inside_thread by its place in the array of threads; false if it is none. */
bool reader__get_thread(struct reader *reader, __u64 place, struct inside_thread *thread);

/* Calls @take with the entries, of @size bytes, of a thread's table that is at @published. */
int reader__each_entry(struct reader *reader, const struct inside_thread *thread, __u64 published,
		       size_t size,
		       int (*take)(struct reader *reader, const struct inside_thread *thread,
				   const void *entry));

/* pwrite(2) of all. 0 or a negative errno. */
int write_all(int fd, const void *data, size_t size, __u64 offset);

#endif
