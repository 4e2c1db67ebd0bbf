// SPDX-License-Identifier: GPL-3.0-or-later
/* Opens and closes the uprobe engine: its programs, collector and readers. */
#include "uprobe_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "allocprof.skel.h"
#include "array.h"
#include "bpf_maps.h"
#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "error.h"
#include "event_collector.h"
#include "faults.h"
#include "gate.h"
#include "kernel_types.h"
#include "live.h"
#include "memory_group.h"
#include "parser.h"
#include "probes.h"
#include "process_set.h"
#include "pythons.h"
#include "regions.h"
#include "ring_reader.h"
#include "runtimes.h"
#include "table_cache.h"
#include "tracepoints.h"
#include "uprobe_engine.h"

static int handle_record(void *context, void *record, size_t size)
{
	struct uprobe *uprobe = context;
	const void *translated = record;
	size_t translated_size = size;
	int err = uprobe->pythons
			  ? pythons__translate(uprobe->pythons, &translated, &translated_size)
			  : 0;

	if (!err)
		err = collector__handle_record(uprobe->collector, translated, translated_size);

	count_maps__handle_record(&uprobe->counts, record, size);

	if (!err)
		err = uprobe__handle_unprobed(uprobe, record, size);
	if (!err && uprobe->fallback)
		err = uprobe__handle_program(uprobe, record, size);
	if (!err && uprobe->live)
		err = live__handle_record(uprobe->live, record, size);
	if (!err && uprobe->events)
		event_collector__handle_record(uprobe->events, record, size);
	return err;
}

static int attach_tracepoints(struct uprobe *uprobe, struct error *error)
{
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	int err = tracepoints__attach(skeleton, error);

	if (err)
		return err;
	/* If on_map() is not attached, the programs detect changes of mappings themselves. */
	if (bpf_program__autoload(skeleton->progs.on_map))
		skeleton->links.on_map = bpf_program__attach_trace(skeleton->progs.on_map);
	skeleton->bss->on_map_is_attached = skeleton->links.on_map != NULL;
	return uprobe__attach_unprobed(uprobe, error);
}

int uprobe__iterate(const struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	_cleanup_(close_fd) int fd = -1;
	char none[64];
	ssize_t n;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	bpf_link__destroy(link);
	if (fd < 0)
		return fd;
	do
		n = read(fd, none, sizeof(none));
	while (n > 0);
	return n < 0 ? -errno : 0;
}

/* How long another thread of allocprof may hold the mmap_lock: it may have to wait for a CPU while
 * it does. */
#define LOOK_NS	      NS_PER_S
#define LOOK_AGAIN_US 50

int uprobe__look_at_own(const struct bpf_program *program, void *args, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = args, .ctx_size_in = size);
	__u64 until_ns = clock__now_ns() + LOOK_NS;

	for (;;) {
		int err = bpf_prog_test_run_opts(bpf_program__fd(program), &options);

		if (err)
			return err;
		if ((int)options.retval != -EBUSY || clock__now_ns() >= until_ns)
			return (int)options.retval;
		usleep(LOOK_AGAIN_US);
	}
}

int uprobe__identify_file(const void *address, struct file_identity *identity, void *context)
{
	const struct uprobe *uprobe = context;
	struct identify_file_args {
		__u64 address, inode;
		__u32 device, generation;
	} args = { .address = (__u64)(uintptr_t)address };
	int err = uprobe__look_at_own(uprobe->skeleton->progs.identify_file, &args, sizeof(args));

	if (!err)
		*identity = (struct file_identity){ args.inode, args.device, args.generation };
	return err;
}

static void log_unfinished(void *context, const struct ap_pending *pending, __u32 thread)
{
	const struct uprobe *uprobe = context;

	if (uprobe->events)
		event_collector__add_unfinished(uprobe->events, pending->record, thread,
						pending->size_bytes,
						uprobe->options.sample_bytes ? pending->weight : 1);
}

