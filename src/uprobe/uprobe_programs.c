// SPDX-License-Identifier: GPL-3.0-or-later
/* Chooses the BPF programs for the running kernel, sizes their maps and loads them. */
#include "uprobe_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "allocprof.skel.h"
#include "array.h"
#include "attachment.h"
#include "bpf_maps.h"
#include "cleanup.h"
#include "error.h"
#include "faults.h"
#include "kernel_types.h"
#include "mappings.h"
#include "process_set.h"
#include "sample_abi.h"
#include "definitions.h"
#include "tracepoints.h"
#include "user.h"

/* With --live records take at most 1/SESSION_RECORDS_SHARE of the memory. KEY_BYTES are for the
 * key of each and its share of the histograms. */
#define KEY_BYTES 104
/* Size of the programs' map of arrays. */
#define MAX_RECORDS (4096 << AP_CHUNK_BITS)

/* Log function of the engine that this thread loads. It is thread-local, since libbpf's callback
 * has no context. */
static _Thread_local void (*log_line)(const char *line);

static int pass_on(enum libbpf_print_level level, const char *format, va_list args)
{
	_cleanup_(free_ptr) char *text = NULL;
	char *rest, *line;

	if (!log_line || level == LIBBPF_DEBUG)
		return 0;
	if (vasprintf(&text, format, args) < 0) {
		text = NULL;
		return 0;
	}
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (*line)
			log_line(line);
	return 0;
}

/* With stacks: puts the first map of each pair that takes turns into the slot in which the
 * programs look for it. */
static int fill_slots(const struct uprobe *uprobe)
{
	const struct allocprof_bpf *skeleton = uprobe->skeleton;
	const struct {
		const struct bpf_map *slots, *map;
	} pairs[] = {
		{ skeleton->maps.counts, skeleton->maps.counts_a },
		{ skeleton->maps.lifetimes, skeleton->maps.lifetimes_a },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pairs) && uprobe->options.stacks && !err; i++) {
		int fd = bpf_map__fd(pairs[i].map);

		err = slots__set(uprobe->slots, bpf_map__fd(pairs[i].slots), 0, &fd, 1);
	}
	return err;
}

/* Returns whether the programs at the probes of functions are sleepable. */
static bool may_sleep(const struct uprobe *uprobe)
{
	return uprobe->kernel.sleepable && !uprobe->options.limits.no_sleepable;
}

/* Returns whether the kernel may preempt a program at a tracepoint, and then skips it for other
 * tasks. */
bool uprobe__is_preempted(const struct uprobe *uprobe)
{
	return uprobe->kernel.preempts || uprobe->options.limits.preempts;
}

static int load(const struct uprobe *uprobe, struct allocprof_bpf *skeleton)
{
	int err;

	log_line = uprobe->options.log;
	sleepable__use(may_sleep(uprobe) ? &uprobe->sleepable : NULL);
	err = allocprof_bpf__load(skeleton);
	sleepable__use(NULL);
	log_line = NULL;
	return err;
}

/* Number of sets of eight hashes in stacks_sent, a power of two; 0: the default. */
static __u32 sets_of(__u32 stacks)
{
	__u32 sets = 1;

	while (sets * 8 < stacks)
		sets *= 2;
	return stacks ? sets : 0;
}

/* A power of two, since the thread's hash selects the slot. More slots than threads at a time
 * preserve the threads' cached walks. */
static __u32 scratch_slots(int n_cpus)
{
	__u32 slots = 64;

	while (slots < 8U * n_cpus && slots < 512)
		slots *= 2;
	return slots;
}

__u32 uprobe__max_records(const struct session_options *options)
{
	__u64 most;

	if (options->limits.counts)
		return options->limits.counts;
	if (options->max_records)
		return options->max_records < MAX_RECORDS ? options->max_records : MAX_RECORDS;
	most = options->memory_bytes / SESSION_RECORDS_SHARE /
	       (KEY_BYTES + (options->sample_bytes ? sizeof(struct ap_blocks) : AP_BLOCKS_BYTES));
	return most < MAX_RECORDS ? most : MAX_RECORDS;
}

