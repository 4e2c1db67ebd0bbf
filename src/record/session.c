// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocprof.skel.h"
#include "array.h"
#include "cleanup.h"
#include "collector.h"
#include "cpython.h"
#include "error.h"
#include "live.h"
#include "probes.h"
#include "regions.h"
#include "ring_reader.h"
#include "sources.h"
#include "table_cache.h"
#include "unwind_maps.h"

static int handle_record(void *context, void *record, size_t size)
{
	struct session *session = context;
	int err = collector__handle_record(session->collector, record, size);

	count_maps__handle_record(&session->counts, record, size);

	if (!err)
		err = session__handle_unprobed(session, record, size);
	return err || !session->live ? err : live__handle_record(session->live, record, size);
}

/* Only these programs are attached by their section names; links of uprobe programs are created
 * elsewhere. */
static int attach_tracepoints(struct session *session, struct error *error)
{
	struct allocprof_bpf *skeleton = session->skeleton;
	struct {
		struct bpf_program *program;
		struct bpf_link **link;
	} tracepoints[] = {
		{ skeleton->progs.on_fork, &skeleton->links.on_fork },
		{ skeleton->progs.on_exec, &skeleton->links.on_exec },
		{ skeleton->progs.on_exit, &skeleton->links.on_exit },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tracepoints); i++) {
		*tracepoints[i].link = bpf_program__attach(tracepoints[i].program);
		if (!*tracepoints[i].link)
			return error__set(error, -errno, "cannot follow processes (%s): %s",
					  bpf_program__name(tracepoints[i].program),
					  strerror(errno));
	}
	/* Without on_map() the programs detect changes of mappings themselves. */
	if (bpf_program__autoload(skeleton->progs.on_map))
		skeleton->links.on_map = bpf_program__attach(skeleton->progs.on_map);
	skeleton->bss->on_map_is_attached = skeleton->links.on_map != NULL;
	return session__attach_unprobed(session, error);
}

/* bpf_find_vma() fails with -EBUSY while another thread of allocprof maps memory. */
#define ASK_TRIES 100

int session__identify_file(const void *address, struct file_identity *identity, void *context)
{
	const struct session *session = context;
	struct identify_file_args {
		__u64 address, inode;
		__u32 device, generation;
	} args = { .address = (__u64)(uintptr_t)address };
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &args, .ctx_size_in = sizeof(args));
	int fd = bpf_program__fd(session->skeleton->progs.identify_file);

	for (int i = 0; i < ASK_TRIES; i++) {
		int err = bpf_prog_test_run_opts(fd, &options);

		if (err)
			return err;
		if (options.retval)
			continue;
		*identity = (struct file_identity){ args.inode, args.device, args.generation };
		return 0;
	}
	return -EBUSY;
}

static int open_live(struct session *session)
{
	struct allocprof_bpf *skeleton = session->skeleton;
	const struct session_options *options = &session->options;
	struct live_options live_options = {
		.tables_fd = bpf_map__fd(skeleton->maps.live_tables),
		.threads_fd = bpf_map__fd(skeleton->maps.threads),
		.stats_fd = bpf_map__fd(skeleton->maps.stats),
		.counters = session->counters,
		.lifetimes_fd = bpf_map__fd(skeleton->maps.lifetimes),
		.lifetimes_fds = { bpf_map__fd(skeleton->maps.lifetimes_a),
				   bpf_map__fd(skeleton->maps.lifetimes_b) },
		.lifetimes_inserted = &skeleton->bss->lifetimes_inserted,
		.drain_at = skeleton->rodata->config.drain_at,
		.shared = &skeleton->bss->live,
		.max_blocks = options->max_live,
		.interval_ns = options->interval_ns,
		.records = {
			.records_fd = bpf_map__fd(skeleton->maps.records),
			.histograms_fd = bpf_map__fd(skeleton->maps.histograms),
			.free_records_fd = bpf_map__fd(skeleton->maps.free_records),
			.free_histograms_fd = bpf_map__fd(skeleton->maps.free_histograms),
			.index_tables_fd = bpf_map__fd(skeleton->maps.index_tables),
			.shared = &skeleton->bss->live,
			.max_records = options->stacks ? session_options__max_records(options)
						       : AP_FUNCTIONS,
			.sample = options->sample_bytes,
			.sample_unit_shift = skeleton->rodata->config.sample_unit_shift,
			.stacks = options->stacks,
		},
	};

	return live__new(&live_options, &session->live);
}

