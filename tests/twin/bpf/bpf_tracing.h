/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stands in for libbpf's header; see bpf_helpers.h. */
#ifndef ALLOCPROF_TWIN_BPF_TRACING_H
#define ALLOCPROF_TWIN_BPF_TRACING_H

/* on_exit() is one of the C library's. */
#define BPF_PROG(name, ...) twin_##name(__VA_ARGS__)

#endif