struct bpf_program *uprobe__usdt_program(const struct uprobe *uprobe)
{
	const struct allocprof_bpf *skeleton = uprobe->skeleton;

	if (uprobe->options.live)
		return skeleton->progs.usdt_live;
	return uprobe->options.stacks ? skeleton->progs.usdt_record : skeleton->progs.usdt_count;
}

static void choose_programs(struct uprobe *uprobe)
{
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	const struct session_options *options = &uprobe->options;
	bool live = options->live, is_outermost = definitions__any_outermost(options->definitions);

	bpf_program__set_autoload(skeleton->progs.count_call, !live && !options->stacks);
	bpf_program__set_autoload(skeleton->progs.record_call, !live && options->stacks);
	bpf_program__set_autoload(skeleton->progs.find_module, session_options__walk(options));
	bpf_program__set_autoload(skeleton->progs.on_map,
				  session_options__walk(options) && uprobe->kernel.mapping_hook);
	for (int at = AP_TRACEPOINT_FORK; at <= AP_TRACEPOINT_EXIT; at++)
		tracepoints__choose(skeleton, (enum ap_tracepoint)at, true,
				    uprobe__is_preempted(uprobe));
	uprobe__choose_unprobed(uprobe);
	bpf_program__set_autoload(skeleton->progs.gate_event,
				  session_options__have_functions(options));
	bpf_program__set_autoload(skeleton->progs.region_event, false);
	bpf_program__set_autoload(skeleton->progs.unknown_call, false);
	bpf_program__set_autoload(skeleton->progs.program_begins, uprobe->fallback != NULL);
	bpf_program__set_autoload(skeleton->progs.outermost_return, is_outermost);
	bpf_program__set_autoload(skeleton->progs.outermost_return_instruction, is_outermost);
	bpf_program__set_autoload(skeleton->progs.usdt_count, false);
	bpf_program__set_autoload(skeleton->progs.usdt_record, false);
	bpf_program__set_autoload(skeleton->progs.usdt_live, false);
	bpf_program__set_autoload(uprobe__usdt_program(uprobe),
				  definitions__any_usdt(options->definitions));
	mappings__choose(skeleton, definitions__has_mappings(options->definitions),
			 uprobe__is_preempted(uprobe));
	faults__choose(skeleton, definitions__has_faults(options->definitions), options->stacks,
		       uprobe->kernel.mapping_hook);
	bpf_program__set_autoload(skeleton->progs.live_entry, live && !uprobe->sessions);
	bpf_program__set_autoload(skeleton->progs.live_return_instruction, live);
	bpf_program__set_autoload(skeleton->progs.live_free, live);
	bpf_program__set_autoload(skeleton->progs.live_free_described, live);
	bpf_program__set_autoload(skeleton->progs.live_session, live && uprobe->sessions);
	bpf_program__set_autoload(skeleton->progs.live_return, live && !uprobe->sessions);
}

