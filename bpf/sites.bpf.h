/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Probed sites, filled by user space. */
#ifndef ALLOCPROF_SITES_BPF_H
#define ALLOCPROF_SITES_BPF_H

#include "abi.h"
#include "kernel.h"

struct sites_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AP_MAX_SITES);
	__type(key, __u32);
	__type(value, struct ap_site);
};

extern struct sites_map sites SEC(".maps");

/* Return addresses of calls in the allocator's own code, found by disassembly. */
struct internal_returns_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ap_internal_return);
	__type(value, __u8);
};

extern struct internal_returns_map internal_returns SEC(".maps");

#endif
