// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "allocator.h"
#include "allocprof.skel.h"
#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "command_path.h"
#include "cpython.h"
#include "elf_file.h"
#include "error.h"
#include "live.h"
#include "mappings.h"
#include "probes.h"
#include "regions.h"
#include "ring_reader.h"
#include "sources.h"
#include "translator.h"

/* Runs the iterator that finds @pid in allocprof's PID namespace, as the process to follow or as
 * allocprof itself. */
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
		return error__set(error, -errno, "cannot iterate over the processes: %s",
				  strerror(errno));
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0) {
		err = error__set(error, fd, "cannot iterate over the processes: %s", strerror(-fd));
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
 * Assigns a module id to a file before the target executes its code: the program finds it mapped in
 * allocprof's own memory, and its record makes user space compile the unwind table.
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
		gate__on_new_file(session->gate, fd, path);
	if (session->regions)
		regions__on_new_file(session->regions, fd, path, session->late_pid);
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

/* Creates the gate, and probes its functions in files that are known: @program, and paths below
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

/* A script's program is its interpreter. If there is no ELF file, the gate has no functions. */
static int open_command_gate(struct session *session, const char *argv0, pid_t pid,
			     struct error *error)
{
	_cleanup_(free_ptr) char *found = NULL, *program = NULL;

	/* The search for the command's allocators reports what is wrong with it. */
	if (command_path__find(argv0, getenv("PATH"), &found))
		return 0;
	if (command_path__elf(found, getenv("PATH"), &program))
		return open_gate(session, found, "", pid, error);
	return open_gate(session, program, "", pid, error);
}

/*
 * Opens the window if the options do not delay it. Only now, when all probes are set: the first
 * call of a thread that counts may be of any function, and a free must not count without its malloc
 * because its probe was set first.
 */
static void begin_window(struct session *session)
{
	struct ap_gate *gate = &session->skeleton->bss->gate;
	__u64 now_ns = clock__now_ns();

	session->start_realtime_ns = clock__ns(CLOCK_REALTIME);
	session->gate_realtime_ns = session->start_realtime_ns;
	if (session->live)
		live__start(session->live, now_ns, session->target.launched);
	__atomic_store_n(&gate->running, 1, __ATOMIC_RELAXED);
	if (!session->options.window.delay_ns && !session->options.window.paused)
		session__open_gate(session, true);
	/* target__go() sets the start of a command. */
	if (!session->target.launched)
		session->target.start_ns = now_ns;
}

static int load_entry(void *context, struct bpf_program **program, struct error *error)
{
	return session__load_entry(context, program, error);
}

/* Adds the sites of mappings like those of an allocator, and attaches the programs. */
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
		.identifier = { session__identify_file, session },
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
	/* First the mappings: those that the scan misses come as events. */
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
