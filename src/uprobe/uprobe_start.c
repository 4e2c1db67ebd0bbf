// SPDX-License-Identifier: GPL-3.0-or-later
/* Starts a measurement: finds the functions to probe, and launches the target or attaches to it. */
#include "uprobe_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "allocator.h"
#include "allocprof.skel.h"
#include "bpf_maps.h"
#include "cleanup.h"
#include "collector.h"
#include "command_path.h"
#include "elf_headers.h"
#include "error.h"
#include "faults.h"
#include "gate.h"
#include "isolation.h"
#include "live.h"
#include "mappings.h"
#include "memory_group.h"
#include "probes.h"
#include "process_set.h"
#include "regions.h"
#include "ring_reader.h"
#include "runtimes.h"
#include "definitions.h"
#include "target.h"
#include "user.h"

int uprobe__isolate(const struct uprobe *uprobe, int fd, const char *path, bool makes)
{
	struct isolation *isolation = uprobe->target->isolation;
	struct stat st;
	int copy = -ENOENT;

	if (!isolation)
		return fd;
	if (makes)
		copy = isolation__copy(isolation, fd, path);
	else if (!fstat(fd, &st))
		copy = isolation__find(isolation, &st);
	return copy < 0 ? fd : copy;
}

int uprobe__original(int fd, void *context)
{
	const struct uprobe *uprobe = context;
	const struct isolation *isolation = uprobe->target->isolation;

	return isolation ? isolation__original(isolation, fd) : -ENOENT;
}

/* Enters @pid, a number of allocprof's PID namespace, into the programs' map, as a process to
 * follow or as allocprof itself. */
static int seed(struct uprobe *uprobe, pid_t pid, bool is_launcher, bool waits,
		bool by_other_engine, struct error *error)
{
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	int err;

	skeleton->bss->seed_pid = pid;
	skeleton->bss->seed_is_launcher = is_launcher;
	skeleton->bss->seed_state = waits;
	skeleton->bss->seed_by_other_engine = by_other_engine;
	skeleton->bss->seed_found = skeleton->bss->seed_refused = 0;
	err = uprobe__iterate(skeleton->progs.seed_process);
	if (err)
		return error__set(error, err, "cannot iterate over the processes: %s",
				  strerror(-err));
	if (skeleton->bss->seed_refused)
		return borrowed__refuse(pid, error);
	if (skeleton->bss->seed_found)
		return 0;
	if (!kill(pid, 0) || errno == EPERM)
		return error__set(
			error, -ENOTSUP,
			"process %d runs, but the kernel does not show it to BPF programs", pid);
	return error__set(error, -ESRCH, "process %d has just ended", pid);
}

int uprobe__seed(struct uprobe *uprobe, pid_t pid, bool waits, struct error *error)
{
	return seed(uprobe, pid, false, waits, !waits, error);
}

/* Reads the records of announced files. If one cannot be kept, the profile becomes incomplete,
 * which the next regular reading reports. */
static void read_announced(struct uprobe *uprobe)
{
	int err = ring_reader__read(uprobe->ring);

	if (err < 0 && !uprobe->read_err)
		uprobe->read_err = err;
}

static void announce_address(struct uprobe *uprobe, __u64 address)
{
	const struct bpf_program *program = uprobe->skeleton->progs.find_module;
	struct find_module_args {
		__u64 address;
	} args = { address };
	int err;

	uprobe->skeleton->bss->seed_pid = getpid();
	err = uprobe__look_at_own(program, &args, sizeof(args));
	read_announced(uprobe);
	if (err == -ENOSPC && !uprobe__look_at_own(program, &args, sizeof(args)))
		read_announced(uprobe);
}

/*
 * Assigns a module id to a file before the target executes its code: the program finds it mapped in
 * allocprof's own memory, and its record makes user space compile the unwind table.
 */
static void announce_file(struct uprobe *uprobe, int fd)
{
	__u64 page = sysconf(_SC_PAGESIZE);
	struct executable_parts parts;
	void *code;

	if (executable_parts__read(fd, &parts) || !parts.n)
		return;
	code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
		    parts.list[0].offset & ~(page - 1));
	if (code == MAP_FAILED)
		return;
	announce_address(uprobe, (__u64)(uintptr_t)code);
	munmap(code, page);
}

