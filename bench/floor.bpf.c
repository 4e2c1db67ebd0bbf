// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a probe costs when its program does nothing. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Filled as those of allocprof are, read by nobody. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AP_MAX_SITES);
	__type(key, __u32);
	__type(value, struct ap_site);
} sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ap_internal_return);
	__type(value, __u8);
} internal_returns SEC(".maps");

SEC("uprobe")
int do_nothing(void *ctx)
{
	return 0;
}

/* At an entry with its return: 0 has the return probed. */
SEC("uprobe")
int do_nothing_twice(void *ctx)
{
	return 0;
}
