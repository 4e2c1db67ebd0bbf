/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of the ring buffer. */
#ifndef ALLOCPROF_RECORD_ABI_H
#define ALLOCPROF_RECORD_ABI_H

#include "abi.h"
#include "processor_abi.h"

/* The type of a record, which is the first member of each. */
enum ap_record_type {
	AP_RECORD_PROCESS,
	AP_RECORD_MODULE,
	AP_RECORD_STACK,
	AP_RECORD_COUNT,
	AP_RECORD_DRAIN, /* the counter map is filling up; such a record has only its type */
	AP_RECORD_DUMP,
	AP_RECORD_GROW,	    /* records or tables are filling up; such a record has only its type */
	AP_RECORD_LIFETIME, /* one ended block for which the lifetimes map had no room */
	AP_RECORD_UNPROBED,
	AP_RECORD_PROGRAM,
	AP_RECORD_EVENT, /* event_abi.h */
	AP_RECORD_KEY,
	AP_RECORD_SPACE,
	AP_RECORD_MAPPING,
	AP_RECORD_PYTHON,
	AP_RECORD_CODE, /* python_abi.h */
};

enum ap_process_event {
	AP_PROCESS_SEEDED, /* already running when it was first followed */
	AP_PROCESS_FORKED,
	AP_PROCESS_EXECED,
	AP_PROCESS_EXITED, /* no thread of it will return to user space */
};

struct ap_process_record {
	__u32 type;
	__u32 event;	 /* enum ap_process_event */
	__u32 id;	 /* program id, from 1; an exec begins a new program */
	__u32 parent;	 /* program that forked or exec'ed this one; 0 for the first */
	__u32 pid;	 /* in the PID namespace of allocprof */
	__u32 by_thread; /* EXECED: 1 if a thread other than the leader called exec, else 0 */
	__u64 time_ns;	 /* CLOCK_MONOTONIC */
	char comm[AP_COMM_LEN];
	/* The fields below are 0 without --live. */
	__u64 generation; /* EXITED, EXECED: generation of the peak when the program ended */
	__u32 space;	  /* number of the program's address space; EXITED: the one that it had */
	/* EXITED, EXECED: number of the address space that now has no users, or 0. */
	__u32 ended_space;
};

/* Only with --live: no process uses an address space any more. The record is sent if the process
 * for which the space was made had exited before, and the last process that shared the space has
 * executed a program. */
struct ap_space_record {
	__u32 type;
	__u32 space;	  /* number of the address space */
	__u64 time_ns;	  /* CLOCK_MONOTONIC */
	__u64 generation; /* generation of the peak at its end */
};

/* A mapped file that is met for the first time. It is identified by (device, inode, generation,
 * version); all are 0 for the vDSO. */
struct ap_module_record {
	__u32 type;
	__u32 id;     /* module id, from 1 */
	__u32 pid;    /* a process that has it mapped, in the PID namespace of allocprof */
	__u32 device; /* kernel's dev_t: major << 20 | minor */
	__u64 inode;
	__u64 start, end; /* addresses of the mapping in that process */
	__u64 offset;	  /* file offset of @start */
	__u32 generation; /* generation of the inode number */
	__u32 version;	  /* hash of the contents' modification time and of the generation */
	__u64 time_ns;	  /* CLOCK_MONOTONIC */
};

/* A stack. @n_frames struct ap_frame follow, innermost first, without the allocator's own. */
struct ap_stack_record {
	__u32 type;
	__u32 n_frames;
	__u64 stack; /* hash */
	/* Program that sent it first, which is needed to resolve frames without a module. */
	__u32 process;
	__u32 end; /* enum ap_stack_end */
};

/* Names and line of a frame of Python, in UTF-8. @n_name bytes with the qualified name of the function and @n_file with
 * the path of its file, as the interpreter has it, follow. */
struct ap_python_record {
	__u32 type;
	__u32 line; /* 0: unknown */
	__u64 id;   /* a hash of all that is said here, below 2^63; not 0 */
	__u16 n_name, n_file;
	__u32 pad; /* 0 */
};

