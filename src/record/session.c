// SPDX-License-Identifier: GPL-3.0-or-later
#include "live.h"
#include "ring_reader.h"
#include "session_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "allocator.h"
#include "allocprof.skel.h"
#include "cleanup.h"
#include "collector.h"
#include "command_path.h"
#include "cpython.h"
#include "elf_file.h"
#include "error.h"
#include "mappings.h"
#include "probes.h"
#include "profile.h"
#include "regions.h"
#include "sources.h"
#include "symbols.h"
#include "table_cache.h"
#include "translator.h"

/* The ring buffer is read at least this often, also when nothing woke us. */
#define TICK_MS 100

/* Stacks that are unwound before the ring buffer is looked at again: the record of a new file must not
 * wait for long, or ever more stacks come that want unwinding for the lack of its table. */
#define DUMPS_AT_A_TIME 16

__u64 session__clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static int handle_record(void *context, void *record, size_t size)
{
	struct session *session = context;
	int err = collector__handle_record(session->collector, record, size);

	if (!err)
		err = session__handle_unprobed(session, record, size);
	return err || !session->live ? err : live__handle_record(session->live, record, size);
}

/* The uprobe programs' links are made by hand; only these are attached as their sections say. */
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

	for (size_t i = 0; i < sizeof(tracepoints) / sizeof(tracepoints[0]); i++) {
		*tracepoints[i].link = bpf_program__attach(tracepoints[i].program);
		if (!*tracepoints[i].link)
			return error__set(error, -errno, "cannot follow processes (%s): %s",
					  bpf_program__name(tracepoints[i].program),
					  strerror(errno));
	}
	/* Without it the programs look for changes themselves. */
	if (bpf_program__autoload(skeleton->progs.on_map))
		skeleton->links.on_map = bpf_program__attach(skeleton->progs.on_map);
	skeleton->bss->on_map_is_attached = skeleton->links.on_map != NULL;
	return session__attach_unprobed(session, error);
}

static void handle_mapping(const struct mapping_event *event, void *context)
{
	struct session *session = context;
	struct candidate *candidate;

	collector__handle_mapping(session->collector, event);
	if (event->kind != MAPPING_ADDED)
		return;
	candidate = malloc(sizeof(*candidate));
	if (!candidate)
		return;
	candidate->event = *event;
	candidate->next = NULL;
	candidate->event.path = strdup(event->path);
	if (!candidate->event.path) {
		free(candidate);
		return;
	}
	*session->candidates_end = candidate;
	session->candidates_end = &candidate->next;
}

void session__read_mappings(struct session *session)
{
	/* They are the session's, of which this is a copy in another process. */
	if (session->is_snapshot)
		return;
	mapping_events__read(session->mapping_events, handle_mapping, session);
}

static void refresh_mappings(void *context)
{
	session__read_mappings(context);
}

static const struct ap_within *code_within(int fd, const char *path, void *context)
{
	const struct session *session = context;

	return session->gate ? gate__within(session->gate, fd, path) : NULL;
}

/* The kernel refuses at once where another thread of ours maps memory. */
#define ASK_TRIES 100

static int identify_file(const void *address, struct file_identity *identity, void *context)
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
	struct unwind_tables_fds maps;
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
	maps = (struct unwind_tables_fds){
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
		.refresh_mappings = refresh_mappings,
		.within = options->window.within ? code_within : NULL,
		.within_fd = bpf_map__fd(session->skeleton->maps.within_ranges),
		.context = session,
		.asker = { identify_file, session },
		.counts_fd = bpf_map__fd(session->skeleton->maps.counts),
		.counts_fds = { bpf_map__fd(session->skeleton->maps.counts_a),
				bpf_map__fd(session->skeleton->maps.counts_b) },
		.counts_inserted = &session->skeleton->bss->counts_inserted,
		.drain_at = session->skeleton->rodata->config.drain_at,
	};
	collector_options.tables.tables = unwind_tables__new(&maps);
	/* Without it each recording makes its own tables. */
	if (session_options__walk(options) && !options->no_cache)
		table_cache__open(&collector_options.tables.cache, NULL);
	session->collector = collector__new(&collector_options);
	session->cpython = cpython__new(&collector_options.asker);
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

