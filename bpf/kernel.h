/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types and fields that the programs read. CO-RE relocates them at load, so the build
 * needs no vmlinux.h, and one build runs on every kernel with BTF. Also has macros that declare
 * maps, and kernel_stack__use().
 */
#ifndef ALLOCPROF_KERNEL_H
#define ALLOCPROF_KERNEL_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define __maybe_unused __attribute__((unused))

#ifndef NULL
#define NULL ((void *)0)
#endif

/* A map that several objects use, of the type struct NAME_map: declared in a header, and defined in shared_maps.bpf.c. */
#define DECLARE_MAP(name, map_type, n, flags, key_type, value_type)                                \
	struct name##_map {                                                                        \
		__uint(type, BPF_MAP_TYPE_##map_type);                                             \
		__uint(max_entries, n);                                                            \
		__uint(map_flags, flags);                                                          \
		__type(key, key_type);                                                             \
		__type(value, value_type);                                                         \
	};                                                                                         \
	extern struct name##_map name SEC(".maps")

/* An array of @n maps of the type @inner. */
#define DECLARE_MAPS(name, n, inner)                                                               \
	struct name##_map {                                                                        \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                          \
		__uint(max_entries, n);                                                            \
		__type(key, __u32);                                                                \
		__array(values, inner);                                                            \
	};                                                                                         \
	extern struct name##_map name SEC(".maps")

#define DEFINE_MAP(name) struct name##_map name SEC(".maps")

/* Reads a value that other CPUs and user space change concurrently. */
#define LOAD(value) (*(volatile __typeof__(value) *)&(value))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct signal_struct {
	atomic_t live;
};

typedef struct {
	unsigned int val;
} kuid_t;

typedef struct {
	unsigned int val;
} kgid_t;

/* A set of 64 bits, whose type has another name before Linux 6.3. */
typedef struct {
	__u64 val;
} kernel_cap_t;

struct user_namespace {
	kuid_t owner;
};

struct cred {
	kuid_t uid, suid, euid;
	kgid_t gid, sgid, egid;
	kernel_cap_t cap_permitted;
	struct user_namespace *user_ns;
};

typedef struct {
	void *vdso;
} mm_context_t;

struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	mm_context_t context;
	unsigned long exec_vm;
	unsigned long data_vm;
	unsigned long start_brk, brk;
	unsigned long task_size;
	struct uprobes_state uprobes_state;
};

struct mm_struct___5_17 {
	unsigned long flags;
};

typedef struct {
	unsigned long __mm_flags[1];
} mm_flags_t;

struct mm_struct___6_18 {
	mm_flags_t flags;
};

/* Incremented at each write lock of mmap_lock. */
struct mm_struct___6_4 {
	int mm_lock_seq;
};

typedef struct seqcount {
	unsigned int sequence;
} seqcount_t;

struct mm_struct___6_13 {
	seqcount_t mm_lock_seq;
};

struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct list_head {
	struct list_head *next, *prev;
};

struct task_struct {
	int pid;
	int tgid;
	struct list_head children;
	struct list_head sibling;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct pid *thread_pid;
	const struct cred *real_cred;
	struct uprobe_task *utask;
	unsigned long long start_boottime;
	unsigned long long self_exec_id;
	unsigned long min_flt, maj_flt;
	unsigned long sas_ss_sp;
	unsigned long sas_ss_size;
	char comm[16];
};

struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
};

struct timespec64 {
	long long tv_sec;
	long tv_nsec;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	unsigned int i_flags;
	unsigned int i_nlink;
	unsigned int i_generation;
	struct timespec64 i_mtime;
};

/* Linux 6.7 renamed i_mtime, and 6.11 split it. */
struct inode___6_7 {
	struct timespec64 __i_mtime;
};

struct inode___6_11 {
	long long i_mtime_sec;
	unsigned int i_mtime_nsec;
};

struct file {
	struct inode *f_inode;
};

struct userfaultfd_ctx;

struct vm_userfaultfd_ctx {
	struct userfaultfd_ctx *ctx;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
	struct vm_userfaultfd_ctx vm_userfaultfd_ctx;
};

struct linux_binprm;

struct trace_event_raw_sched_process_fork {
	int child_pid;
};

struct trace_event_raw_sched_process_exec {
	int old_pid;
};

struct trace_event_raw_sys_enter {
	long id;
};

struct trace_event_raw_sys_exit {
	long ret;
};

struct bpf_iter_meta;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#define VM_EXEC 0x4

/* The lowest bits of mm->flags, and their value if other processes of the same user may trace the
 * process; linux/sched/coredump.h. */
#define MMF_DUMPABLE_MASK 3
#define SUID_DUMP_USER	  1

/* Inodes that only the kernel itself opens; linux/fs.h. */
#define S_PRIVATE 512

/* The functions below tell what kind of mapping a VMA is. */

/* linux/magic.h */
#define HUGETLBFS_MAGIC 0x958458f6

/* Anonymous shared memory and huge pages are backed by the kernel's own files. */
static __always_inline bool vma__is_anonymous(const struct vm_area_struct *vma)
{
	const struct file *file = vma->vm_file;

	if (!file)
		return true;
	return file->f_inode->i_flags & S_PRIVATE ||
	       (file->f_inode->i_sb->s_magic == HUGETLBFS_MAGIC && !file->f_inode->i_nlink);
}

/* Returns whether a process handles the page faults of the mapping by userfaultfd(2). */
static __always_inline bool vma__has_handler(const struct vm_area_struct *vma)
{
	return bpf_core_field_exists(vma->vm_userfaultfd_ctx.ctx) && vma->vm_userfaultfd_ctx.ctx;
}

/*
 * Since Linux 6.13 functions of a BPF program that need 64 bytes of stack or more get it in memory
 * that the program has once per processor: the kernel assumes that no program of this type is
 * preempted by another run of itself. Where the kernel is preemptible, a program at a uprobe is:
 * then two threads write to the same stack, hits are lost or walks go wrong, and overwritten
 * pointers have made the kernel fault.
 */

/*
 * Each program at a uprobe begins with this. A program that contains a tail call has its stack on
 * the thread's kernel stack, as in older kernels: the verifier looks for tail calls before it
 * removes code that is never executed, like this call.
 */
static __always_inline void kernel_stack__use(void *ctx)
{
	__u64 never = 0;

	barrier_var(never);
	if (never)
		bpf_tail_call(ctx, NULL, 0);
}

#endif
