// SPDX-License-Identifier: GPL-3.0-or-later
#include "counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "cleanup.h"

int counters__init(struct counters *counters)
{
	int n_cpus = libbpf_num_possible_cpus();

	*counters = (struct counters){ .n_cpus = n_cpus };
	return n_cpus < 0 ? n_cpus : 0;
}

/* Whether a test makes this reading fail. */
static bool is_refused(struct counters *counters)
{
	if (!counters->refused)
		return false;
	counters->refused--;
	return true;
}

/* Sums of bytes saturate, as they do on each CPU. Differences are modulo 2^64. */
static void add(__u64 *sum, __u64 value)
{
	bool saturates = *sum <= AP_MAX_SUM && value <= AP_MAX_SUM && value > AP_MAX_SUM - *sum;

	*sum = saturates ? AP_MAX_SUM : *sum + value;
}

void counters__sum(struct counters *counters, int fd, const void *key, __u64 *sums, size_t n)
{
	_cleanup_(free_ptr) __u64 *values = calloc(counters->n_cpus, n * sizeof(*values));

	memset(sums, 0, n * sizeof(*sums));
	if (!values || is_refused(counters) || bpf_map_lookup_elem(fd, key, values)) {
		counters->unread++;
		return;
	}
	for (int cpu = 0; cpu < counters->n_cpus; cpu++)
		for (size_t i = 0; i < n; i++)
			add(&sums[i], values[cpu * n + i]);
}

__u64 counters__recursion_misses(struct counters *counters, const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	/* The program is not loaded. */
	if (bpf_program__fd(program) < 0)
		return 0;
	if (!is_refused(counters) &&
	    !bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return info.recursion_misses;
	counters->unread++;
	return 0;
}