/* Lets the kernel look @pid up in our PID namespace: as the one to follow, or as ourselves. */
static int seed(struct session *session, pid_t pid, bool is_launcher, struct error *error)
{
	struct allocprof_bpf *skeleton = session->skeleton;
	struct bpf_link *link;
	char none[64];
	int fd, err = 0;

	skeleton->bss->seed_pid = pid;
	skeleton->bss->seed_is_launcher = is_launcher;
	skeleton->bss->seed_found = 0;
	link = bpf_program__attach_iter(skeleton->progs.seed_process, NULL);
	if (!link)
		return error__set(error, -errno, "cannot look through the processes: %s",
				  strerror(errno));
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0) {
		err = error__set(error, fd, "cannot look through the processes: %s", strerror(-fd));
	} else {
		while (read(fd, none, sizeof(none)) > 0)
			;
		close(fd);
		if (!skeleton->bss->seed_found)
			err = error__set(error, -ESRCH, "process %d has just ended", pid);
	}
	bpf_link__destroy(link);
	return err;
}

static void announce_address(struct session *session, __u64 address)
{
	struct find_module_args {
		__u64 address;
	} args = { address };
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &args, .ctx_size_in = sizeof(args));

	session->skeleton->bss->seed_pid = getpid();
	if (!bpf_prog_test_run_opts(bpf_program__fd(session->skeleton->progs.find_module),
				    &options))
		ring_reader__read(session->ring);
}

/*
 * Makes the kernel and us acquainted with a file before the target runs its code: the programs give
 * it its id as if they had met it in our own memory, and the record that follows brings its table.
 */
static void announce_file(int fd, const char *path, void *context)
{
	struct session *session = context;
	__u64 page = sysconf(_SC_PAGESIZE), start, end, offset;
	struct elf_file *elf;
	void *code;
	int err;

	if (elf_file__open(fd, path, &elf, NULL))
		return;
	err = elf_file__text_range(elf, &start, &end);
	if (!err)
		err = elf_file__vaddr_to_offset(elf, start, &offset);
	elf_file__free(elf);
	if (err)
		return;
	code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, offset & ~(page - 1));
	if (code == MAP_FAILED)
		return;
	announce_address(session, (__u64)(uintptr_t)code);
	munmap(code, page);
}

static void use_file(int fd, const char *path, void *context)
{
	struct session *session = context;

	if (session->gate)
		gate__meet(session->gate, fd, path);
	if (session->regions)
		regions__meet(session->regions, fd, path, session->late_pid);
	if (session_options__walk(&session->options))
		announce_file(fd, path, session);
}

static int open_regions(struct session *session, pid_t pid)
{
	const struct allocprof_bpf *skeleton = session->skeleton;
	struct regions_options options = {
		.program = skeleton->progs.region_event,
		.multi = session->multi,
		.pid = pid,
		.shared = &skeleton->bss->regions,
		.begins_fd = bpf_map__fd(skeleton->maps.region_begins),
		.counts_fd = bpf_map__fd(skeleton->maps.region_counts),
		.stats_fd = bpf_map__fd(skeleton->maps.region_stats),
		.counters = session->counters,
	};

	return session->options.regions ? regions__new(&options, &session->regions) : 0;
}

/* The gate, with the functions that it is told by in files that are known: @program, and paths below
 * @root. */
static int open_gate(struct session *session, const char *program, const char *root, pid_t pid,
		     struct error *error)
{
	struct gate_options options = {
		.window = session->options.window,
		.program = session->skeleton->progs.gate_event,
		.multi = session->multi,
		.pid = pid,
		.shared = &session->skeleton->bss->gate,
		.use_file = use_file,
		.context = session,
	};
	int err;

	if (!window_options__any(&options.window))
		return 0;
	err = gate__new(&options, &session->gate, error);
	return err ? err : gate__prepare(session->gate, program, root, error);
}

/* What a script runs is its interpreter; what exec cannot run has no functions. */
static int open_command_gate(struct session *session, const char *argv0, pid_t pid,
			     struct error *error)
{
	_cleanup_(free_ptr) char *found = NULL, *program = NULL;

	/* What is wrong with the command is told by those who look for its allocators. */
	if (command_path__find(argv0, getenv("PATH"), &found))
		return 0;
	if (command_path__elf(found, getenv("PATH"), &program))
		return open_gate(session, found, "", pid, error);
	return open_gate(session, program, "", pid, error);
}

/*
 * Every probe is set, and the run's gate was shut until now: a thread's first call that counts may be of any
 * function, so a free does not count without the malloc before it because its probe was there first. From now
 * on the window's options say when the gate opens.
 */
