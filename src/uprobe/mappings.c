// SPDX-License-Identifier: GPL-3.0-or-later
#include "mappings.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Must come before the skeleton, which uses its types. */
#include "event_abi.h"

#include "abi.h"
#include "allocator.h"
#include "allocprof.skel.h"
#include "array.h"
#include "bpf_maps.h"
#include "error.h"
#include "interface.h"
#include "tracepoints.h"

/* The programs at the entry of system calls, or at their exit: the one that perf calls where it
 * can be attached, and the other one. */
struct pair {
	struct bpf_program *by_perf, *other;
	struct bpf_link **link;
};

static struct pair begin_programs(struct allocprof_bpf *skeleton)
{
	return (struct pair){ skeleton->progs.perf_mapping_begin, skeleton->progs.mapping_begin,
			      &skeleton->links.mapping_begin };
}

static struct pair end_programs(struct allocprof_bpf *skeleton)
{
	if (skeleton->rodata->config.live)
		return (struct pair){ skeleton->progs.perf_mapping_follow,
				      skeleton->progs.mapping_follow,
				      &skeleton->links.mapping_follow };
	if (skeleton->rodata->config.stacks)
		return (struct pair){ skeleton->progs.perf_mapping_record,
				      skeleton->progs.mapping_record,
				      &skeleton->links.mapping_record };
	return (struct pair){ skeleton->progs.perf_mapping_count, skeleton->progs.mapping_count,
			      &skeleton->links.mapping_count };
}

void mappings__choose(struct allocprof_bpf *skeleton, bool wanted, bool preempts)
{
	const struct pair pairs[] = { begin_programs(skeleton), end_programs(skeleton) };
	const struct bpf_program *chosen[] = { pairs[0].other, pairs[1].other, pairs[0].by_perf,
					       pairs[1].by_perf };
	struct bpf_program *all[] = {
		skeleton->progs.mapping_begin,	     skeleton->progs.mapping_count,
		skeleton->progs.mapping_record,	     skeleton->progs.mapping_follow,
		skeleton->progs.perf_mapping_begin,  skeleton->progs.perf_mapping_count,
		skeleton->progs.perf_mapping_record, skeleton->progs.perf_mapping_follow,
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		bool is_chosen = all[i] == chosen[0] || all[i] == chosen[1] ||
				 (preempts && (all[i] == chosen[2] || all[i] == chosen[3]));

		bpf_program__set_autoload(all[i], wanted && is_chosen);
	}
}

static int attach(const struct pair *pair, struct error *error)
{
	if (bpf_program__autoload(pair->by_perf))
		*pair->link = tracepoints__attach_by_perf(pair->by_perf);
	if (!*pair->link)
		*pair->link = bpf_program__attach_trace(pair->other);
	if (*pair->link)
		return 0;
	return error__set(error, -errno, "cannot trace system calls (%s): %s",
			  bpf_program__name(pair->other), strerror(errno));
}

/* Attaches the exit program first, so that the end of every system call whose entry was seen is
 * seen, too. */
int mappings__attach(struct allocprof_bpf *skeleton, struct error *error)
{
	struct pair begin = begin_programs(skeleton), end = end_programs(skeleton);
	int err = attach(&end, error);

	return err ? err : attach(&begin, error);
}

static void detach(struct bpf_link **link)
{
	bpf_link__destroy(*link);
	*link = NULL;
}

void mappings__detach(struct allocprof_bpf *skeleton)
{
	detach(begin_programs(skeleton).link);
	detach(end_programs(skeleton).link);
}

struct allocator *kernel_allocator__new(enum ap_function first,
					const struct interface_function *interfaces, size_t n)
{
	struct allocator *allocator = calloc(1, sizeof(*allocator));

	if (!allocator)
		return NULL;
	allocator->path = strdup(KERNEL_PATH);
	allocator->sites = calloc(n, sizeof(*allocator->sites));
	if (!allocator->path || !allocator->sites) {
		allocator__free(allocator);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		allocator->sites[allocator->n_sites++] = (struct site){
			.function = first + i,
			.names = 1ULL << (first + i),
			.interface = &interfaces[i],
			.returns = RETURNS_PROBED,
		};
	return allocator;
}

struct allocator *mappings__allocator(void)
{
	static const struct interface_function interfaces[AP_MAPPING_FUNCTIONS] = {
		{ .name = "mmap", .function = AP_MMAP, .size = 2 },
		{ .name = "mremap", .function = AP_MREMAP, .pointer = 1, .size = 3 },
		{ .name = "brk", .function = AP_BRK, .pointer = 1 },
		{ .name = "munmap", .function = AP_MUNMAP, .pointer = 1 },
	};

	return kernel_allocator__new(AP_MMAP, interfaces, AP_MAPPING_FUNCTIONS);
}

/* Returns the misses of both programs, of which the one that is not attached has none. */
static __u64 misses_of(const struct pair *pair, struct counters *counters)
{
	return counters__recursion_misses(counters, pair->by_perf) +
	       counters__recursion_misses(counters, pair->other);
}

__u64 mappings__recursion_misses(struct allocprof_bpf *skeleton, struct counters *counters)
{
	struct pair begin = begin_programs(skeleton), end = end_programs(skeleton);

	return misses_of(&begin, counters) + misses_of(&end, counters);
}