static int open_live(struct uprobe *uprobe)
{
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	const struct session_options *options = &uprobe->options;
	struct live_options live_options = {
		.tables_fd = bpf_map__fd(skeleton->maps.live_tables),
		.threads_fd = bpf_map__fd(skeleton->maps.threads),
		.stats_fd = bpf_map__fd(skeleton->maps.stats),
		.counters = uprobe->counters,
		.lifetimes_fd = bpf_map__fd(skeleton->maps.lifetimes),
		.lifetimes_fds = { bpf_map__fd(skeleton->maps.lifetimes_a),
				   bpf_map__fd(skeleton->maps.lifetimes_b) },
		.lifetimes_inserted = &skeleton->bss->lifetimes_inserted,
		.slots = uprobe->slots,
		.drain_at = skeleton->rodata->config.drain_at,
		.shared = &skeleton->bss->live,
		.target = &uprobe->target->ends_with,
		.max_blocks = options->max_live,
		.most_bytes = options->memory_bytes / SESSION_BLOCKS_SHARE,
		.resident = options->resident_memory,
		.reach = options->reach,
		.interval_ns = options->interval_ns,
		.sample_unit_shift = skeleton->rodata->config.sample_unit_shift,
		.on_unfinished = log_unfinished,
		.context = uprobe,
		.records = {
			.records_fd = bpf_map__fd(skeleton->maps.records),
			.histograms_fd = bpf_map__fd(skeleton->maps.histograms),
			.free_records_fd = bpf_map__fd(skeleton->maps.free_records),
			.free_histograms_fd = bpf_map__fd(skeleton->maps.free_histograms),
			.index_tables_fd = bpf_map__fd(skeleton->maps.index_tables),
			.shared = &skeleton->bss->live,
			.slots = uprobe->slots,
			.max_records = options->stacks ? uprobe__max_records(options)
						       : AP_FUNCTIONS,
			.sample = options->sample_bytes,
			.stacks = options->stacks,
		},
	};

	return live__new(&live_options, &uprobe->live);
}

static void close_uprobe(struct engine *engine)
{
	struct uprobe *uprobe = uprobe__of(engine);

	uprobe__free_fallback(uprobe);
	probes__free(uprobe->probes);
	parser__free(uprobe->parser);
	pythons__free(uprobe->pythons);
	runtimes__free(uprobe->runtimes);
	gate__free(uprobe->gate);
	faults__free(uprobe->faults);
	regions__free(uprobe->regions);
	ring_reader__free(uprobe->ring);
	mapping_events__close(uprobe->mapping_events);
	collector__free(uprobe->collector);
	live__free(uprobe->live);
	event_collector__free(uprobe->events);
	slots__free(uprobe->slots);
	free(uprobe->counters);
	unprobed__release(&uprobe->unprobed);
	uprobe__free_late(uprobe);
	allocprof_bpf__destroy(uprobe->skeleton);
	close_fd(&uprobe->types_fd);
	kernel_types__free(uprobe->kernel_types);
	free(uprobe);
}

/* Finds out what the kernel can do, and loads the programs that it can run. */
static int open_programs(struct uprobe *uprobe, struct error *error)
{
	const struct session_options *options = &uprobe->options;
	int err;

	kernel__probe(&uprobe->kernel, &uprobe->kernel_types);
	err = kernel__require(&uprobe->kernel, error);
	uprobe->multi = !options->limits.no_multi && uprobe->kernel.uprobe_multi &&
			(options->follow || uprobe->kernel.uprobe_multi_pid);
	uprobe->sessions =
		uprobe->multi && !options->limits.no_sessions && uprobe->kernel.uprobe_session;
	if (!err)
		err = uprobe__load_programs(uprobe, error);
	if (err)
		return err;
	uprobe->counts = (struct count_maps){
		.current_fd = bpf_map__fd(uprobe->skeleton->maps.counts),
		.fds = { bpf_map__fd(uprobe->skeleton->maps.counts_a),
			 bpf_map__fd(uprobe->skeleton->maps.counts_b) },
		.inserted = &uprobe->skeleton->bss->counts_inserted,
		.drain_at = uprobe->skeleton->rodata->config.drain_at,
	};
	err = uprobe__open_joined_group(uprobe, error) ?: attach_tracepoints(uprobe, error);
	return err ? err : mapping_events__open(&uprobe->mapping_events, error);
}