/* Maps that are not used get one entry. */
static void set_map_sizes(const struct uprobe *uprobe, int n_cpus)
{
	const struct session_options *options = &uprobe->options;
	const struct session_limits *limits = &options->limits;
	const __u32 chunks = (uprobe__max_records(options) + AP_CHUNK - 1) / AP_CHUNK;
	const bool live_stacks = options->live && options->stacks;
	const bool counts_stacks = options->stacks && !options->live;
	const bool walks = session_options__walk(options);
	const bool has_outermost = definitions__any_outermost(options->definitions);
	const bool has_faults = definitions__has_faults(options->definitions);
	const bool has_mappings = definitions__has_mappings(options->definitions);
	const struct allocprof_bpf *skeleton = uprobe->skeleton;
	const struct {
		struct bpf_map *map;
		__u32 size; /* 0: the size in the map's declaration */
		bool is_used;
	} maps[] = {
		{ skeleton->maps.processes, limits->processes, true },
		{ skeleton->maps.tail_calls, limits->tail_calls, true },
		{ skeleton->maps.jumps, limits->tail_calls, true },
		{ skeleton->maps.nests, limits->tail_calls, has_outermost },
		{ skeleton->maps.usdt_sites, 0, definitions__any_usdt(options->definitions) },
		{ skeleton->maps.unmappings, limits->threads, has_mappings },
		{ skeleton->maps.fault_threads, limits->threads, has_faults },
		{ skeleton->maps.counts_a, limits->counts, counts_stacks },
		{ skeleton->maps.counts_b, limits->counts, counts_stacks },
		{ skeleton->maps.records, chunks, options->live },
		{ skeleton->maps.histograms, 0, live_stacks },
		{ skeleton->maps.free_records, 0, live_stacks },
		{ skeleton->maps.free_histograms, 0, live_stacks },
		{ skeleton->maps.index_tables, 0, live_stacks },
		{ skeleton->maps.threads, limits->threads, options->live },
		{ skeleton->maps.shared_spaces, 0, options->live },
		{ skeleton->maps.lifetimes_a, 0, live_stacks },
		{ skeleton->maps.lifetimes_b, 0, live_stacks },
		{ skeleton->maps.stacks_sent, sets_of(limits->stacks_sent), options->stacks },
		{ skeleton->maps.scratches, scratch_slots(n_cpus), walks },
		{ skeleton->maps.vmas, 0, walks },
		{ skeleton->maps.unwind_tables, 0, walks },
		{ skeleton->maps.unwind_slices, 0, walks },
		{ skeleton->maps.unwind_rules, 0, walks },
		{ skeleton->maps.within_ranges, 0, options->window.within },
		{ skeleton->maps.pythons, 0, walks },
		{ skeleton->maps.region_threads, limits->threads, options->regions },
		{ skeleton->maps.region_begins, 0, options->regions },
		{ skeleton->maps.region_counts, 0, options->regions },
	};

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		if (!maps[i].is_used)
			bpf_map__set_max_entries(maps[i].map, 1);
		else if (maps[i].size)
			bpf_map__set_max_entries(maps[i].map, maps[i].size);
	}
	if (limits->ring_bytes)
		bpf_map__set_max_entries(skeleton->maps.ring, limits->ring_bytes);
	else if (!options->stacks)
		bpf_map__set_max_entries(skeleton->maps.ring, 1 << 20);
	else if (options->events_path)
		bpf_map__set_max_entries(skeleton->maps.ring, EVENTS_RING_BYTES);
}