static void use_file(int fd, const char *path, void *context)
{
	struct uprobe *uprobe = context;

	if (uprobe->gate)
		gate__on_new_file(uprobe->gate, fd, path);
	if (uprobe->regions)
		regions__on_new_file(uprobe->regions, fd, path, uprobe->late_pid);
	if (session_options__walk(&uprobe->options))
		announce_file(uprobe, fd);
}

static int isolate(int fd, const char *path, void *context)
{
	return uprobe__isolate(context, fd, path, true);
}

static int find_isolated(int fd, const char *path, void *context)
{
	return uprobe__isolate(context, fd, path, false);
}

/* Returns whether the file has functions to probe that are not an allocator's. */
static bool is_wanted(int fd, const char *path, void *context)
{
	const struct uprobe *uprobe = context;

	return (uprobe->gate && gate__wants(uprobe->gate, fd, path)) ||
	       (uprobe->regions && regions__want(uprobe->regions, fd, path));
}

static int load_program(void *context, struct bpf_program **program, struct error *error)
{
	return uprobe__load_late(context, program, error);
}

int uprobe__open_regions(struct uprobe *uprobe, pid_t pid)
{
	const struct allocprof_bpf *skeleton = uprobe->skeleton;
	struct regions_options options = {
		.run = uprobe__at_probes(uprobe, skeleton->progs.region_event, pid),
		.shared = &skeleton->bss->regions,
		.begins_fd = bpf_map__fd(skeleton->maps.region_begins),
		.counts_fd = bpf_map__fd(skeleton->maps.region_counts),
		.counters = uprobe->counters,
		.parser = uprobe->parser,
		.profile = uprobe->profile,
		.load_program = load_program,
		.context = uprobe,
	};

	return uprobe->options.regions ? regions__new(&options, &uprobe->regions) : 0;
}

/* Creates the gate, and probes its functions in the files that are known: @program, and paths
 * below @root. */
static int open_gate(struct uprobe *uprobe, const char *program, const char *root, pid_t pid,
		     struct error *error)
{
	struct gate_options options = {
		.window = uprobe->options.window,
		.run = uprobe__at_probes(uprobe, uprobe->skeleton->progs.gate_event, pid),
		.shared = &uprobe->skeleton->bss->gate,
		.parser = uprobe->parser,
		.use_file = use_file,
		.isolate = isolate,
		.context = uprobe,
	};
	int err;

	if (!window_options__any(&options.window))
		return 0;
	err = gate__new(&options, &uprobe->gate, error);
	return err ? err : gate__prepare(uprobe->gate, program, root, error);
}

/* Opens the gate for a command. A script's program is its interpreter. If there is no ELF file,
 * the gate has no functions. */
static int open_command_gate(struct uprobe *uprobe, const char *argv0, pid_t pid,
			     struct error *error)
{
	_cleanup_(free_ptr) char *found = NULL, *program = NULL;

	/* If there is no such command, the search for the command's allocators reports the error. */
	if (command_path__find(argv0, getenv("PATH"), &found))
		return 0;
	if (command_path__elf(found, getenv("PATH"), &program))
		return open_gate(uprobe, found, "", pid, error);
	return open_gate(uprobe, program, "", pid, error);
}