int session__open(const struct session_options *options, struct session **out, struct error *error)
{
	struct collector_options collector_options;
	struct unwind_maps_fds maps;
	struct session *session = calloc(1, sizeof(*session));
	int err;

	if (!session)
		return -ENOMEM;
	session->options = *options;
	session->target.pidfd = session->target.go_fd = session->target.exec_fd = -1;
	session->candidates_end = &session->candidates;
	session->counters = calloc(1, sizeof(*session->counters));
	if (!session->counters || counters__init(session->counters)) {
		err = -ENOMEM;
		goto fail;
	}
	session->counters->refused = options->limits.unread;
	kernel__probe(&session->kernel);
	err = kernel__require(&session->kernel, error);
	session->multi = !options->limits.no_multi && session->kernel.uprobe_multi &&
			 (options->follow || session->kernel.uprobe_multi_pid);
	session->sessions =
		session->multi && !options->limits.no_sessions && session->kernel.uprobe_session;
	if (!err)
		err = session__load_programs(session, error);
	if (!err)
		err = attach_tracepoints(session, error);
	if (!err)
		err = mapping_events__open(&session->mapping_events, error);
	if (err)
		goto fail;
	maps = (struct unwind_maps_fds){
		.chunks = bpf_map__fd(session->skeleton->maps.unwind_chunks),
		.tables = bpf_map__fd(session->skeleton->maps.unwind_tables),
		.slices = bpf_map__fd(session->skeleton->maps.unwind_slices),
		.rules = bpf_map__fd(session->skeleton->maps.unwind_rules),
	};
	collector_options = (struct collector_options){
		.tables = { .awaited = &session->skeleton->bss->waits.module },
		.max_depth = options->max_depth,
		.sample = options->sample_bytes,
		.sample_unit_shift = session->skeleton->rodata->config.sample_unit_shift,
		.refresh_mappings = session__refresh_mappings,
		.within = options->window.within ? session__code_within : NULL,
		.set_within = session__set_within,
		.context = session,
		.identifier = { session__identify_file, session },
	};
	session->counts = (struct count_maps){
		.current_fd = bpf_map__fd(session->skeleton->maps.counts),
		.fds = { bpf_map__fd(session->skeleton->maps.counts_a),
			 bpf_map__fd(session->skeleton->maps.counts_b) },
		.inserted = &session->skeleton->bss->counts_inserted,
		.drain_at = session->skeleton->rodata->config.drain_at,
	};
	collector_options.tables.tables = unwind_maps__new(&maps);
	/* Without the cache each recording compiles its own tables. */
	if (session_options__walk(options) && !options->no_cache)
		table_cache__open(&collector_options.tables.cache, NULL);
	session->collector = collector__new(&collector_options);
	session->cpython = cpython__new(&collector_options.identifier);
	if (!session->collector || !session->cpython) {
		err = -ENOMEM;
		goto fail;
	}
	if (options->sources)
		collector__profile(session->collector)->sources = options->sources->names;
	if (session_options__walk(options)) {
		err = collector__add_vdso(session->collector);
		if (err) {
			error__set(error, err, "cannot prepare for the vDSO: %s", strerror(-err));
			goto fail;
		}
	}
	if (options->live) {
		err = open_live(session);
		if (err) {
			error__set(error, err, "cannot make room for live memory: %s",
				   strerror(-err));
			goto fail;
		}
	}
	err = ring_reader__new(bpf_map__fd(session->skeleton->maps.ring), handle_record, session,
			       &session->ring);
	if (err) {
		error__set(error, err, "cannot map the ring buffer: %s", strerror(-err));
		goto fail;
	}
	*out = session;
	return 0;
fail:
	session__close(session);
	return err;
}

const struct kernel *session__kernel(const struct session *session)
{
	return &session->kernel;
}

__u64 session__sample_bytes(const struct session *session)
{
	return session->options.sample_bytes;
}

const struct window_options *session__window(const struct session *session)
{
	return &session->options.window;
}

struct collector *session__collector(const struct session *session)
{
	return session->collector;
}

__u64 session__start_realtime_ns(const struct session *session)
{
	return session->start_realtime_ns;
}

__u64 session__gate_realtime_ns(const struct session *session)
{
	return session->gate_realtime_ns;
}

pid_t session__target_pid(const struct session *session)
{
	return session->target.pid;
}

void session__close(struct session *session)
{
	if (!session)
		return;
	probes__free(session->probes);
	cpython__free(session->cpython);
	gate__free(session->gate);
	regions__free(session->regions);
	ring_reader__free(session->ring);
	mapping_events__close(session->mapping_events);
	collector__free(session->collector);
	live__free(session->live);
	free(session->counters);
	unprobed__release(&session->unprobed);
	allocprof_bpf__destroy(session->late);
	allocprof_bpf__destroy(session->skeleton);
	target__close(&session->target);
	free(session);
}
