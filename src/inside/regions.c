// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "regions.h"

#include <asm/unistd.h>
#include <linux/signal.h>

#include "call.h"
#include "memory.h"
#include "open_regions_abi.h"

#define EXPORT __attribute__((visibility("default")))

#define NO_REGION AP_MAX_REGIONS

/* The kind of a mark for an allocator's call, at which scopes of regions may have ended. */
#define MARK_CALL 16

struct mark {
	__u32 kind; /* enum ap_region_mark or MARK_CALL */
	struct ap_region_sweep sweep;
	__u64 sp;
	__u32 region;
};

/* A cache of names that were looked up: address << NUMBER_BITS | number of the region. */
#define KNOWN_NAMES 256
#define NUMBER_BITS 6
static __u64 known[KNOWN_NAMES];
_Static_assert(1 << NUMBER_BITS == AP_MAX_REGIONS, "a number of a region has so many bits");

/* Returns the FNV-1a hash of the name, and stores its length in *@length, or 0 if it is not a
 * valid name. */
static __u64 hash_of(const char *name, __u32 *length)
{
	__u64 hash = 0xcbf29ce484222325ULL;
	__u32 n = 0;

	for (; n <= AP_REGION_NAME_BYTES && name[n]; n++)
		hash = (hash ^ (__u8)name[n]) * 0x100000001b3ULL;
	*length = n <= AP_REGION_NAME_BYTES ? n : 0;
	return hash | 1;
}

static void publish_name(struct inside_region *region, const char *name, __u32 length)
{
	if (__atomic_load_n(&region->state, __ATOMIC_ACQUIRE) == INSIDE_READY)
		return;
	memcpy(region->name, name, length);
	region->name[length] = 0;
	__atomic_store_n(&region->state, INSIDE_READY, __ATOMIC_RELEASE);
}

/* Returns the number of the region, or NO_REGION if it has none. A region that has none is counted
 * as a gap where it begins. */
static __u32 look_up(const char *name, bool begins)
{
	struct inside_regions *regions = &process.header->regions;
	__u32 length, i;
	__u64 hash = hash_of(name, &length);

	for (i = 0; length && i < AP_MAX_REGIONS; i++) {
		__u64 key = __atomic_load_n(&regions->list[i].key, __ATOMIC_RELAXED);

		if (!key && begins)
			key = __sync_val_compare_and_swap(&regions->list[i].key, 0, hash) ?: hash;
		if (key != hash)
			continue;
		publish_name(&regions->list[i], name, length);
		return i;
	}
	if (begins)
		__atomic_fetch_add(length ? &regions->unnumbered : &regions->unnamed, 1,
				   __ATOMIC_RELAXED);
	return NO_REGION;
}

/* Returns whether @name still is the name of the region @number. It is a literal, but another
 * library may be mapped where the one that contained it was. */
static bool is_name_of(const char *name, __u32 number)
{
	const char *known_name = process.header->regions.list[number].name;
	__u32 i = 0;

	while (i < AP_REGION_NAME_BYTES && name[i] && name[i] == known_name[i])
		i++;
	return name[i] == known_name[i];
}

static __u32 number_of(const char *name, bool begins)
{
	__u64 *slot = &known[((__u64)name >> 2 ^ (__u64)name >> 10) % KNOWN_NAMES];
	__u64 value = __atomic_load_n(slot, __ATOMIC_RELAXED);
	__u32 number = value % AP_MAX_REGIONS;

	if (likely(value >> NUMBER_BITS == (__u64)name && is_name_of(name, number)))
		return number;
	number = look_up(name, begins);
	if (number != NO_REGION)
		__atomic_store_n(slot, (__u64)name << NUMBER_BITS | number, __ATOMIC_RELAXED);
	return number;
}

__u32 region__number(const char *name)
{
	return number_of(name, false);
}

/* Asks the kernel whether this function, and so its caller, runs on the alternate signal stack,
 * which may be above all frames of the thread, and below those that the handler interrupted. */
static bool is_alternate_stack(void)
{
	stack_t stack;

	return !sys(__NR_sigaltstack, 0, (long)&stack, 0, 0, 0, 0) && stack.ss_flags & SS_ONSTACK;
}

static void count_gap(struct thread *thread, enum ap_region_gap gap)
{
	counter__add(&thread->shared->stats[AP_STAT_REGION_GAP + gap], 1);
}

/* Returns the number of the set @mask, and assigns one on first use. */
static __u32 set_number(__u64 mask)
{
	if (!mask)
		return 0;
	for (__u32 i = 1; i < AP_MAX_REGION_SETS; i++)
		if (ap_region_mask__is(&process.header->regions.masks[i], mask))
			return i;
	return AP_NO_REGION_SET;
}

/* Applies the mark to the open regions. Returns whether anything changed; *@has_room becomes false
 * if there is no room for a region that begins. */
static bool apply(struct ap_region_thread *open, const struct mark *mark, bool *has_room)
{
	bool is_swept = ap_region_thread__sweep(open, &mark->sweep, 0);

	*has_room = true;
	if (mark->kind == MARK_CALL && !is_swept)
		return false;
	if (ap_region_mark__begins(mark->kind))
		*has_room = ap_region_thread__open(open, &mark->sweep, mark->kind);
	else if (mark->kind != MARK_CALL)
		ap_region_thread__remove(
			open, &mark->sweep,
			ap_region_thread__find(open, mark->sp, mark->region, mark->kind, 0), 0);
	open->set = set_number(ap_region_thread__settle(open));
	return true;
}