static void begin_window(struct session *session)
{
	struct ap_gate *gate = &session->skeleton->bss->gate;
	__u64 now_ns = session__clock_ns(CLOCK_MONOTONIC);

	session->start_realtime_ns = session__clock_ns(CLOCK_REALTIME);
	session->gate_realtime_ns = session->start_realtime_ns;
	if (session->live)
		live__start(session->live, now_ns, session->target.launched);
	__atomic_store_n(&gate->running, 1, __ATOMIC_RELAXED);
	if (!session->options.window.delay_ns && !session->options.window.paused)
		session__open_gate(session, true);
	/* target__go() sets that of a command. */
	if (!session->target.launched)
		session->target.start_ns = now_ns;
}

static int load_entry(void *context, struct bpf_program **program, struct error *error)
{
	return session__load_entry(context, program, error);
}

/* The programs of mappings, whose sites are told of like an allocator's. */
static int open_mappings(struct session *session, struct error *error)
{
	struct allocprof_bpf *skeleton = session->skeleton;
	struct allocator *allocator;
	int err;

	if (!sources__has_mappings(session->options.sources))
		return 0;
	allocator = mappings__allocator();
	err = allocator ? probes__add_source(session->probes, allocator,
					     &skeleton->bss->mappings_first_site)
			: -ENOMEM;
	return err ? err : mappings__attach(skeleton, error);
}

static int new_probes(struct session *session, pid_t pid, struct error *error)
{
	struct probes_options options = {
		.program = session__entry_program(session),
		.multi = session->multi,
		.pid = pid,
		.sites_fd = bpf_map__fd(session->skeleton->maps.sites),
		.internal_returns_fd = bpf_map__fd(session->skeleton->maps.internal_returns),
		.functions = session->options.functions,
		.usdt_program = session__usdt_program(session),
		.usdt_sites_fd = bpf_map__fd(session->skeleton->maps.usdt_sites),
		.unknown_program = session->skeleton->progs.unknown_call,
		.ignored = session->options.ignored,
		.sources = session->options.sources,
		.nest_return_program = session->skeleton->progs.source_return,
		.nest_return_instruction_program =
			session->skeleton->progs.source_return_instruction,
		.use_file = session_options__walk(&session->options) || session->gate ||
					    session->regions
				    ? use_file
				    : NULL,
		.context = session,
		.asker = { identify_file, session },
		.finds_unprobed = session__finds_unprobed(session),
	};
	struct allocprof_bpf *skeleton = session->skeleton;
	int err;

	if (session->live) {
		options.return_instruction_program = skeleton->progs.live_return_instruction;
		options.free_program = skeleton->progs.live_free;
		options.described_free_program = skeleton->progs.live_free_described;
		if (session->sessions) {
			options.session_program = skeleton->progs.live_session;
			options.load_program = load_entry;
		} else {
			options.return_program = skeleton->progs.live_return;
		}
	}

	err = probes__new(&options, &session->probes);
	return err ? err : open_mappings(session, error);
}

static int add_expected(struct session *session, struct error *error)
{
	int err = 0;

	for (const char *const *name = session->options.expected; name && *name && !err; name++)
		err = probes__add_expected(session->probes, *name, error);
	return err;
}

int session__launch(struct session *session, char *const argv[],
		    const struct target_inheritance *inheritance, struct error *error)
{
	struct allocprof_bpf *skeleton = session->skeleton;
	pid_t pid;
	int err;

	err = seed(session, getpid(), true, error);
	if (err)
		return err;
	skeleton->bss->launcher_armed = 1;
	err = target__hold(&session->target, argv, inheritance, error);
	skeleton->bss->launcher_armed = 0;
	pid = session->options.follow ? 0 : session->target.pid;
	if (!err)
		err = open_regions(session, pid);
	if (!err)
		err = open_command_gate(session, argv[0], pid, error);
	if (!err)
		err = new_probes(session, pid, error);
	if (!err)
		err = probes__add_command(session->probes, argv, error);
	if (!err)
		err = add_expected(session, error);
	if (!err)
		err = probes__add_named_files(session->probes, error);
	if (!err && session->gate)
		err = gate__check(session->gate, error);
	if (err)
		return err;
	collector__await_tables(session->collector);
	begin_window(session);
	return target__go(&session->target, argv[0], error);
}

