/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stands in for libbpf's header; see bpf_helpers.h. */
#ifndef ALLOCPROF_TWIN_BPF_CORE_READ_H
#define ALLOCPROF_TWIN_BPF_CORE_READ_H

#define TWIN_READ_2(a, b)	      ((a)->b)
#define TWIN_READ_3(a, b, c)	      ((a)->b->c)
#define TWIN_READ(_1, _2, _3, n, ...) n
#define BPF_CORE_READ(...)	      TWIN_READ(__VA_ARGS__, TWIN_READ_3, TWIN_READ_2)(__VA_ARGS__)

#define bpf_core_read(to, size, from)                                                              \
	({                                                                                         \
		memcpy(to, from, size);                                                            \
		0;                                                                                 \
	})
#define bpf_core_field_offset(type, field) offsetof(type, field)
#define bpf_core_type_size(type)	   sizeof(type)
/* What older and newer kernels have instead. */
#define bpf_core_field_exists(field) 0

#endif
