// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a probe costs when its program does nothing. */
#include "kernel.h"
#include "sites.bpf.h"

/* Filled as for allocprof, read by nobody. */
DEFINE_MAP(sites);
DEFINE_MAP(internal_returns);

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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