int session__attach(struct session *session, pid_t pid, struct error *error)
{
	int err;

	char program[64], root[64];

	snprintf(program, sizeof(program), "/proc/%d/exe", pid);
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	err = target__attach(&session->target, pid, error);
	if (!err)
		err = translator__refuse_process(pid, error);
	if (!err)
		err = open_regions(session, pid);
	if (!err)
		err = open_gate(session, program, root, pid, error);
	if (!err)
		err = new_probes(session, pid, error);
	/* The maps first: what is mapped after the scan comes as an event. */
	if (!err)
		collector__scan_process(session->collector, pid);
	if (!err)
		err = seed(session, pid, false, error);
	if (!err)
		err = probes__add_named_files(session->probes, error);
	if (!err)
		err = probes__add_process(session->probes, pid, error);
	if (!err)
		cpython__scan_process(session->cpython, pid);
	if (!err && session->gate)
		err = gate__check(session->gate, error);
	if (!err && target__has_ended(&session->target))
		err = error__set(error, -ESRCH, "process %d ended while its probes were set", pid);
	if (err)
		return err;
	collector__await_tables(session->collector);
	begin_window(session);
	return 0;
}

/* Looks for allocators in what processes that we follow have mapped. Others' mappings are kept for a
 * while: a program that holds a place in the ring buffer keeps the records of forks behind it back. */
static void look_at_candidates(struct session *session)
{
	__u64 now = session__clock_ns(CLOCK_MONOTONIC);
	struct candidate *candidate, *kept = NULL, **kept_end = &kept;

	while ((candidate = session->candidates)) {
		const struct mapping_event *event = &candidate->event;

		session->candidates = candidate->next;
		/* More may come while it is looked at. */
		if (!session->candidates)
			session->candidates_end = &session->candidates;
		candidate->next = NULL;
		if (collector__is_followed(session->collector, event->pid)) {
			session->late_pid = event->pid;
			probes__notice_mapping(session->probes, event);
			session->late_pid = 0;
			cpython__notice_mapping(session->cpython, event);
		} else if (now < event->time_ns + TICK_MS * 1000000ULL) {
			*kept_end = candidate;
			kept_end = &candidate->next;
			continue;
		} else {
			collector__forget_process(session->collector, event->pid);
		}
		free(candidate->event.path);
		free(candidate);
	}
	if (!kept)
		return;
	session->candidates = kept;
	session->candidates_end = kept_end;
}

/*
 * A process's fork record precedes its first mapping. So: first the mappings that are there, then
 * the records, and only then the question which of the mappings are of processes that we follow.
 */
int session__read_events(struct session *session)
{
	int err;

	session__read_mappings(session);
	err = ring_reader__read(session->ring);
	/* What hits waited for is there, or comes. */
	if (collector__brings_tables(session->collector) || err > 0)
		__atomic_store_n(&session->skeleton->bss->waits.left_ns, AP_WAITS_BUDGET_NS,
				 __ATOMIC_RELAXED);
	look_at_candidates(session);
	cpython__attend(session->cpython, session__clock_ns(CLOCK_MONOTONIC));
	if (session->gate)
		gate__attend(session->gate);
	if (err < 0)
		return err;
	err = collector__settle(session->collector, DUMPS_AT_A_TIME);
	if (err)
		return err;
	if (session->live) {
		ring_reader__step_back(session->ring);
		err = live__attend(session->live, session->collector);
		ring_reader__resume(session->ring);
		return err;
	}
	if (!collector__wants_drain(session->collector))
		return 0;
	err = collector__begin_drain(session->collector);
	if (err)
		return err;
	err = ring_reader__read(session->ring);
	if (err >= 0)
		err = collector__settle(session->collector, DUMPS_AT_A_TIME);
	if (err < 0)
		return err;
	ring_reader__step_back(session->ring);
	err = collector__end_drain(session->collector);
	ring_reader__resume(session->ring);
	return err;
}

/* Whether the recording is to end. */
static bool handle_signals(struct session *session, int signal_fd)
{
	struct signalfd_siginfo info;
	bool end = false;

	while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGPIPE || info.ssi_signo == SIGCHLD)
			continue;
		session->n_signals++;
		if (!session->target.launched || session->n_signals > 1) {
			end = true;
			continue;
		}
		/* From the terminal it went to the whole foreground group, the target included. */
		if (info.ssi_code != SI_KERNEL)
			syscall(SYS_pidfd_send_signal, session->target.pidfd, info.ssi_signo, NULL,
				0);
	}
	return end;
}