int uprobe__start(struct engine *engine, __u64 now_ns, struct error *error)
{
	struct uprobe *uprobe = uprobe__of(engine);

	if (uprobe->live)
		live__start(uprobe->live, now_ns, uprobe->target->launched);
	__atomic_store_n(&uprobe->skeleton->bss->gate.running, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Adds the sites of mappings like those of an allocator, and attaches the programs. */
static int open_mappings(struct uprobe *uprobe, struct error *error)
{
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	struct allocator *allocator;
	int err;

	if (!definitions__has_mappings(uprobe->options.definitions))
		return 0;
	allocator = mappings__allocator();
	err = allocator ? probes__add_definition(uprobe->probes, allocator,
						 &skeleton->bss->mappings_first_site)
			: -ENOMEM;
	return err ? err : mappings__attach(skeleton, error);
}

/* Does the same for page faults. */
static int open_faults(struct uprobe *uprobe, struct error *error)
{
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	struct allocator *allocator;
	int err;

	if (!definitions__has_faults(uprobe->options.definitions))
		return 0;
	allocator = faults__allocator();
	err = allocator ? probes__add_definition(uprobe->probes, allocator,
						 &skeleton->bss->faults_first_site)
			: -ENOMEM;
	return err ? err : faults__attach(skeleton, &uprobe->faults, error);
}

static int new_probes(struct uprobe *uprobe, pid_t pid, bool is_fallback, struct error *error)
{
	struct probes_options options = {
		.run = uprobe__at_probes(uprobe, uprobe__entry_program(uprobe), pid),
		.max_sites = uprobe->options.limits.sites,
		.sites_fd = bpf_map__fd(uprobe->skeleton->maps.sites),
		.internal_returns_fd = bpf_map__fd(uprobe->skeleton->maps.internal_returns),
		.functions = uprobe->options.functions,
		.usdt_program = uprobe__usdt_program(uprobe),
		.usdt_sites_fd = bpf_map__fd(uprobe->skeleton->maps.usdt_sites),
		.load_program = load_program,
		.unknown_program = uprobe->skeleton->progs.unknown_call,
		.ignored = uprobe->options.ignored,
		.definitions = uprobe->options.definitions,
		.nest_return_program = uprobe->skeleton->progs.outermost_return,
		.nest_return_instruction_program =
			uprobe->skeleton->progs.outermost_return_instruction,
		.use_file =
			session_options__walk(&uprobe->options) || uprobe->gate || uprobe->regions
				? use_file
				: NULL,
		.isolate = uprobe->target->isolation ? isolate : NULL,
		.find_isolated = find_isolated,
		.is_wanted = is_wanted,
		.context = uprobe,
		.identifier = { uprobe__identify_file, uprobe },
		.parser = uprobe->parser,
		.finds_unprobed = uprobe__finds_unprobed(uprobe),
		.is_fallback = is_fallback,
	};
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	int err;

	if (uprobe->live) {
		options.return_instruction_program = skeleton->progs.live_return_instruction;
		options.free_program = skeleton->progs.live_free;
		options.described_free_program = skeleton->progs.live_free_described;
		if (uprobe->sessions) {
			options.session_program = skeleton->progs.live_session;
		} else {
			options.return_program = skeleton->progs.live_return;
		}
	}

	err = slots__wait(uprobe->slots);
	if (err)
		return error__set(error, err, "cannot fill the programs' maps: %s", strerror(-err));
	err = probes__new(&options, &uprobe->probes);
	if (!err)
		err = open_mappings(uprobe, error);
	return err ? err : open_faults(uprobe, error);
}

int uprobe__new_fallback_probes(struct uprobe *uprobe, struct error *error)
{
	return new_probes(uprobe, 0, true, error);
}

static int add_expected(struct uprobe *uprobe, struct error *error)
{
	int err = 0;

	for (const char *const *name = uprobe->options.expected; name && *name && !err; name++)
		err = probes__add_expected(uprobe->probes, *name, error);
	return err;
}

int uprobe__await_child(struct engine *engine, bool awaits, struct error *error)
{
	struct uprobe *uprobe = uprobe__of(engine);
	int err = awaits ? seed(uprobe, getpid(), true, false, false, error) : 0;

	if (!err)
		uprobe->skeleton->bss->launcher_armed = awaits;
	return err;
}

int uprobe__launch(struct engine *engine, char *const argv[], struct error *error)
{
	struct uprobe *uprobe = uprobe__of(engine);
	pid_t pid = uprobe->options.follow ? 0 : uprobe->target->pid;
	int err = uprobe__open_regions(uprobe, pid);

	if (!err)
		err = open_command_gate(uprobe, argv[0], pid, error);
	if (!err)
		err = new_probes(uprobe, pid, false, error);
	if (!err)
		err = probes__add_command(uprobe->probes, argv, error);
	if (!err)
		err = add_expected(uprobe, error);
	if (!err)
		err = probes__add_named_files(uprobe->probes, error);
	if (!err && uprobe->gate)
		err = gate__check(uprobe->gate, error);
	if (!err)
		probes__end_copies(uprobe->probes);
	if (!err)
		collector__await_tables(uprobe->collector);
	return err;
}

/* Prepares for one running process, whose probes are set for it alone, or for all. */
static int attach_process(struct uprobe *uprobe, pid_t pid, struct error *error)
{
	int err = borrowed__check_process(pid, error);

	/* The process's mappings are read first; those that come later are reported as events. */
	if (!err && collector__scan_process(uprobe->collector, pid) == -ENOMEM)
		uprobe->mappings_dropped++;
	if (!err)
		err = seed(uprobe, pid, false, false, false, error);
	if (!err)
		uprobe__look_at_faults(uprobe);
	if (!err)
		err = probes__add_process(uprobe->probes, pid, error);
	if (!err)
		runtimes__scan_process(uprobe->runtimes, pid);
	return err;
}

/* Returns whether the measurement can go without the process: of those that were searched for it is
 * one that has ended, or one without an allocator that can be probed, which is noted. */
static bool is_dispensable(struct uprobe *uprobe, pid_t pid, int err, const struct error *error)
{
	if (!uprobe->target->is_open)
		return false;
	if (err == -ENOTSUP)
		probes__add_unmeasured(uprobe->probes, pid, error->text);
	return err == -ESRCH || err == -ENOTSUP || kill(pid, 0);
}

int uprobe__open_joined_group(struct uprobe *uprobe, struct error *error)
{
	const struct process_joining *joins = uprobe->options.joins;
	_cleanup_(free_ptr) char *directory = NULL;
	_cleanup_(close_fd) int fd = -1;
	__u32 zero = 0;
	int err;

	if (!joins || !joins->group)
		return 0;
	directory = memory_group__directory(joins->group);
	fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	err = fd < 0 ? -ENOENT
		     : bpf_map_update_elem(bpf_map__fd(uprobe->skeleton->maps.joined_group), &zero,
					   &fd, BPF_ANY);
	return err ? error__set(error, err, "cannot follow the control group %s: %s", joins->group,
				directory ? strerror(-err) : "its directory is not mounted here")
		   : 0;
}

int uprobe__attach_more(struct engine *engine, size_t from, struct error *error)
{
	struct uprobe *uprobe = uprobe__of(engine);
	const struct target *target = uprobe->target;
	size_t n_attached = from;
	int err = 0;

	for (size_t i = from; i < target__n_processes(target); i++) {
		pid_t pid = target__process(target, i);

		err = attach_process(uprobe, pid, error);
		if (err && !is_dispensable(uprobe, pid, err, error))
			return err;
		n_attached += !err;
	}
	return n_attached ? 0 : err;
}

int uprobe__attach(struct engine *engine, struct error *error)
{
	struct uprobe *uprobe = uprobe__of(engine);
	pid_t first = uprobe->target->pid;
	/* Probes for one process leave all others alone. */
	pid_t only = uprobe->options.follow ? 0 : first;
	char program[64], root[64];
	int err = 0;

	snprintf(program, sizeof(program), "/proc/%d/exe", first);
	snprintf(root, sizeof(root), "/proc/%d/root", first);
	for (size_t i = 0; i < target__n_processes(uprobe->target) && !err; i++)
		err = borrowed__check_process(target__process(uprobe->target, i), error);
	if (!err)
		err = uprobe__open_regions(uprobe, only);
	if (!err)
		err = open_gate(uprobe, program, root, only, error);
	if (!err)
		err = new_probes(uprobe, only, false, error);
	if (!err)
		err = probes__add_named_files(uprobe->probes, error);
	if (!err)
		err = uprobe__attach_more(engine, 0, error);
	if (!err && uprobe->gate)
		err = gate__check(uprobe->gate, error);
	if (!err)
		collector__await_tables(uprobe->collector);
	return err;
}
