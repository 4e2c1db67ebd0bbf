// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the programs' records while a target runs, and probes the files that it maps. */
#include "uprobe_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocprof.skel.h"
#include "array.h"
#include "bpf_maps.h"
#include "clock.h"
#include "collector.h"
#include "epoll.h"
#include "error.h"
#include "event_collector.h"
#include "faults.h"
#include "gate.h"
#include "live.h"
#include "mappings.h"
#include "probes.h"
#include "pythons.h"
#include "record_abi.h"
#include "regions.h"
#include "ring_reader.h"
#include "runtimes.h"
#include "target.h"
#include "tracepoints.h"

bool uprobe__finds_unprobed(const struct uprobe *uprobe)
{
	const __u64 allocating = AP_ALL_FUNCTIONS & ~AP_FREEING;

	return (uprobe->kernel.exit_tracepoints || uprobe->kernel.exit_hook) &&
	       (uprobe->options.functions & allocating) == allocating;
}

/* Selects the programs to load. */
void uprobe__choose_unprobed(struct uprobe *uprobe)
{
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	bool finds = uprobe__finds_unprobed(uprobe), hooks = finds && uprobe->kernel.exit_hook;

	tracepoints__choose(skeleton, AP_TRACEPOINT_PREPARE_EXEC, finds && !hooks,
			    uprobe__is_preempted(uprobe));
	bpf_program__set_autoload(skeleton->progs.on_exit_memory, hooks);
	bpf_program__set_autoload(skeleton->progs.on_exec_memory, hooks);
	bpf_program__set_autoload(skeleton->progs.look_at_processes, finds);
}

int uprobe__attach_unprobed(struct uprobe *uprobe, struct error *error)
{
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	struct {
		struct bpf_program *program;
		struct bpf_link **link;
	} hooks[] = {
		{ skeleton->progs.on_exit_memory, &skeleton->links.on_exit_memory },
		{ skeleton->progs.on_exec_memory, &skeleton->links.on_exec_memory },
	};

	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		if (!bpf_program__autoload(hooks[i].program))
			continue;
		*hooks[i].link = bpf_program__attach_trace(hooks[i].program);
		if (!*hooks[i].link)
			return error__set(
				error, -errno,
				"cannot trace when processes release their memory (%s): %s",
				bpf_program__name(hooks[i].program), strerror(errno));
	}
	return 0;
}

/* Finds such programs that still run. To be called before probes are detached. */
static void uprobe__look_for_unprobed(struct uprobe *uprobe)
{
	if (uprobe__finds_unprobed(uprobe) &&
	    uprobe__iterate(uprobe->skeleton->progs.look_at_processes))
		uprobe->counters->unread++;
}

void uprobe__look_at_faults(struct uprobe *uprobe)
{
	if (uprobe->faults && uprobe__iterate(uprobe->skeleton->progs.look_at_faults))
		uprobe->counters->unread++;
}

int uprobe__handle_unprobed(struct uprobe *uprobe, const void *record, size_t size)
{
	const struct ap_unprobed_record *unprobed = record;

	if (size < sizeof(*unprobed) || unprobed->type != AP_RECORD_UNPROBED)
		return 0;
	return unprobed__add(&uprobe->unprobed, unprobed);
}

/* Maximum interval between reads of events (engine.h). */
#define TICK_MS 100

/* How many stack dumps are unwound before the ring buffer is read again: the record of a new file
 * must not wait for long, since programs send stack dumps until the file's table is ready. */
#define DUMPS_AT_A_TIME 16

static int add_candidate(struct uprobe *uprobe, const struct mapping_event *event)
{
	struct mapping_candidate *candidate = malloc(sizeof(*candidate));

	if (!candidate)
		return -ENOMEM;
	candidate->event = *event;
	candidate->next = NULL;
	candidate->event.path = strdup(event->path);
	if (!candidate->event.path) {
		free(candidate);
		return -ENOMEM;
	}
	*uprobe->candidates_end = candidate;
	uprobe->candidates_end = &candidate->next;
	return 0;
}

static void handle_mapping(const struct mapping_event *event, void *context)
{
	struct uprobe *uprobe = context;
	int err = collector__handle_mapping(uprobe->collector, event);

	if (!err && event->kind == MAPPING_ADDED)
		err = add_candidate(uprobe, event);
	if (err)
		uprobe->mappings_dropped++;
}

void uprobe__read_mappings(struct uprobe *uprobe)
{
	/* The events belong to the parent process. */
	if (uprobe->is_snapshot)
		return;
	mapping_events__read(uprobe->mapping_events, handle_mapping, uprobe);
}

static void gather_mappings(void *context)
{
	const struct uprobe *uprobe = context;

	if (!uprobe->is_snapshot)
		mapping_events__gather(uprobe->mapping_events);
}

struct probe_program uprobe__at_probes(struct uprobe *uprobe, struct bpf_program *program,
				       pid_t pid)
{
	return (struct probe_program){
		.program = program,
		.multi = uprobe->multi,
		.pid = pid,
		.ends_translators = uprobe->options.ends_translators,
		.meanwhile = gather_mappings,
		.context = uprobe,
	};
}