static void configure(struct uprobe *uprobe, int n_cpus)
{
	const struct session_options *options = &uprobe->options;
	const struct session_limits *limits = &options->limits;
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	__u32 ring_bytes;

	set_map_sizes(uprobe, n_cpus);
	ring_bytes = bpf_map__max_entries(skeleton->maps.ring);

	skeleton->rodata->config = (struct ap_config){
		.max_depth = options->stacks ? options->max_depth : AP_MAX_DEPTH,
		.scratch_mask = bpf_map__max_entries(skeleton->maps.scratches) - 1,
		.page_shift = __builtin_ctzl(sysconf(_SC_PAGESIZE)),
		.sent_mask = bpf_map__max_entries(skeleton->maps.stacks_sent) - 1,
		/* Tests of losses set a smaller ring buffer, for which no hit waits. */
		.wait_below_bytes = limits->ring_bytes ? 0 : ring_bytes / 2,
		.no_scratch = limits->no_scratch,
		.stack_dump = options->stack_dump_bytes,
		.follow = options->follow,
		.joins = options->joins && !options->joins->is_unknown,
		.joins_group = options->joins && options->joins->group,
		.joins_user = options->joins ? options->joins->user : 0,
		.joins_any_user = !options->joins || !options->joins->has_user,
		.drain_at = (bpf_map__max_entries(skeleton->maps.counts_a) + 1) / 2,
		.wake_at_bytes = ring_bytes / 8,
		.dump_below_bytes = ring_bytes / 2,
		.live = options->live,
		.live_stacks = options->live && options->stacks,
		.max_dumped = uprobe__max_records(options) / 2,
		.starts_closed = options->window.start_on != NULL,
		.within = options->window.within != NULL,
		.regions = options->regions,
		.finds_unprobed = uprobe__finds_unprobed(uprobe),
		.outermost = definitions__any_outermost(options->definitions),
		.stacks = options->stacks,
		.may_fault = may_sleep(uprobe),
		.preempts = uprobe__is_preempted(uprobe),
		.faults = definitions__has_faults(options->definitions),
		.borrowed = borrowed__is_any(),
		.user = getuid(),
		.group = getgid(),
	};
	if (options->joins)
		memcpy(skeleton->rodata->config.joins_name, options->joins->name,
		       sizeof(options->joins->name));
	/* With one processor, user space could not run while a hit spins. */
	skeleton->bss->waits.left_ns = AP_WAITS_BUDGET_NS;
	skeleton->bss->waits.most = get_nprocs() > 1 ? scratch_slots(n_cpus) / 8 : 0;
	skeleton->bss->waits.most_faulting = scratch_slots(n_cpus) / 4;
	if (options->live)
		skeleton->rodata->config.drain_at =
			(bpf_map__max_entries(skeleton->maps.lifetimes_a) + 1) / 2;
	if (options->events_path) {
		/* Events leave room for stack dumps, and stack dumps for the profile's other
		 * records. */
		skeleton->rodata->event_config = (struct ap_event_config){
			.enabled = 1,
			.throttle = options->throttle,
			.below_bytes = ring_bytes / 4 * 3,
			.resume_bytes = ring_bytes / 2,
			.wake_mask = ring_bytes / 32 - 1,
		};
		skeleton->rodata->config.dump_below_bytes = ring_bytes / 8 * 7;
	}
	if (options->sample_bytes)
		ap_sample__configure(options->sample_bytes, &skeleton->rodata->config);
	if (definitions__any_weight(options->definitions))
		ap_sample__admit_told(&skeleton->rodata->config);
	choose_programs(uprobe);
}

struct bpf_program *uprobe__entry_program(const struct uprobe *uprobe)
{
	if (uprobe->options.live)
		return uprobe->skeleton->progs.live_entry;
	return uprobe->options.stacks ? uprobe->skeleton->progs.record_call
				      : uprobe->skeleton->progs.count_call;
}

static void choose_attach_types(struct allocprof_bpf *skeleton)
{
	struct bpf_program *programs[] = {
		skeleton->progs.count_call,
		skeleton->progs.record_call,
		skeleton->progs.live_entry,
		skeleton->progs.live_return,
		skeleton->progs.live_return_instruction,
		skeleton->progs.live_free,
		skeleton->progs.live_free_described,
		skeleton->progs.unknown_call,
		skeleton->progs.usdt_count,
		skeleton->progs.usdt_record,
		skeleton->progs.usdt_live,
		skeleton->progs.outermost_return,
		skeleton->progs.outermost_return_instruction,
		skeleton->progs.gate_event,
		skeleton->progs.region_event,
		skeleton->progs.program_begins,
	};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		bpf_program__set_expected_attach_type(programs[i], ATTACH_TYPE_UPROBE_MULTI);
	bpf_program__set_expected_attach_type(skeleton->progs.live_session,
					      ATTACH_TYPE_UPROBE_SESSION);
}

/*
 * Sets the size of records, which are shorter without sampling. A template map *@fd sets it, which
 * the caller closes after the load, since bpf_map__set_value_size() of libbpf 1.5 crashes on the
 * result of bpf_map__inner_map().
 */
