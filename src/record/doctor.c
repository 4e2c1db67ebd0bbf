// SPDX-License-Identifier: GPL-3.0-or-later
#include "doctor.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "parser.h"
#include "preload_engine.h"
#include "probes.h"
#include "profile.h"
#include "session_internal.h"
#include "table_cache.h"
#include "target.h"
#include "uprobe_engine.h"

void doctor__probe_kernel(struct kernel *kernel)
{
	kernel__probe(kernel, NULL);
}

int doctor__cache(char *path, size_t size, __u64 *size_bytes, struct error *error)
{
	struct table_cache *cache;
	int err = table_cache__open(&cache, error);

	if (err)
		return err;
	snprintf(path, size, "%s", table_cache__path(cache));
	*size_bytes = table_cache__size_bytes(cache);
	table_cache__close(cache);
	return 0;
}

int doctor__find_preload(struct error *error)
{
	return preload_engine__find_library(error);
}

int doctor__load_programs(bool stacks, bool live, __u32 *instructions, struct error *error)
{
	struct session_options options = {
		.stacks = stacks,
		.live = live,
		/* stat and check use regions; check records with --live. */
		.regions = !stacks || live,
		.follow = true,
		.max_depth = AP_MAX_DEPTH,
		.stack_dump_bytes = AP_MAX_STACK_DUMP,
	};
	const struct target target = { 0 };
	const struct engine_options engine_options = {
		.session = &options,
		.profile = profile__new(),
		.target = &target,
	};
	struct memory_group group;
	struct engine *engine;
	int err = -ENOMEM;

	session__take_shares(&options, &group);
	/* Those that were loaded before may count yet. */
	options.free_bytes = UINT64_MAX;
	if (engine_options.profile)
		err = uprobe_engine.open(&engine_options, &engine, error);
	if (!err) {
		*instructions = uprobe_engine__verified_instructions(engine);
		uprobe_engine.close(engine);
	}
	profile__free(engine_options.profile);
	return err;
}

const char *doctor__engine(int err)
{
	if (!err)
		return uprobe_engine.name;
	return session__lacks_uprobes(err) && !preload_engine__find_library(NULL)
		       ? preload_engine.name
		       : NULL;
}

struct doctor {
	struct probes *probes;
	struct parser *parser;
};

static int find(struct probes *probes, char *const argv[], pid_t pid, struct error *error)
{
	int err;

	if (pid)
		return probes__add_process(probes, pid, error);
	err = probes__add_command(probes, argv, error);
	if (err == -EACCES && strchr(argv[0], '/'))
		err = probes__add_library(probes, argv[0], error);
	return err;
}

int doctor__find(char *const argv[], pid_t pid, struct doctor **out, struct error *error)
{
	/* Without a program, nothing is probed. */
	struct probes_options options = { .functions = AP_ALL_FUNCTIONS };
	struct doctor *doctor = calloc(1, sizeof(*doctor));
	int err;

	if (!doctor)
		return -ENOMEM;
	err = parser__new(&doctor->parser, error);
	options.parser = doctor->parser;
	if (!err)
		err = probes__new(&options, &doctor->probes);
	if (!err)
		err = find(doctor->probes, argv, pid, error);
	if (err) {
		doctor__free(doctor);
		return err;
	}
	*out = doctor;
	return 0;
}

bool doctor__file(const struct doctor *doctor, size_t index, struct probed_file *out)
{
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(doctor->probes, &n);
	if (index >= n)
		return false;
	*out = probed_allocator__file(&list[index]);
	return true;
}

void doctor__free(struct doctor *doctor)
{
	if (!doctor)
		return;
	probes__free(doctor->probes);
	parser__free(doctor->parser);
	free(doctor);
}