static int watch(int epoll_fd, int fd)
{
	struct epoll_event interest = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &interest) ? -errno : 0;
}

/* Milliseconds to wait at the most, no more than @most, for what is due at @at_ns. */
static int until(__u64 at_ns, __u64 now_ns, int most)
{
	__u64 ms = at_ns > now_ns ? (at_ns - now_ns) / 1000000 + 1 : 0;

	return ms < (__u64)most ? (int)ms : most;
}

static int timeout_ms(struct session *session, __u64 now_ns, __u64 end_ns)
{
	bool has_more =
		collector__has_dumps(session->collector) || ring_reader__has_kept(session->ring);
	int timeout = has_more ? 0 : TICK_MS;

	if (timeout && session->live)
		timeout = live__timeout_ms(session->live, timeout);
	if (end_ns)
		timeout = until(end_ns, now_ns, timeout);
	if (session->opens_at_ns)
		timeout = until(session->opens_at_ns, now_ns, timeout);
	return timeout;
}

int session__run(struct session *session, __u64 duration_ns, int signal_fd,
		 const struct session_attendant *attendant, struct error *error)
{
	_cleanup_(close_fd) int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	__u64 end_ns = duration_ns ? session->target.start_ns + duration_ns : 0;
	struct epoll_event ready[4];
	int err = 0;

	if (epoll_fd < 0)
		return -errno;
	if ((err = watch(epoll_fd, ring_reader__fd(session->ring))) ||
	    (err = watch(epoll_fd, mapping_events__fd(session->mapping_events))) ||
	    (err = watch(epoll_fd, session->target.pidfd)) || (err = watch(epoll_fd, signal_fd)) ||
	    (attendant && attendant->fd >= 0 && (err = watch(epoll_fd, attendant->fd))))
		return error__set(error, err, "cannot wait for events: %s", strerror(-err));
	if (session->options.window.delay_ns)
		session->opens_at_ns = session->target.start_ns + session->options.window.delay_ns;

	while (!target__has_ended(&session->target)) {
		__u64 now = session__clock_ns(CLOCK_MONOTONIC);

		/* First, so that a window that is due has been open, however late it is. */
		if (session->opens_at_ns && now >= session->opens_at_ns)
			session__open_gate(session, true);
		if (end_ns && now >= end_ns)
			break;
		epoll_wait(epoll_fd, ready, 4, timeout_ms(session, now, end_ns));
		err = session__read_events(session);
		if (!err && attendant)
			err = attendant->attend(session, attendant->context);
		if (err)
			return error__set(error, err, "the recording cannot go on: %s",
					  strerror(-err));
		if (handle_signals(session, signal_fd))
			break;
	}
	return 0;
}

/* Processes in the programs' set, the target not counted. */
__u64 session__count_followed(const struct session *session)
{
	int fd = bpf_map__fd(session->skeleton->maps.processes);
	__u32 key, next;
	bool has_key = false;
	__u64 n = 0;

	while (!bpf_map_get_next_key(fd, has_key ? &key : NULL, &next)) {
		key = next;
		has_key = true;
		n++;
	}
	return n && !session->target.waited ? n - 1 : n;
}

/*
 * Programs that still run count no call from now on. The kernel removes probes one by one, which takes
 * milliseconds, and those that are left keep being hit: without this a target that goes on would have the
 * calls counted that lost their probe last, and not those that lost it first.
 */
static int end_window(struct session *session)
{
	struct ap_gate *gate = &session->skeleton->bss->gate;
	int err = 0;

	if (session->live) {
		/* So that all processes that have ended by now are known to. */
		err = session__read_events(session);
		if (!err)
			err = live__stop(session->live, session->target.end_ns);
	}
	__atomic_store_n(&gate->open, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&gate->running, 0, __ATOMIC_RELAXED);
	return err;
}

int session__finish(struct session *session, struct error *error)
{
	int err;

	if (session->is_snapshot) {
		err = session__collect_snapshot(session);
		goto out;
	}
	if (!session->target.end_ns)
		session->target.end_ns = session__clock_ns(CLOCK_MONOTONIC);
	err = end_window(session);
	session__look_for_unprobed(session);
	session->processes_left = session__count_followed(session);
	probes__detach(session->probes);
	mappings__detach(session->skeleton);
	gate__detach(session->gate);
	regions__detach(session->regions);
	collector__finish_tables(session->collector);
	if (!err)
		err = session__read_events(session);
	for (size_t i = 0; i < session->unprobed.n; i++)
		probes__blame(session->probes, &session->unprobed.list[i]);
	if (!err && session->regions)
		regions__collect(session->regions);
	if (!err)
		err = collector__settle(session->collector, SIZE_MAX);
	if (!err && session->live)
		err = live__collect(session->live, session->collector);
	else if (!err && session->options.stacks)
		err = collector__drain_all(session->collector);
out:
	session->unread_at_end = session->counters->unread;
	if (err)
		return error__set(error, err, "cannot collect the counts: %s", strerror(-err));
	return 0;
}

