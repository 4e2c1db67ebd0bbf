/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stands in for libbpf's headers where the BPF programs are compiled for the host (tests/twin): maps
 * are memory, user memory is what the test recorded.
 */
#ifndef ALLOCPROF_TWIN_BPF_HELPERS_H
#define ALLOCPROF_TWIN_BPF_HELPERS_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The programs are C for clang's BPF target: its pragmas mean nothing here. */
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunknown-attributes"
#pragma clang diagnostic ignored "-Wignored-attributes"
#endif

#define SEC(name)
#define __uint(name, val)  int(*name)[val]
#define __type(name, val)  __typeof__(val) *name
#define __array(name, val) __typeof__(val) *name[]

#undef __always_inline
#define __always_inline inline __attribute__((always_inline, unused))
#undef __noinline
#define __noinline __attribute__((noinline, unused))
#define __weak	   __attribute__((weak))
#define __ksym
#define barrier()	 __asm__ volatile("" : : : "memory")
#define barrier_var(var) __asm__ volatile("" : "+r"(var))

struct task_struct;
struct vm_area_struct;
struct pt_regs;

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
long bpf_map_push_elem(void *map, const void *value, __u64 flags);
long bpf_map_pop_elem(void *map, void *value);
long bpf_tail_call(void *context, void *programs, __u32 index);
long bpf_probe_read_user(void *to, __u32 size, const void *from);
long bpf_copy_from_user(void *to, __u32 size, const void *from);
long bpf_probe_read_kernel(void *to, __u32 size, const void *from);
struct task_struct *bpf_get_current_task_btf(void);
long bpf_task_pt_regs(struct task_struct *task);
__u64 bpf_get_current_pid_tgid(void);
long bpf_current_task_under_cgroup(void *map, __u32 index);
long bpf_get_current_comm(void *buffer, __u32 size);
__u64 bpf_get_attach_cookie(void *context);
__u64 bpf_get_func_ip(void *context);
__u64 bpf_ktime_get_ns(void);
__u32 bpf_get_prandom_u32(void);
void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags);
void bpf_ringbuf_submit(void *record, __u64 flags);
long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags);
__u64 bpf_ringbuf_query(void *ring, __u64 flags);

/* Macros, as the callbacks have types of their own; some come through a void pointer. */
#define bpf_loop(n, callback, context, flags)                                                      \
	({                                                                                         \
		long (*loop_callback)(__u32, void *) = (void *)(callback);                         \
		__u32 loop_n = (n), loop_i = 0;                                                    \
                                                                                                   \
		while (loop_i < loop_n && !loop_callback(loop_i++, context))                       \
			;                                                                          \
		(long)loop_i;                                                                      \
	})

long twin_find_vma(__u64 address, struct vm_area_struct **vma);

#define bpf_find_vma(task, address, callback, context, flags)                                      \
	({                                                                                         \
		struct vm_area_struct *found_vma;                                                  \
		long find_err = twin_find_vma(address, &found_vma);                                \
                                                                                                   \
		if (!find_err)                                                                     \
			callback(task, found_vma, context);                                        \
		find_err;                                                                          \
	})

#endif