void uprobe__refresh_mappings(void *context)
{
	uprobe__read_mappings(context);
}

const struct ap_within *uprobe__code_within(int fd, const char *path, void *context)
{
	const struct uprobe *uprobe = context;

	/* If there is a copy, the functions' probes are in the copy. */
	fd = uprobe__isolate(uprobe, fd, path, false);
	return uprobe->gate ? gate__within(uprobe->gate, fd, path) : NULL;
}

int uprobe__meet_module(__u32 module, int fd, const char *path, struct collector_code *loop,
			void *context)
{
	const struct uprobe *uprobe = context;

	return uprobe->pythons ? pythons__meet(uprobe->pythons, module, fd, path, loop) : 0;
}

int uprobe__set_within(__u32 module, const struct ap_within *within, void *context)
{
	const struct uprobe *uprobe = context;

	return bpf_map_update_elem(bpf_map__fd(uprobe->skeleton->maps.within_ranges), &module,
				   within, BPF_ANY)
		       ? -errno
		       : 0;
}

/* Looks for allocators in mappings of followed processes. Mappings of other processes are kept for
 * one tick, since the record of a process's fork may be delayed by a reserved record before it in
 * the ring buffer. */
static void look_at_candidates(struct uprobe *uprobe)
{
	__u64 now = clock__now_ns();
	struct mapping_candidate *candidate, *kept = NULL, **kept_end = &kept;

	while ((candidate = uprobe->candidates)) {
		const struct mapping_event *event = &candidate->event;
		enum measuring_engine measuring = MEASURED_BY_UPROBE;
		bool is_followed;

		uprobe->candidates = candidate->next;
		/* The calls below may add candidates. */
		if (!uprobe->candidates)
			uprobe->candidates_end = &uprobe->candidates;
		candidate->next = NULL;
		is_followed = collector__is_followed(uprobe->collector, event->pid, event->time_ns);
		if (is_followed)
			measuring = uprobe__measuring_engine(uprobe, event->pid, event->time_ns);
		if (measuring == MEASURED_BY_UNKNOWN) {
			*kept_end = candidate;
			kept_end = &candidate->next;
			continue;
		}
		if (is_followed && measuring == MEASURED_BY_UPROBE) {
			uprobe->late_pid = event->pid;
			probes__notice_mapping(uprobe->probes, event);
			uprobe->late_pid = 0;
			runtimes__notice_mapping(uprobe->runtimes, event);
		} else if (!is_followed && now < event->time_ns + TICK_MS * NS_PER_MS) {
			*kept_end = candidate;
			kept_end = &candidate->next;
			continue;
		} else if (!is_followed) {
			collector__forget_process(uprobe->collector, event->pid);
		}
		free(candidate->event.path);
		free(candidate);
	}
	if (!kept)
		return;
	uprobe->candidates = kept;
	uprobe->candidates_end = kept_end;
}

/* Gives hits that wait their whole budget again, since user space makes progress. */
static void refill_waits(struct uprobe *uprobe)
{
	__atomic_store_n(&uprobe->skeleton->bss->waits.left_ns, AP_WAITS_BUDGET_NS,
			 __ATOMIC_RELAXED);
}

/* Unwinds some stack dumps. While waiting hits spin on all processors, each dump may take a
 * second. */
static int settle(struct uprobe *uprobe)
{
	int err, left = DUMPS_AT_A_TIME;

	do {
		bool has_dump = collector__has_dumps(uprobe->collector);

		err = collector__settle(uprobe->collector, 1);
		if (has_dump)
			refill_waits(uprobe);
	} while (!err && --left && collector__has_dumps(uprobe->collector));
	return err;
}

/*
 * A process's fork record precedes its first mapping. So this reads the pending mappings first,
 * then the records, and then checks which mappings are of followed processes.
 */
int uprobe__read_events(struct uprobe *uprobe)
{
	int err;

	if (uprobe->read_err)
		return uprobe->read_err;
	if (uprobe->options.limits.no_last_read && uprobe->target->end_ns)
		return -EIO;
	if (!uprobe->is_snapshot)
		probes__drop_rewritten(uprobe->probes);
	uprobe__read_mappings(uprobe);
	err = ring_reader__read(uprobe->ring);
	if (collector__brings_tables(uprobe->collector) || err > 0)
		refill_waits(uprobe);
	look_at_candidates(uprobe);
	runtimes__attend(uprobe->runtimes, clock__now_ns());
	if (uprobe->gate)
		gate__poll(uprobe->gate);
	if (err < 0)
		return err;
	err = settle(uprobe);
	if (err)
		return err;
	if (uprobe->live) {
		ring_reader__step_back(uprobe->ring);
		err = live__attend(uprobe->live, uprobe->collector);
		if (uprobe->events)
			event_collector__attend(uprobe->events);
		ring_reader__resume(uprobe->ring);
		return err;
	}
	if (!count_maps__want_drain(&uprobe->counts))
		return 0;
	err = count_maps__begin_drain(&uprobe->counts);
	if (err)
		return err;
	err = ring_reader__read(uprobe->ring);
	if (err >= 0)
		err = settle(uprobe);
	if (err < 0)
		return err;
	ring_reader__step_back(uprobe->ring);
	err = count_maps__end_drain(&uprobe->counts, uprobe->collector);
	ring_reader__resume(uprobe->ring);
	return err;
}

