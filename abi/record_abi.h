/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of the ring buffer. */
#ifndef ALLOCPROF_RECORD_ABI_H
#define ALLOCPROF_RECORD_ABI_H

#include "abi.h"

/* Each record starts with its type. */
enum ap_record_type {
	AP_RECORD_PROCESS,
	AP_RECORD_MODULE,
	AP_RECORD_STACK,
	AP_RECORD_COUNT,
	AP_RECORD_DRAIN, /* counters are running full; only the type */
	AP_RECORD_DUMP,
	AP_RECORD_GROW,	    /* records or tables are running full; only the type */
	AP_RECORD_LIFETIME, /* one block whose epochs found no room in the map */
	AP_RECORD_UNPROBED,
};

enum ap_process_event {
	AP_PROCESS_SEEDED, /* attached to while it ran */
	AP_PROCESS_FORKED,
	AP_PROCESS_EXECED,
	AP_PROCESS_EXITED, /* its last thread has left user space for good */
};

struct ap_process_record {
	__u32 type;
	__u32 event;	 /* enum ap_process_event */
	__u32 id;	 /* process image id, from 1; an exec makes a new one */
	__u32 parent;	 /* image that forked or exec'ed this one, 0 for the first */
	__u32 pid;	 /* in the PID namespace of allocprof */
	__u32 by_thread; /* EXECED: 1 where a thread other than the leader did it, else 0 */
	__u64 time_ns;	 /* CLOCK_MONOTONIC */
	char comm[AP_COMM_LEN];
	/* With live, else 0. */
	__u64 generation;  /* EXITED, EXECED: of the peak, when the image that ended did so */
	__u32 space;	   /* of the image; EXITED: that it had */
	__u32 ended_space; /* EXITED, EXECED: number of the space that nobody uses now, or 0 */
};

/* First sight of a mapped file. Identity is (device, inode, generation); the vDSO's are 0. */
struct ap_module_record {
	__u32 type;
	__u32 id;     /* module id, from 1 */
	__u32 pid;    /* a process that has it mapped, in the PID namespace of allocprof */
	__u32 device; /* kernel's dev_t: major << 20 | minor */
	__u64 inode;
	__u64 start, end; /* of the mapping in that process */
	__u64 offset;	  /* in the file, of start */
	__u32 generation; /* of the inode number */
	__u32 version;	  /* differs where a file of the same identity was written to in between */
	__u64 time_ns;	  /* CLOCK_MONOTONIC, of when it was seen */
};

/* Followed by @n_frames struct ap_frame, the allocator's caller first. */
struct ap_stack_record {
	__u32 type;
	__u32 n_frames;
	__u64 stack;   /* hash */
	__u32 process; /* image that showed it first, to resolve frames without a module */
	__u32 end;     /* enum ap_stack_end */
};

/* Registers of a hit, as DWARF numbers them on x86-64 (System V ABI, figure 3.36): 16 is the return
 * address column, here the hit's own pc. */
#define AP_DUMP_REGISTERS 17

/* One call whose stack the tables could not unwind; followed by @n_bytes from registers[SP] on. */
struct ap_dump_record {
	__u32 type;
	__u32 end;		 /* enum ap_stack_end: why */
	struct ap_count_key key; /* its stack is 0, with live a number that the record has too */
	__u64 size_bytes;
	__u64 time_ns; /* CLOCK_MONOTONIC: the mappings of that time are to be asked */
	__u64 registers[AP_DUMP_REGISTERS];
	__u32 n_bytes;
	__u32 weight; /* calls that it stands for; 1 without sampling */
	__u32 is_in_caller; /* 1: the registers are those behind the call, 0: in the function that was hit */
	__u32 pad;	    /* 0 */
};

/* One call whose counter found no room in the map. */
struct ap_count_record {
	__u32 type;
	__u32 weight; /* calls that it stands for; 1 without sampling */
	struct ap_count_key key;
	__u64 size_bytes;
};

/* One block that ended. */
struct ap_lifetime_record {
	__u32 type;
	__u32 weight; /* blocks that it stands for; 1 without sampling */
	struct ap_lifetime_key key;
	__u64 size_bytes;
};

/* A program that took memory from the kernel although it hit no probe: nobody knows its allocator. */
struct ap_unprobed_record {
	__u32 type;
	__u32 pid;	  /* in the PID namespace of allocprof */
	__u64 size_bytes; /* of private, writable memory, without what the program began with */
	char comm[AP_COMM_LEN];
};

#endif