/* Opens the collector, which takes over @parser; @parser may be NULL. */
static int open_collector(struct uprobe *uprobe, struct parser *parser, struct error *error)
{
	const struct session_options *options = &uprobe->options;
	const struct unwind_maps_fds maps = {
		.chunks = bpf_map__fd(uprobe->skeleton->maps.unwind_chunks),
		.tables = bpf_map__fd(uprobe->skeleton->maps.unwind_tables),
		.slices = bpf_map__fd(uprobe->skeleton->maps.unwind_slices),
		.rules = bpf_map__fd(uprobe->skeleton->maps.unwind_rules),
	};
	struct collector_options collector_options = {
		.profile = uprobe->profile,
		.tables = {
			.awaited = &uprobe->skeleton->bss->waits.module,
			.tables = unwind_maps__new(&maps),
			.parser = parser,
		},
		.max_depth = options->max_depth,
		.reads_groups = true,
		.reads_arguments = !options->omits_arguments,
		.joined_group = options->joins ? options->joins->group : NULL,
		.sample = options->sample_bytes,
		.sample_unit_shift = uprobe->skeleton->rodata->config.sample_unit_shift,
		.refresh_mappings = uprobe__refresh_mappings,
		.within = options->window.within ? uprobe__code_within : NULL,
		.set_within = uprobe__set_within,
		.meet = uprobe__meet_module,
		.original = options->isolates ? uprobe__original : NULL,
		.context = uprobe,
		.identifier = { uprobe__identify_file, uprobe },
	};
	int err;

	/* If the cache cannot be opened, each recording compiles its own tables. */
	if (session_options__walk(options) && !options->no_cache)
		table_cache__open(&collector_options.tables.cache, NULL);
	uprobe->collector = collector__new(&collector_options);
	uprobe->runtimes = runtimes__new(&collector_options.identifier, uprobe->parser);
	if (!uprobe->collector || !uprobe->runtimes)
		return -ENOMEM;
	if (!session_options__walk(options))
		return 0;
	uprobe->pythons = pythons__new(bpf_map__fd(uprobe->skeleton->maps.pythons), uprobe->parser,
				       options->max_depth);
	if (!uprobe->pythons)
		return -ENOMEM;
	err = collector__add_vdso(uprobe->collector);
	return err ? error__set(error, err, "cannot prepare for the vDSO: %s", strerror(-err)) : 0;
}

/* Opens what only some options need, and the ring buffer. */
static int open_readers(struct uprobe *uprobe, struct error *error)
{
	const struct session_options *options = &uprobe->options;
	int err = options->live ? open_live(uprobe) : 0;

	if (err)
		return error__set(error, err, "cannot make room for live memory: %s",
				  strerror(-err));
	if (options->events_path)
		err = event_collector__new(options->events_path, options->events_choice,
					   uprobe->collector, &uprobe->events, error);
	if (err)
		return err;
	err = ring_reader__new(bpf_map__fd(uprobe->skeleton->maps.ring), options->memory_bytes,
			       handle_record, uprobe, &uprobe->ring);
	return err ? error__set(error, err, "cannot map the ring buffer: %s", strerror(-err)) : 0;
}

/* The largest memory that a recording of `sleep 2` used in a control group of its own, on Linux
 * 6.18 with two processors, for programs, maps, workers and pages of files; and how much each
 * further processor adds. */
#define PROGRAMS_BYTES	    (72ULL << 20)
#define LIVE_PROGRAMS_BYTES (85ULL << 20)
#define PROCESSOR_BYTES	    (23ULL << 20) / 10

/* Checks that the control group has room: if it runs out of memory, the kernel kills one of its
 * processes, which may be the target. */