__u64 session__raw_stat(const struct session *session, __u32 which)
{
	__u64 sum;

	if (session->is_snapshot)
		return session->at_cut.stats[which];
	counters__sum(session->counters, bpf_map__fd(session->skeleton->maps.stats), &which, &sum,
		      1);
	return sum;
}

static __u64 stat_sum(const struct session *session, __u32 which)
{
	return session__raw_stat(session, which) - session->forgotten.stats[which];
}

static __u64 recursion_misses(const struct session *session, const struct bpf_program *program)
{
	return counters__recursion_misses(session->counters, program);
}

/* Runs that the kernel left out of programs at system calls and USDT probes. */
static __u64 source_recursion_misses(const struct session *session)
{
	const struct sources *sources = session->options.sources;
	__u64 misses = 0;

	if (sources__has_mappings(sources))
		misses += mappings__recursion_misses(session->skeleton, session->counters);
	if (sources__any_usdt(sources))
		misses += recursion_misses(session, session__usdt_program(session));
	return misses;
}

/* Of all programs at the probes. */
__u64 session__recursion_misses(const struct session *session)
{
	const struct allocprof_bpf *skeleton = session->skeleton;

	if (session->is_snapshot)
		return session->at_cut.recursion;
	if (!session->live)
		return recursion_misses(session, session__entry_program(session)) +
		       source_recursion_misses(session);
	return source_recursion_misses(session) +
	       recursion_misses(session, session__entry_program(session)) +
	       recursion_misses(session, skeleton->progs.live_return_instruction) +
	       recursion_misses(session, skeleton->progs.live_free) +
	       recursion_misses(session, skeleton->progs.live_free_described) +
	       recursion_misses(session, session->sessions ? skeleton->progs.live_session
							   : skeleton->progs.live_return);
}

__u64 session__gate_recursion_misses(const struct session *session)
{
	if (session->is_snapshot)
		return session->at_cut.gate_recursion;
	if (!session_options__have_functions(&session->options))
		return 0;
	return recursion_misses(session, session->skeleton->progs.gate_event);
}

__u32 session__verified_instructions(const struct session *session)
{
	const struct bpf_program *program = session->live && session->sessions
						    ? session->skeleton->progs.live_session
						    : session__entry_program(session);
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return 0;
	return info.verified_insns;
}

static void sum_site(const struct session *session, __u32 site, struct ap_site_counts *sum)
{
	struct ap_site_counts counts;

	counters__sum(session->counters, bpf_map__fd(session->skeleton->maps.site_counts), &site,
		      (__u64 *)&counts, sizeof(counts) / sizeof(__u64));
	sum->calls += counts.calls;
	sum->internal += counts.internal;
	sum->size_bytes += counts.size_bytes;
	sum->fresh += counts.fresh;
	sum->fresh_size_bytes += counts.fresh_size_bytes;
	sum->released += counts.released;
	sum->null += counts.null;
	sum->failed += counts.failed;
	sum->returned_bytes += counts.returned_bytes;
}

const struct probed_allocator *session__allocators(const struct session *session, size_t *n)
{
	return probes__list(session->probes, n);
}

static void collect_functions(const struct session *session, struct session_results *results)
{
	const struct sources *sources = session->options.sources;
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(session->probes, &n);
	for (size_t i = 0; i < n; i++) {
		const struct allocator *allocator = list[i].allocator;

		for (size_t j = 0; allocator && j < allocator->n_sites; j++) {
			const struct site *site = &allocator->sites[j];
			struct session_function *function = &results->functions[site->function];

			function->probed = true;
			sum_site(session, list[i].first_site + j, &function->counts);
			if (allocator->names[site->function].n >= function->n_aliases) {
				function->aliases = allocator->names[site->function].list;
				function->n_aliases = allocator->names[site->function].n;
			}
		}
		if (list[i].gap[0] || list[i].live_gap[0])
			results->complete = false;
		for (size_t j = 0; allocator && j < allocator->n_unknown; j++)
			if (session__unknown_calls(session, &list[i], j))
				results->complete = false;
	}
	for (size_t i = 0; sources && i < sources->n; i++)
		if (session__lacks_source(session, &sources->list[i]))
			results->complete = false;
}