static int set_record_size(struct uprobe *uprobe, int *fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);

	if (!uprobe->options.live || uprobe->options.sample_bytes)
		return 0;
	*fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "record_chunk", sizeof(__u32), AP_BLOCKS_BYTES,
			     AP_CHUNK, &options);
	return *fd < 0 ? *fd : bpf_map__set_inner_map_fd(uprobe->skeleton->maps.records, *fd);
}

static int refused(const struct uprobe *uprobe, int err, struct error *error)
{
	if (err == -EMFILE || err == -ENFILE)
		return error__set(
			error, err,
			"cannot load the BPF programs: %s; raise the limit of open files (ulimit -n)",
			strerror(-err));
	return error__set(error, err,
			  "kernel %s refused the BPF programs: %s; allocprof needs Linux 5.17 "
			  "or newer, see allocprof doctor%s",
			  uprobe->kernel.release, strerror(-err),
			  uprobe->options.log ? "" : "; --verbose shows the verifier's log");
}

static int open_skeleton(struct uprobe *uprobe, struct allocprof_bpf **out)
{
	LIBBPF_OPTS(bpf_object_open_opts, options);
	struct allocprof_bpf *skeleton;
	char path[64];

	if (uprobe->kernel_types && uprobe->types_fd < 0)
		uprobe->types_fd = memfd_create("kernel_types", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", uprobe->types_fd);
	if (uprobe->types_fd >= 0)
		options.btf_custom_path = path;
	skeleton = allocprof_bpf__open_opts(&options);
	if (!skeleton)
		return -errno;
	*out = skeleton;
	return 0;
}

/* Opens the skeleton. The first call also writes the file of the kernel types that the programs
 * use, for later calls. */
static int open_object(struct uprobe *uprobe, struct error *error)
{
	bool are_picked = uprobe->types_fd >= 0;
	int err = open_skeleton(uprobe, &uprobe->skeleton);

	if (err)
		return error__set(error, err, "cannot read the built-in BPF programs: %s",
				  strerror(-err));
	if (uprobe->types_fd >= 0 && !are_picked)
		err = kernel_types__pick(uprobe->kernel_types,
					 bpf_object__btf(uprobe->skeleton->obj), uprobe->types_fd);
	if (err)
		return error__set(error, err, "cannot pick types of the kernel: %s",
				  strerror(-err));
	return 0;
}

static int load_object(struct uprobe *uprobe, int n_cpus)
{
	_cleanup_(close_fd) int record_fd = -1;
	int err;

	configure(uprobe, n_cpus);
	err = set_record_size(uprobe, &record_fd);
	if (err)
		return err;
	if (uprobe->multi)
		choose_attach_types(uprobe->skeleton);
	tracing__use(uprobe->kernel_types);
	err = load(uprobe, uprobe->skeleton);
	tracing__use(NULL);
	return err;
}

static int load_again(struct uprobe *uprobe, int n_cpus, struct error *error)
{
	int err;

	allocprof_bpf__destroy(uprobe->skeleton);
	uprobe->skeleton = NULL;
	err = open_object(uprobe, error);
	return err ?: load_object(uprobe, n_cpus);
}

int uprobe__load_programs(struct uprobe *uprobe, struct error *error)
{
	int n_cpus = libbpf_num_possible_cpus();
	int err;

	if (n_cpus < 0)
		return error__set(error, n_cpus, "cannot determine the number of CPUs: %s",
				  strerror(-n_cpus));
	libbpf_set_print(pass_on);
	err = uprobe->kernel_types ? 0 : kernel_types__open(&uprobe->kernel_types);
	if (err)
		return error__set(error, -EOPNOTSUPP,
				  "cannot read the kernel's types in /sys/kernel/btf/vmlinux: %s",
				  err == -EINVAL ? "they have a form that this allocprof does not "
						   "know"
						 : strerror(-err));
	err = tracing__take_over();
	if (!err)
		err = sleepable__take_over();
	if (err)
		return error__set(error, err, "cannot read the built-in BPF programs: %s",
				  strerror(-err));
	err = open_object(uprobe, error);
	if (err)
		return err;
	/* sleepable__find() goes through all functions of the kernel, so it is only called where it is needed. */
	if (may_sleep(uprobe))
		sleepable__find(&uprobe->sleepable, uprobe->kernel_types);
	err = load_object(uprobe, n_cpus);
	for (int i = 0; err == -ENOMEM && i < MEMORY_TRIES; i++) {
		usleep(MEMORY_WAIT_US);
		err = load_again(uprobe, n_cpus, error);
	}
	/* The verifier may refuse the programs although it has accepted the one of
	 * sleepable__supported(). Then they are loaded as programs that do not sleep. */
	if (err && err != -ENOMEM && err != -EPERM && uprobe->skeleton && may_sleep(uprobe)) {
		if (uprobe->options.log)
			uprobe->options.log(
				"the kernel refuses the programs as sleepable ones; loading them as others");
		uprobe->options.limits.no_sleepable = true;
		err = load_again(uprobe, n_cpus, error);
	}
	/* If the skeleton could not be opened again, @error says why. */
	if (!uprobe->skeleton)
		return err;
	kernel_types__free(uprobe->kernel_types);
	uprobe->kernel_types = NULL;
	if (!err)
		err = fill_slots(uprobe);
	if (err)
		return refused(uprobe, err, error);
	return 0;
}

/* Makes the second object use the maps of the first. */
static int share_maps(const struct allocprof_bpf *from, struct allocprof_bpf *to)
{
	struct bpf_map *map, *shared;
	int err;

	bpf_object__for_each_map(map, to->obj)
	{
		shared = bpf_object__find_map_by_name(from->obj, bpf_map__name(map));
		if (!shared)
			return -ENOENT;
		err = bpf_map__reuse_fd(map, bpf_map__fd(shared));
		if (err)
			return err;
	}
	return 0;
}

struct late_program {
	struct late_program *next;
	struct allocprof_bpf *skeleton; /* the object opened again, with only this program loaded */
	struct bpf_program *program;
};

static int load_late(const struct uprobe *uprobe, struct late_program *late)
{
	struct bpf_program *program;
	int err;

	bpf_object__for_each_program(program, late->skeleton->obj)
	{
		bpf_program__set_autoload(program, program == late->program);
	}
	err = share_maps(uprobe->skeleton, late->skeleton);
	if (err)
		return err;
	if (uprobe->multi)
		choose_attach_types(late->skeleton);
	return load(uprobe, late->skeleton);
}

static void late_program__free(struct late_program *late)
{
	if (late)
		allocprof_bpf__destroy(late->skeleton);
	free(late);
}

void uprobe__free_late(struct uprobe *uprobe)
{
	while (uprobe->late) {
		struct late_program *late = uprobe->late;

		uprobe->late = late->next;
		late_program__free(late);
	}
}

struct bpf_program *uprobe__loaded(const struct uprobe *uprobe, struct bpf_program *program)
{
	for (const struct late_program *late = uprobe->late; late; late = late->next)
		if (!strcmp(bpf_program__name(late->program), bpf_program__name(program)))
			return late->program;
	return program;
}

int uprobe__load_late(struct uprobe *uprobe, struct bpf_program **program, struct error *error)
{
	struct bpf_program *loaded = uprobe__loaded(uprobe, *program);
	struct late_program *late;
	int err;

	if (bpf_program__fd(loaded) >= 0) {
		*program = loaded;
		return 0;
	}
	late = calloc(1, sizeof(*late));
	if (!late)
		return -ENOMEM;
	err = open_skeleton(uprobe, &late->skeleton);
	if (err)
		goto fail;
	late->program =
		bpf_object__find_program_by_name(late->skeleton->obj, bpf_program__name(*program));
	err = late->program ? load_late(uprobe, late) : -ENOENT;
	if (err)
		goto fail;
	late->next = uprobe->late;
	uprobe->late = late;
	*program = late->program;
	return 0;
fail:
	late_program__free(late);
	return refused(uprobe, err, error);
}
