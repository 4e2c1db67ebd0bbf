/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of a collector. */
#ifndef ALLOCPROF_COLLECTOR_INTERNAL_H
#define ALLOCPROF_COLLECTOR_INTERNAL_H

#include <time.h>

#include "collector.h"
#include "hash_table.h"
#include "mapped_file.h"
#include "record_abi.h"

struct code_mapping;

/* Maps from the kernel side's numbers of programs, modules and stacks to the profile's ids. */
struct program {
	__u32 pid;
	__u32 process; /* profile id, 0: unknown */
};

struct module {
	/* All identities under which this file is known; the first is the one of its first hit or
	 * mapping. */
	struct file_identity identities[FILE_IDENTITIES + 2];
	size_t n_identities;
	__u32 version; /* as in ap_module_record; 0 if only user space has seen the file */
	__u32 id;      /* profile id, 0 until a frame is in it */
	int fd;	       /* descriptor of the file; -1: it could not be opened */
	struct timespec modified; /* mtime when it was opened */
	char *path;
	struct elf_headers *elf;	/* NULL: not readable as ELF */
	const struct ap_within *within; /* code of functions of --within, or NULL */
	struct collector_code loop;	/* as in collector_options.meet */
	size_t table;			/* index in the table loader */
	bool is_inside; /* the preloaded library, whose frames are left out of stacks */
};

struct known_stack {
	__u64 hash;
	__u32 id; /* profile id */
};

/* The stack of the profile that a stack dump was unwound to. */
struct dumped_stack {
	__u32 stack; /* profile id, 0: unknown */
};

struct ended_process {
	__u32 pid;
	__u64 time_ns;
};

/* A process that is or was followed. The index has the last one with a pid. */
struct follower {
	__u32 pid;
	/* Index of the earlier follower with this pid, counted as in the hash table; 0: none. */
	__u32 earlier;
	/* 0 for a process that was not forked by a followed one, and may have run before. */
	__u64 begin_ns;
	__u64 end_ns; /* 0 while it runs */
};

struct pending_dump {
	struct pending_dump *next;
	__u64 record[]; /* struct ap_dump_record and the stack's bytes */
};

struct collector {
	struct collector_options options;
	struct profile *profile;
	struct process_maps *maps;
	struct program *programs; /* indexed by the kernel side's program id - 1 */
	size_t n_programs, programs_capacity;
	struct follower *followers;
	size_t n_followers, followers_capacity;
	struct hash_table follower_index; /* pid -> index in followers + 1 */
	struct module *modules;
	size_t n_modules, modules_capacity;
	/* Indexed by the kernel side's module id - 1: index in modules + 1; 0: unknown. */
	__u32 *module_by_kernel_id;
	size_t n_kernel_modules;
	struct known_stack *stacks;
	size_t n_stacks, stacks_capacity;
	struct hash_table stack_index;
	struct dumped_stack *dumped; /* indexed by the number of the stack dump - 1 */
	size_t n_dumped;
	struct table_loader *tables;
	struct dump_unwinder *unwinder;
	struct jit_names *jit_names;
	__u32 python; /* profile id of the module that frames of Python are in; 0: none yet */
	struct pending_dump *dumps, **dumps_end;
	__u64 mappings_known_ns; /* CLOCK_MONOTONIC; all mapping events before it have been read */
	__u64 settled_ns;	 /* CLOCK_MONOTONIC of the last flush that left no stack dump */
	/* Processes whose mappings are forgotten when no stack dump is left. */
	struct ended_process *ended;
	size_t n_ended, ended_capacity;
	__u64 attributed; /* number of calls in the profile */
	/* Numbers of calls that were decided by unwinding a stack dump. */
	__u64 found_within, undecided;
};

/* Reads the mapping events up to @time_ns, so that addresses are resolved by the mappings of that
 * time. */
void collector__know_mappings(struct collector *collector, __u64 time_ns);

/* Returns the program with the kernel side's @id, which is added if it is new; NULL if there is no
 * memory. @id comes from a 32-bit counter, so the number of forks limits it. */
struct program *collector__get_program(struct collector *collector, __u32 id);

int collector__key_thread(struct collector *collector, const struct ap_count_key *key,
			  __u32 *thread);

/* Adds the module to the profile on its first frame. */
int collector__module_id(struct collector *collector, struct module *module, __u32 *id);

int collector__handle_module(struct collector *collector, const struct ap_module_record *record);

int collector__mapped_module(struct collector *collector, const struct code_mapping *mapping,
			     __u32 pid, size_t *index);

/* jit_names_options.each_mapped */
void collector__each_mapped(void *context, __u32 pid,
			    void (*visit)(void *to, const struct mapped_file *file), void *to);

/* A callback for the dump unwinder. */
int collector__find_file(const struct code_mapping *mapping, __u32 pid, __u64 *bias, void *context);

/* Adds @sum to the profile's count of this thread, stack and function, and sets *@id. */
int collector__add_calls(struct collector *collector, __u32 thread, __u32 stack, __u32 function,
			 const struct ap_count *sum, __u32 *id);

struct ap_count collector__count_one(const struct collector *collector, __u32 weight,
				     __u64 size_bytes);

/* Queues a stack dump until the ring buffer is empty: the record of a new file must not wait behind
 * the stack dumps that were sent because its table was missing. The size of the ring buffer bounds
 * the queue. */
int collector__queue_dump(struct collector *collector, const struct ap_dump_record *dump,
			  size_t size);

int collector__handle_stack(struct collector *collector, const struct ap_stack_record *record);

/* Adds a frame of Python to the profile; @id is as in struct ap_python_record, or 0. */
int collector__add_python_frame(struct collector *collector, __u64 id, __u32 *frame);

/* Handles the names of one. */
int collector__handle_python(struct collector *collector, const struct ap_python_record *record,
			     size_t size);

/* Returns the profile's stack id; 0 if the stack is unknown. */
__u32 collector__key_stack(struct collector *collector, const struct ap_count_key *key);

#endif