static int check_memory(const struct session_options *options, struct error *error)
{
	__u64 needed = options->live ? LIVE_PROGRAMS_BYTES : PROGRAMS_BYTES;
	int further = get_nprocs_conf() - 2;
	struct memory_group group;

	if (further > 0)
		needed += further * PROCESSOR_BYTES;
	if (options->events_path)
		needed += EVENTS_RING_BYTES;
	if (!options->stacks || options->free_bytes > needed)
		return 0;
	/* The kernel frees the maps of an earlier run only after a while. */
	for (int i = 0; i < MEMORY_TRIES; i++) {
		usleep(MEMORY_WAIT_US);
		if (!memory_group__read(getpid(), &group) || group.free_bytes > needed)
			return 0;
	}
	return error__set(
		error, -ENOMEM,
		"probes and their tables take some %llu MiB, and the control group that allocprof "
		"runs in has %llu MiB left below its limit of memory: the kernel would kill a "
		"process of it; run allocprof outside of the group (-p PID)%s",
		needed >> 20, options->free_bytes >> 20,
		options->launches ? ", or with --engine=preload, which takes some 5 MiB" : "");
}

static int open_uprobe(const struct engine_options *engine_options, struct engine **out,
		       struct error *error)
{
	const struct session_options *options = engine_options->session;
	struct parser *parser = NULL;
	struct uprobe *uprobe;
	int err = check_memory(options, error);

	if (err)
		return err;
	uprobe = calloc(1, sizeof(*uprobe));
	if (!uprobe)
		return -ENOMEM;
	uprobe->engine.operations = &uprobe_engine;
	uprobe->options = *options;
	uprobe->types_fd = -1;
	uprobe->target = engine_options->target;
	uprobe->candidates_end = &uprobe->candidates;
	uprobe->counters = calloc(1, sizeof(*uprobe->counters));
	uprobe->slots = slots__new();
	if (!uprobe->counters || !uprobe->slots || counters__init(uprobe->counters) ||
	    (engine_options->is_fallback && uprobe__new_fallback(uprobe))) {
		err = -ENOMEM;
		goto fail;
	}
	uprobe->counters->refused = options->limits.unread;
	/* The parsers are started before there are programs and threads. */
	err = parser__new(&uprobe->parser, error);
	if (!err && session_options__walk(options))
		err = parser__new(&parser, error);
	if (!err)
		err = open_programs(uprobe, error);
	if (err)
		goto fail;
	uprobe->profile = engine_options->profile;
	err = open_collector(uprobe, parser, error);
	parser = NULL;
	if (!err)
		err = open_readers(uprobe, error);
	if (err)
		goto fail;
	*out = &uprobe->engine;
	return 0;
fail:
	parser__free(parser);
	close_uprobe(&uprobe->engine);
	return err;
}

__u32 uprobe_engine__verified_instructions(const struct engine *engine)
{
	const struct uprobe *uprobe = uprobe__of(engine);
	const struct bpf_program *program = uprobe->live && uprobe->sessions
						    ? uprobe->skeleton->progs.live_session
						    : uprobe__entry_program(uprobe);
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return 0;
	return info.verified_insns;
}

static int add_modules(const struct engine *engine, struct symbols *symbols, bool files)
{
	return collector__add_modules(uprobe__of(engine)->collector, symbols, files);
}

static int name_frames(struct engine *engine)
{
	return collector__name_jit_frames(uprobe__of(engine)->collector);
}

static void list_without_table(const struct engine *engine, FILE *to)
{
	collector__list_without_table(uprobe__of(engine)->collector, to);
}

const struct engine_operations uprobe_engine = {
	.name = "uprobe",
	.open = open_uprobe,
	.close = close_uprobe,
	.await_child = uprobe__await_child,
	.launch = uprobe__launch,
	.take_over = uprobe__take_over,
	.find_program = uprobe__find_program,
	.attach = uprobe__attach,
	.attach_more = uprobe__attach_more,
	.start = uprobe__start,
	.watch = uprobe__watch,
	.read = uprobe__read,
	.timeout_ms = uprobe__timeout_ms,
	.open_gate = uprobe__open_gate,
	.progress = uprobe__progress,
	.cut = uprobe__cut,
	.become_snapshot = uprobe__become_snapshot,
	.forget = uprobe__forget,
	.lose_forgotten = uprobe__lose_forgotten,
	.reset = uprobe__reset,
	.stop = uprobe__stop,
	.read_blocks = uprobe__read_blocks,
	.finish = uprobe__finish,
	.results = uprobe__results,
	.add_modules = add_modules,
	.name_frames = name_frames,
	.list_without_table = list_without_table,
	.file = uprobe__file,
	.unknown_calls = uprobe__unknown_calls,
};
