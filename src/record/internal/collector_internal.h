/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a collector is made of, for the files that implement it. */
#ifndef ALLOCPROF_COLLECTOR_INTERNAL_H
#define ALLOCPROF_COLLECTOR_INTERNAL_H

#include <time.h>

#include "record_abi.h"
#include "collector.h"
#include "file_identity.h"
#include "hash_table.h"

struct code_mapping;

/* What the kernel calls image, module and stack, and the profile's ids for the same. */
struct image {
	__u32 pid;
	__u32 process; /* profile id, 0: nothing known */
};

struct module {
	/* All that it goes by, as far as it was asked; what it was first met by is the first. */
	struct file_identity identities[FILE_IDENTITIES + 2];
	size_t n_identities;
	__u32 version; /* as the kernel side has it; 0 where only user space has met the file */
	__u32 id;      /* profile id, 0 until a frame is in it */
	int fd;	       /* of the file; -1: it could not be opened */
	struct timespec modified; /* when it was opened */
	char *path;
	struct elf_file *elf;		/* NULL where it could not be read */
	const struct ap_within *within; /* code that calls are to be within, or NULL */
	size_t table;			/* number of its table */
};

struct known_stack {
	__u64 hash;
	__u32 id; /* profile id */
};

/* Where records of dumps count: by the number of the dump. */
struct dumped_stack {
	__u32 stack; /* profile id, 0: not known */
};

struct ended_process {
	__u32 pid;
	__u64 time_ns;
};

/* The last process with that pid that was followed. */
struct follower {
	__u32 pid;
	__u64 end_ns; /* 0 while it goes on */
};

struct pending_dump {
	struct pending_dump *next;
	__u64 record[]; /* struct ap_dump_record and the bytes of stack */
};

struct collector {
	struct collector_options options;
	struct profile *profile;
	struct process_maps *maps;
	struct image *images; /* by kernel id - 1 */
	size_t n_images, images_capacity;
	struct follower *followers;
	size_t n_followers, followers_capacity;
	struct hash_table follower_index; /* pid -> index in followers + 1 */
	struct module *modules;
	size_t n_modules;
	__u32 *module_by_kernel_id; /* index in modules + 1, by kernel id - 1; 0 unknown */
	size_t n_kernel_modules;
	struct known_stack *stacks;
	size_t n_stacks, stacks_capacity;
	struct hash_table stack_index;
	struct dumped_stack *dumped; /* by number - 1 */
	size_t n_dumped;
	struct table_loader *tables;
	struct dump_unwinder *unwinder;
	struct jit_names *jit_names;
	struct pending_dump *dumps, **dumps_end;
	__u64 mappings_known_ns;     /* what was mapped before then has been read */
	__u64 settled_ns;	     /* when the dumps that had come by then had been unwound */
	struct ended_process *ended; /* their maps may go when the dumps have been unwound */
	size_t n_ended, ended_capacity;
	int current; /* of the two counter maps */
	bool wants_drain;
	__u64 attributed;	       /* calls */
	__u64 found_within, undecided; /* of the calls of dumps */
};

/* Reads the mapping events of what was there at @time_ns, so that nothing is resolved by what was at its
 * place before. */
void collector__know_mappings(struct collector *collector, __u64 time_ns);

/* Room for the image that the kernel calls @id; @id comes from a 32-bit counter, so it is bounded by
 * what was forked. */
struct image *collector__get_image(struct collector *collector, __u32 id);

int collector__handle_process(struct collector *collector, const struct ap_process_record *record);

int collector__key_thread(struct collector *collector, const struct ap_count_key *key,
			  __u32 *thread);

/* The profile has only those modules that frames are in. */
int collector__module_id(struct collector *collector, struct module *module, __u32 *id);

int collector__handle_module(struct collector *collector, const struct ap_module_record *record);

int collector__mapped_module(struct collector *collector, const struct code_mapping *mapping,
			     __u32 pid, size_t *index);

/* For the dump unwinder. */
int collector__find_file(const struct code_mapping *mapping, __u32 pid, __u64 *bias, void *context);

/* Adds @sum to the profile's count @id of that thread, stack and function. */
int collector__add_calls(struct collector *collector, __u32 thread, __u32 stack, __u32 function,
			 const struct ap_count *sum, __u32 *id);

struct ap_count collector__count_one(const struct collector *collector, __u32 weight,
				     __u64 size_bytes);

/* Put off until the ring buffer has been read: a new file's record must not wait behind the very
 * dumps that the programs send for want of its table. The ring buffer's size bounds them. */
int collector__put_off(struct collector *collector, const struct ap_dump_record *dump, size_t size);

int collector__handle_stack(struct collector *collector, const struct ap_stack_record *record);

/* The profile's stack for the key's, 0 where it is not known. */
__u32 collector__key_stack(struct collector *collector, const struct ap_count_key *key);

#endif
