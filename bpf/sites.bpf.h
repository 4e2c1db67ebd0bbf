/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps in which user space describes the probed instructions. */
#ifndef ALLOCPROF_SITES_BPF_H
#define ALLOCPROF_SITES_BPF_H

#include "abi.h"
#include "kernel.h"

DECLARE_MAP(sites, ARRAY, AP_MAX_SITES, 0, __u32, struct ap_site);

/* Return addresses of calls in the allocator's own code, found by disassembly. */
DECLARE_MAP(internal_returns, HASH, 65536, BPF_F_NO_PREALLOC, struct ap_internal_return, __u8);

#endif
