/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Programs of type tracing are loaded with the id of what they are attached to, which libbpf looks up by reading and
 * copying all types of the kernel: 5 MB, 4 KiB at a time. Here struct kernel_types, which has them already, is asked.
 * Such programs are attached by bpf_program__attach_trace() or bpf_program__attach_iter().
 */
#ifndef ALLOCPROF_TRACING_H
#define ALLOCPROF_TRACING_H

struct kernel_types;

/* Makes libbpf ask for ids in objects that this process opens from now on. 0 or a negative errno. */
int tracing__take_over(void);

/* The ids of objects that this thread loads from now on are looked up in @types, which is borrowed until the next call;
 * with NULL tracing programs are not loaded. */
void tracing__use(const struct kernel_types *types);

#endif