/* Takes a copy that is neither in use nor being changed. Returns REGION_COPIES if there is none. */
static __u32 take_copy(struct regions *regions, __u64 current)
{
	for (__u32 i = 0; i < REGION_COPIES; i++) {
		if (i == current % REGION_COPIES || regions->taken[i])
			continue;
		regions->taken[i] = 1;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		return i;
	}
	return REGION_COPIES;
}

static void give_copy(struct regions *regions, __u32 at)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	regions->taken[at] = 0;
}

/* Changes the thread's open regions. If a signal handler has changed them meanwhile, the change is
 * made again, to the handler's state. */
static void change(struct thread *thread, const struct mark *mark)
{
	struct regions *regions = thread->regions;
	__u64 before, after;
	bool has_room = true, is_done = false;
	__u32 at;

	while (!is_done) {
		before = __atomic_load_n(&regions->current, __ATOMIC_RELAXED);
		at = take_copy(regions, before);
		if (at == REGION_COPIES) {
			count_gap(thread, AP_REGION_GAP_THREADS);
			return;
		}
		/* A handler may have taken this copy and put it into use before it was taken here. */
		if (__atomic_load_n(&regions->current, __ATOMIC_RELAXED) == before) {
			regions->copies[at] = regions->copies[before % REGION_COPIES];
			after = (before / REGION_COPIES + 1) * REGION_COPIES + at;
			is_done = !apply(&regions->copies[at], mark, &has_room) ||
				  __atomic_compare_exchange_n(&regions->current, &before, after,
							      false, __ATOMIC_RELEASE,
							      __ATOMIC_RELAXED);
		}
		give_copy(regions, at);
	}
	if (!has_room)
		count_gap(thread, AP_REGION_GAP_DEPTH);
}

static struct inside_region_counts *counts_of(struct thread *thread, __u32 set)
{
	struct regions *regions = thread->regions;
	struct inside_region_counts *counts, *none = NULL;
	__u64 offset;

	if (!set)
		return NULL;
	if (set >= AP_MAX_REGION_SETS) {
		count_gap(thread, AP_REGION_GAP_SETS);
		return NULL;
	}
	if (likely(regions->sets[set]))
		return regions->sets[set];
	counts = memory__take(sizeof(*counts), &offset);
	if (!counts) {
		count_gap(thread, AP_REGION_GAP_THREADS);
		return NULL;
	}
	/* A signal's handler may have been here before. */
	if (__atomic_compare_exchange_n(&regions->sets[set], &none, counts, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		__atomic_store_n(&regions->shared->sets[set], offset, __ATOMIC_RELEASE);
	return regions->sets[set];
}

struct inside_region_counts *regions__at_call(struct thread *thread, __u64 sp)
{
	struct mark mark = { .kind = MARK_CALL };
	const struct ap_region_thread *open = regions__open(thread);
	__u32 n = open->n;

	if (!n)
		return NULL;
	if (unlikely(sp >= open->floor)) {
		mark.sweep = ap_region_sweep__at_call(sp);
		mark.sweep.alternate = is_alternate_stack();
		change(thread, &mark);
		open = regions__open(thread);
	}
	return counts_of(thread, open->set);
}

static bool make_regions(struct thread *thread)
{
	struct regions *regions, *none = NULL;
	__u64 offset;

	if (likely(thread->regions))
		return true;
	regions = memory__take_private(sizeof(*regions));
	if (!regions)
		return false;
	regions->shared = memory__take(sizeof(*regions->shared), &offset);
	if (!regions->shared)
		return false;
	regions->copies[0].floor = ~0ULL;
	/* A signal's handler may have been here before. */
	if (__atomic_compare_exchange_n(&thread->regions, &none, regions, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		__atomic_store_n(&thread->shared->regions, offset, __ATOMIC_RELEASE);
	return true;
}

void regions__begin_thread(struct thread *thread, const struct ap_region_thread *open)
{
	struct regions *regions = thread->regions;

	if (regions) {
		memset(regions->taken, 0, sizeof(regions->taken));
		regions->current = 0;
		memset(&regions->copies[0], 0, sizeof(regions->copies[0]));
		regions->copies[0].floor = ~0ULL;
	}
	if (!open || !open->n)
		return;
	if (make_regions(thread))
		thread->regions->copies[0] = *open;
	else
		count_gap(thread, AP_REGION_GAP_THREADS);
}

static void begin(struct thread *thread, struct mark *mark)
{
	/* A begin is counted even if it has no effect, as in the BPF programs. */
	if (!make_regions(thread)) {
		count_gap(thread, AP_REGION_GAP_THREADS);
		return;
	}
	counter__add(&thread->regions->shared->begins[mark->region], 1);
	change(thread, mark);
}

/* Called by the marks of include/allocprof.h. @kind is an enum ap_region_mark. */
EXPORT void allocprof_mark_(int kind, const char *name);
EXPORT void allocprof_mark_(int kind, const char *name)
{
	const __u64 *frame = FRAME;
	struct thread *thread = thread__current();
	struct mark mark = { .kind = kind, .sp = frame__sp(frame) };
	bool begins = ap_region_mark__begins(kind);

	if (!thread || !process.header->settings.regions ||
	    process.header->gate == INSIDE_STOPPED || kind < 0 || kind > AP_REGION_RESUME)
		return;
	if (!begins && !thread->regions)
		return;
	if (kind != AP_REGION_LEAVE)
		mark.region = number_of(name, begins);
	if (mark.region == NO_REGION)
		return;
	mark.sweep = begins ? ap_region_sweep__at_begin(mark.sp, frame[1], mark.region)
			    : ap_region_sweep__at_end(mark.sp);
	mark.sweep.alternate = is_alternate_stack();
	if (begins)
		begin(thread, &mark);
	else
		change(thread, &mark);
}