const struct sources *session__sources(const struct session *session)
{
	return session->options.sources;
}

const struct source_names *session__source_names(const struct session *session)
{
	return session->options.sources ? &session->options.sources->names : NULL;
}

bool session__lacks_source(const struct session *session, const struct source *source)
{
	for (size_t i = 0; i < source->n_functions; i++)
		if (!probes__lacks(session->probes, source, i))
			return false;
	return true;
}

__u64 session__unknown_calls(const struct session *session,
			     const struct probed_allocator *allocator, size_t i)
{
	struct ap_site_counts sum = { 0 };

	/* Whether blocks end is of no account where none is followed. */
	if (allocator->allocator->unknown[i].ends && !session->live)
		return 0;
	sum_site(session, allocator->first_site + allocator->allocator->n_sites + i, &sum);
	return sum.calls;
}

__u64 session__count_site_calls(const struct session *session)
{
	struct ap_site_counts sum = { 0 };
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(session->probes, &n);
	for (size_t i = 0; i < n; i++) {
		const struct allocator *allocator = list[i].allocator;

		for (size_t j = 0; allocator && j < allocator->n_sites; j++)
			if (allocator->sites[j].names & session->options.functions)
				sum_site(session, list[i].first_site + j, &sum);
	}
	return sum.calls;
}

static void collect_live(const struct session *session, struct session_results *results)
{
	const struct ap_live *shared = &session->skeleton->bss->live;
	struct session_live *live = &results->live;

	results->has_live = true;
	for (int i = 0; i < AP_STATS; i++)
		live->stats[i] = stat_sum(session, i);
	for (int i = 0; i < AP_FUNCTIONS && !session->options.stacks; i++)
		live__function(session->live, (enum ap_function)i, &live->functions[i]);
	for (int i = 0; i < AP_UNTRACKED_REASONS; i++)
		live->untracked += live->stats[AP_STAT_UNTRACKED + i];
	live->unfinished = live->stats[AP_STAT_UNFINISHED] + live__unfinished(session->live);
	live->discarded = live__discarded(session->live, &live->discarded_bytes);
	live->blocks =
		live->stats[AP_STAT_ALLOCATIONS] - live->stats[AP_STAT_FREES] - live->discarded;
	live->size_bytes = live->stats[AP_STAT_ALLOCATED_BYTES] - live->stats[AP_STAT_FREED_BYTES] -
			   live->discarded_bytes;
	live->peak_bytes = shared->max_bytes;
	live->epoch_ns = live__epoch_ns(session->live);
	live__memory(session->live, &live->memory);
	if (live->untracked || live->stats[AP_STAT_DROPPED])
		results->complete = false;
}

__u64 session__count_events(const struct session *session)
{
	return session__raw_stat(session, AP_STAT_EVENTS) + session__recursion_misses(session) +
	       collector__found_within(session->collector) - session->forgotten_events;
}

__u64 session__count_lost(const struct session *session, enum ap_lost reason)
{
	__u64 lost = stat_sum(session, AP_STAT_LOST + reason);

	if (reason == AP_LOST_RECURSION)
		lost += session__recursion_misses(session) - session->forgotten.recursion;
	return lost;
}

static void collect_lost(const struct session *session, struct session_results *results)
{
	__u64 known;

	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++) {
		results->lost[reason] = session__count_lost(session, reason);
		results->lost_total += results->lost[reason];
	}
	if (!session->options.stacks)
		return;
	results->not_sampled = stat_sum(session, AP_STAT_NOT_SAMPLED);
	known = results->lost_total + results->not_sampled +
		collector__attributed(session->collector);
	if (session->is_snapshot)
		results->events = session->events_at_cut > known ? session->events_at_cut : known;
	else
		results->events = session__count_events(session);
	/* Where their counter could not be read, nothing can be told of those that are missing. */
	if (results->events < known && session->counters->unread)
		results->events = known;
	results->lost[AP_LOST_UNACCOUNTED] = results->events - known;
	results->lost_total += results->lost[AP_LOST_UNACCOUNTED];
}

