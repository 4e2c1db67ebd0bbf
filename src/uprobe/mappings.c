// SPDX-License-Identifier: GPL-3.0-or-later
#include "mappings.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The skeleton has its types. */
#include "event_abi.h"

#include "abi.h"
#include "allocator.h"
#include "allocprof.skel.h"
#include "counters.h"
#include "error.h"
#include "interface.h"

void mappings__choose(struct allocprof_bpf *skeleton, bool wanted, bool stacks)
{
	bpf_program__set_autoload(skeleton->progs.mapping_begin, wanted);
	bpf_program__set_autoload(skeleton->progs.mapping_count, wanted && !stacks);
	bpf_program__set_autoload(skeleton->progs.mapping_record, wanted && stacks);
}

static struct bpf_program *end_program(const struct allocprof_bpf *skeleton)
{
	return skeleton->rodata->config.stacks ? skeleton->progs.mapping_record
					       : skeleton->progs.mapping_count;
}

static int attach(const struct bpf_program *program, struct bpf_link **link, struct error *error)
{
	*link = bpf_program__attach_trace(program);
	if (*link)
		return 0;
	return error__set(error, -errno, "cannot trace system calls (%s): %s",
			  bpf_program__name(program), strerror(errno));
}

/* The exit program first, so that every system call whose entry is seen is also seen to end. */
int mappings__attach(struct allocprof_bpf *skeleton, struct error *error)
{
	int err = attach(end_program(skeleton), &skeleton->links.mapping_record, error);

	if (err)
		return err;
	return attach(skeleton->progs.mapping_begin, &skeleton->links.mapping_begin, error);
}

void mappings__detach(struct allocprof_bpf *skeleton)
{
	bpf_link__destroy(skeleton->links.mapping_begin);
	bpf_link__destroy(skeleton->links.mapping_record);
	skeleton->links.mapping_begin = skeleton->links.mapping_record = NULL;
}

struct allocator *mappings__allocator(void)
{
	static const struct interface_function interfaces[AP_MAPPING_FUNCTIONS] = {
		{ .name = "mmap", .function = AP_MMAP, .size = 2 },
		{ .name = "mremap", .function = AP_MREMAP, .pointer = 1, .size = 3 },
		{ .name = "brk", .function = AP_BRK, .pointer = 1 },
		{ .name = "munmap", .function = AP_MUNMAP, .pointer = 1 },
	};
	struct allocator *allocator = calloc(1, sizeof(*allocator));

	if (!allocator)
		return NULL;
	allocator->path = strdup(MAPPINGS_PATH);
	allocator->sites = calloc(AP_MAPPING_FUNCTIONS, sizeof(*allocator->sites));
	if (!allocator->path || !allocator->sites) {
		allocator__free(allocator);
		return NULL;
	}
	for (int i = 0; i < AP_MAPPING_FUNCTIONS; i++)
		allocator->sites[allocator->n_sites++] = (struct site){
			.function = AP_MMAP + i,
			.names = 1ULL << (AP_MMAP + i),
			.interface = &interfaces[i],
			.returns = RETURNS_PROBED,
		};
	return allocator;
}

__u64 mappings__recursion_misses(const struct allocprof_bpf *skeleton, struct counters *counters)
{
	return counters__recursion_misses(counters, skeleton->progs.mapping_begin) +
	       counters__recursion_misses(counters, end_program(skeleton));
}