int uprobe__watch(const struct engine *engine, int epoll_fd)
{
	const struct uprobe *uprobe = uprobe__of(engine);
	int contents_fd = probes__contents_fd(uprobe->probes);
	int err = epoll__watch(epoll_fd, ring_reader__fd(uprobe->ring));

	if (!err && contents_fd >= 0)
		err = epoll__watch(epoll_fd, contents_fd);
	return err ? err : epoll__watch(epoll_fd, mapping_events__fd(uprobe->mapping_events));
}

int uprobe__timeout_ms(const struct engine *engine, int most)
{
	const struct uprobe *uprobe = uprobe__of(engine);

	if (collector__has_dumps(uprobe->collector) || ring_reader__has_kept(uprobe->ring))
		return 0;
	return uprobe->live ? live__timeout_ms(uprobe->live, most) : most;
}

int uprobe__read(struct engine *engine)
{
	return uprobe__read_events(uprobe__of(engine));
}

static int count_entry(void *context, const void *key, const void *value)
{
	(*(__u64 *)context)++;
	return 0;
}

/* Number of entries in the programs' map of processes, without the target's. */
__u64 uprobe__count_followed(const struct uprobe *uprobe)
{
	const struct bpf_map *processes = uprobe->skeleton->maps.processes;
	__u64 n = 0, n_own;

	if (map_batch__each(bpf_map__fd(processes), bpf_map__key_size(processes),
			    bpf_map__value_size(processes), false, count_entry, &n))
		uprobe->counters->unread++;
	/* If another engine measures, too, the target may not be among them. */
	if (uprobe->fallback &&
	    !collector__is_followed(uprobe->collector, uprobe->target->pid, clock__now_ns()))
		return n;
	n_own = target__n_left(uprobe->target);
	return n > n_own ? n - n_own : 0;
}

/*
 * Lets no program count a call from here on. The kernel removes probes one by one, which takes
 * milliseconds, while the others are still hit: otherwise calls of the probes removed last would
 * count, and those of the first would not.
 */
int uprobe__stop(struct engine *engine)
{
	struct uprobe *uprobe = uprobe__of(engine);
	struct ap_gate *gate = &uprobe->skeleton->bss->gate;
	int err = 0;

	if (uprobe->has_stopped)
		return 0;
	uprobe->has_stopped = true;
	uprobe__look_at_faults(uprobe);
	if (uprobe->live) {
		/* This lets the live collector know of all processes that have ended. */
		err = uprobe__read_events(uprobe);
		if (!err)
			err = live__stop(uprobe->live, uprobe->target->end_ns);
	}
	__atomic_store_n(&gate->open, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&gate->running, 0, __ATOMIC_RELAXED);
	return err;
}

int uprobe__read_blocks(struct engine *engine, pid_t pid, struct reach_process *out)
{
	struct uprobe *uprobe = uprobe__of(engine);

	return uprobe__read_events(uprobe) ?: live__read_blocks(uprobe->live, pid, out);
}

static bool is_anyone_followed(const struct uprobe *uprobe)
{
	__u32 first;

	return bpf_map_get_next_key(bpf_map__fd(uprobe->skeleton->maps.processes), NULL, &first) !=
	       -ENOENT;
}

int uprobe__finish(struct engine *engine)
{
	struct uprobe *uprobe = uprobe__of(engine);
	int err;

	if (uprobe->is_snapshot)
		return uprobe__collect_snapshot(uprobe);
	err = uprobe__stop(engine);
	uprobe__look_for_unprobed(uprobe);
	uprobe->processes_left = uprobe__count_followed(uprobe);
	mapping_events__finish(uprobe->mapping_events);
	/* Hits of other processes are not counted, so it does not matter when they end. */
	probes__detach(uprobe->probes, is_anyone_followed(uprobe));
	mappings__detach(uprobe->skeleton);
	faults__free(uprobe->faults);
	uprobe->faults = NULL;
	uprobe__detach_fallback(uprobe);
	gate__detach(uprobe->gate);
	regions__detach(uprobe->regions);
	collector__finish_tables(uprobe->collector);
	if (!err)
		err = uprobe__read_events(uprobe);
	for (size_t i = 0; i < uprobe->unprobed.n; i++)
		probes__blame(uprobe->probes, &uprobe->unprobed.list[i]);
	if (!err)
		err = uprobe__list_fallback(uprobe);
	if (!err && uprobe->regions)
		regions__collect(uprobe->regions);
	if (!err)
		err = collector__settle(uprobe->collector, SIZE_MAX);
	if (!err && uprobe->live)
		err = live__collect(uprobe->live, uprobe->collector);
	if (uprobe->events)
		event_collector__finish(uprobe->events, uprobe->skeleton->bss->events_lost);
	if (uprobe->live)
		return err;
	if (!err && uprobe->options.stacks)
		return count_maps__drain_all(&uprobe->counts, uprobe->collector);
	return err;
}