/* Most bytes of a name and of a path; the rest is cut off. */
#define AP_PYTHON_NAME_BYTES 255
#define AP_PYTHON_FILE_BYTES 511

/* User-stack snapshot of a call whose stack the tables could not unwind. @n_bytes of stack from
 * registers[SP] on follow. */
struct ap_dump_record {
	__u32 type;
	__u32 end; /* enum ap_stack_end: why the tables did not suffice */
	/* key.stack is 0 or, with --live and AP_FUNCTION_DUMPED, the number of the snapshot. */
	struct ap_count_key key;
	__u64 size_bytes;
	__u64 time_ns; /* CLOCK_MONOTONIC; user space uses the mappings of that time */
	__u64 registers[AP_DUMP_REGISTERS];
	__u32 n_bytes;
	__u32 weight; /* calls that this one stands for; 1 without sampling */
	/* 1: registers are the caller's after the call; 0: they are those at the probed function's
	 * entry. */
	__u32 is_in_caller;
	__u32 pad; /* 0 */
};

/* A call for which the map of counters had no room. */
struct ap_count_record {
	__u32 type;
	__u32 weight; /* number of calls that this one stands for; 1 without sampling */
	struct ap_count_key key;
	__u64 size_bytes;
};

/* A block that ended and for which the lifetimes map had no room. */
struct ap_lifetime_record {
	__u32 type;
	__u32 weight; /* number of blocks that this one stands for; 1 without sampling */
	struct ap_lifetime_key key;
	__u64 size_bytes;
};

/* A process that took memory from the kernel without hitting a probe: its allocator is unknown. */
struct ap_unprobed_record {
	__u32 type;
	__u32 pid;	  /* in the PID namespace of allocprof */
	__u64 size_bytes; /* private writable memory that it has mapped since its exec */
	char comm[AP_COMM_LEN];
};

/* A record says by one of these what a system call did to a process's mappings. */
enum ap_mapping_change {
	AP_MAPPING_FAILED,   /* nothing; sent only for a call that is counted */
	AP_MAPPING_MAPPED,   /* mapped [address, address + size_bytes) */
	AP_MAPPING_UNMAPPED, /* unmapped [address, address + size_bytes) */
	AP_MAPPING_MOVED,    /* moved [old_address, old_address + old_bytes), or changed its size */
	AP_MAPPING_PROTECTED, /* changed the protection */
	AP_MAPPING_ADVISED,   /* gave pages back that stay mapped */
};

/* Only with --live: a system call that changed mappings, or a counted one that failed. Ranges are
 * in whole pages. */
struct ap_mapping_record {
	__u32 type;
	__u8 change;   /* enum ap_mapping_change */
	__u8 function; /* enum ap_function of a counted call */
	/* 1: the mapping has no file: what MAPPED has mapped, or MOVED has moved. */
	__u8 is_anonymous;
	__u8 is_stack;	/* MAPPED: 1 with MAP_STACK or MAP_GROWSDOWN */
	__u8 keeps_old; /* MOVED: 1: the old range stays mapped */
	/* 1: the call failed; with UNMAPPED it is an mremap that unmapped the new place before. */
	__u8 failed;
	__u8 pad[2];	  /* 0 */
	__u32 protection; /* MAPPED, PROTECTED: PROT_ of mman.h */
	/* Index of the record that counts the call; AP_NO_RECORD: it is not counted, and what it
	 * maps is not followed. */
	__u32 record;
	__u32 space;  /* number of the address space */
	__u32 thread; /* id of the thread, the same in all namespaces */
	__u32 pad2;   /* 0 */
	/* CLOCK_MONOTONIC at the entry of the system call, 0 if that was not seen or does not
	 * matter, and at its end. */
	__u64 begin_ns, end_ns;
	__u64 address, size_bytes;
	__u64 old_address, old_bytes; /* MOVED */
};

/* Another engine counts the calls of the process from now on (INSIDE_BEGINS). */
struct ap_program_record {
	__u32 type;
	__u32 id;      /* id of the program, as in struct ap_process_record */
	__u32 program; /* the other engine's number of the program */
	__u32 pad;     /* 0 */
};

#endif