static bool is_anything_counted(const struct session_results *results)
{
	for (int i = 0; i < AP_FUNCTIONS; i++)
		if (results->functions[i].counts.calls || results->functions[i].counts.internal)
			return true;
	return results->events > results->lost_total;
}

static void collect_window(const struct session *session, struct session_results *results)
{
	struct session_window *window = &results->window;

	if (!session->gate)
		return;
	window->asked_for = true;
	window->undecided =
		stat_sum(session, AP_STAT_UNDECIDED) + collector__undecided(session->collector);
	window->why = gate__never_opened(session->gate, is_anything_counted(results));
	window->opened = !window->why;
	window->unnoticed =
		session__gate_recursion_misses(session) - session->forgotten.gate_recursion;
	if (!window->opened || window->undecided || window->unnoticed ||
	    gate__check(session->gate, NULL))
		results->complete = false;
}

static void collect_regions(const struct session *session, struct session_results *results)
{
	struct session_regions *regions = &results->regions;

	regions->complete = true;
	if (!session->regions)
		return;
	regions->list = regions__list(session->regions, &regions->n);
	regions->unnoticed = recursion_misses(session, session->skeleton->progs.region_event);
	if (regions->unnoticed || session__region_gap(session, 0))
		regions->complete = false;
	for (int i = 0; i < AP_REGION_GAPS; i++) {
		regions->gaps[i] = stat_sum(session, AP_STAT_REGION_GAP + i);
		if (regions->gaps[i])
			regions->complete = false;
	}
}

const char *session__region_gap(const struct session *session, size_t index)
{
	return session->regions ? regions__gap(session->regions, index) : NULL;
}

void session__results(const struct session *session, struct session_results *results)
{
	const struct allocprof_bpf *skeleton = session->skeleton;
	const struct target *target = &session->target;
	__u64 end_ns, unread_before = session->counters->unread;

	memset(results, 0, sizeof(*results));
	results->interrupted = session->n_signals > 0;
	results->complete = true;
	collect_functions(session, results);
	collect_lost(session, results);
	if (session->live)
		collect_live(session, results);
	collect_window(session, results);
	collect_regions(session, results);
	results->marks = session->marks;
	results->processes = skeleton->bss->processes_seen - session->forgotten.processes;
	results->processes_unfollowed = stat_sum(session, AP_STAT_PROCESSES_LOST) +
					recursion_misses(session, skeleton->progs.on_fork) +
					recursion_misses(session, skeleton->progs.on_exec);
	results->records_lost = stat_sum(session, AP_STAT_RECORDS_LOST);
	results->unprobed = session->unprobed.list;
	results->n_unprobed = session->unprobed.n;
	results->processes_unprobed = stat_sum(session, AP_STAT_UNPROBED);
	results->relabelled = stat_sum(session, AP_STAT_RELABELLED);
	results->not_nested = stat_sum(session, AP_STAT_NOT_NESTED);
	results->mappings_lost =
		mapping_events__lost(session->mapping_events) - session->forgotten.mappings_lost;
	results->mappings_unsure = stat_sum(session, AP_STAT_MAPPINGS_UNSURE);
	results->operands_unread = stat_sum(session, AP_STAT_OPERANDS_UNREAD);
	results->processes_left = session->processes_left;
	results->waits = skeleton->bss->waits.count;
	results->waits_ns = skeleton->bss->waits.total_ns;
	results->python_arenas = cpython__arenas(session->cpython);
	/* This may not be the first time that the results are asked for. */
	results->counters_unread =
		session->unread_at_end + session->counters->unread - unread_before;
	if (results->lost_total || results->processes_unfollowed || results->mappings_lost ||
	    results->counters_unread || results->processes_unprobed || results->not_nested ||
	    results->mappings_unsure || results->operands_unread)
		results->complete = false;
	results->exit_status = target__exit_status(target);
	results->is_attached = !target->launched;
	/* The target of a snapshot goes on. */
	results->target_runs = session->is_snapshot ||
			       (target->launched ? !target->waited : target__is_running(target));
	results->target_pid = target->pid;
	end_ns = session->is_snapshot ? session->cut_ns : target->end_ns;
	results->elapsed_seconds =
		(end_ns - (session->since_ns ? session->since_ns : target->start_ns)) / 1e9;
	results->user_seconds =
		target->usage.ru_utime.tv_sec + target->usage.ru_utime.tv_usec / 1e6;
	results->system_seconds =
		target->usage.ru_stime.tv_sec + target->usage.ru_stime.tv_usec / 1e6;
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
