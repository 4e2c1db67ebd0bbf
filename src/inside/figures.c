// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Adds up what was counted in this process for the program itself, which reads it by allocprof_read() of
 * include/allocprof.h. */
#include <linux/errno.h>

#include "allocprof.h"
#include "counting.h"
#include "regions.h"

#define EXPORT __attribute__((visibility("default")))

static __u64 load(const __u64 *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* The counters behind the figures, of all threads. */
struct counted {
	struct ap_site_counts functions[AP_FUNCTIONS];
	__u64 stats[AP_STATS];
};

static bool is_thread(const char *region)
{
	return region && text__equal(region, ALLOCPROF_THREAD);
}

static void add_words(__u64 *sum, const __u64 *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum__add(&sum[i], load(&words[i]));
}

static void add_functions(struct ap_site_counts *sum, const struct ap_site_counts *functions,
			  size_t n)
{
	add_words((__u64 *)sum, (const __u64 *)functions, n * sizeof(*sum) / sizeof(__u64));
}

static void add_calls_of(struct counted *sum, const struct thread *thread)
{
	add_functions(sum->functions, thread->shared->functions, AP_DEFINED);
	if (thread->defined)
		add_functions(sum->functions + AP_DEFINED, thread->defined->functions,
			      AP_FUNCTIONS - AP_DEFINED);
}

static void add_stats(__u64 stats[AP_STATS], const struct thread *thread)
{
	for (; thread; thread = thread->next)
		add_words(stats, thread->shared->stats, AP_STATS);
}

static void add_process(struct counted *sum)
{
	const struct thread *thread = process__first_thread();

	add_stats(sum->stats, thread);
	add_stats(sum->stats, stand_ins__first());
	for (; thread; thread = thread->next)
		add_calls_of(sum, thread);
}

/* Adds what was counted in the sets that have the region @number. Only threads have counters of sets, and no
 * stand-ins. */
static void add_region(struct counted *sum, __u32 number, __u64 *entered)
{
	const __u64 *masks = process.header->regions.masks;
	const struct thread *thread = process__first_thread();

	for (; thread; thread = thread->next) {
		const struct regions *regions = __atomic_load_n(&thread->regions, __ATOMIC_ACQUIRE);

		if (!regions)
			continue;
		*entered += load(&regions->shared->begins[number]);
		for (__u32 set = 1; set < AP_MAX_REGION_SETS; set++) {
			const struct inside_region_counts *counts =
				__atomic_load_n(&regions->sets[set], __ATOMIC_ACQUIRE);

			if (!counts || !(load(&masks[set]) >> number & 1))
				continue;
			add_functions(sum->functions, counts->functions, AP_FUNCTIONS);
			add_words(sum->stats, counts->stats, AP_STATS);
		}
	}
}

static bool has_stats(const __u64 *stats, __u32 first, __u32 n)
{
	for (__u32 i = 0; i < n; i++)
		if (stats[first + i])
			return true;
	return false;
}

/* Returns whether calls of the process, or their regions, are not known. */
static bool has_gaps(bool of_region)
{
	static const enum inside_gap gaps[] = { INSIDE_GAP_THREADS, INSIDE_GAP_EARLY,
						INSIDE_GAP_FUNCTIONS, INSIDE_GAP_LOADS,
						INSIDE_GAP_COLLECTED };
	const struct inside_header *header = process.header;
	__u64 stats[AP_STATS];

	memset(stats, 0, sizeof(stats));
	add_stats(stats, process__first_thread());
	add_stats(stats, stand_ins__first());
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
		if (load(&header->gaps[gaps[i]]))
			return true;
	if (of_region && (has_stats(stats, AP_STAT_REGION_GAP, AP_REGION_GAPS) ||
			  load(&header->regions.unnumbered) || load(&header->regions.unnamed)))
		return true;
	return has_stats(stats, AP_STAT_LOST, AP_LOST_REASONS) || stats[AP_STAT_DROPPED] ||
	       has_stats(stats, AP_STAT_UNTRACKED, AP_UNTRACKED_REASONS);
}

/* As `stat` adds up the calls of functions. */
static void add_calls(struct allocprof_figures *figures, const struct counted *counted)
{
	for (__u32 i = 0; i < AP_FUNCTIONS; i++) {
		const struct ap_site_counts *counts = &counted->functions[i];

		if (AP_FREEING >> i & 1) {
			figures->deallocations += counts->calls - counts->null;
		} else if (AP_REALLOCATING >> i & 1) {
			figures->allocations += counts->fresh;
			figures->bytes_allocated += counts->fresh_size_bytes;
			figures->deallocations += counts->released;
			figures->reallocations += counts->calls - counts->fresh - counts->released;
			figures->bytes_reallocated += counts->size_bytes - counts->fresh_size_bytes;
		} else {
			figures->allocations += counts->calls;
			figures->bytes_allocated += counts->size_bytes;
		}
	}
	figures->live = figures->allocations - figures->deallocations;
}

/* As `stat --live` adds up what became of the calls. */
static void add_blocks(struct allocprof_figures *figures, const __u64 *stats)
{
	__u64 grown = stats[AP_STAT_GROWN_BYTES], shrunk = stats[AP_STAT_SHRUNK_BYTES];
	__u64 moved = stats[AP_STAT_FREED_BYTES] - stats[AP_STAT_DEALLOCATED_BYTES];

	figures->reallocations = stats[AP_STAT_REALLOCATIONS];
	figures->allocations = stats[AP_STAT_ALLOCATIONS] - figures->reallocations;
	figures->deallocations = stats[AP_STAT_DEALLOCATIONS];
	figures->bytes_allocated = stats[AP_STAT_ALLOCATED_BYTES] - moved + shrunk;
	figures->bytes_deallocated = stats[AP_STAT_DEALLOCATED_BYTES] + shrunk;
	figures->bytes_reallocated = grown - shrunk;
	figures->live = figures->allocations - figures->deallocations;
	figures->live_bytes = stats[AP_STAT_ALLOCATED_BYTES] - stats[AP_STAT_FREED_BYTES];
	figures->temporary = stats[AP_STAT_TEMPORARY];
	figures->temporary_bytes = stats[AP_STAT_TEMPORARY_BYTES];
}

static void add_thread(struct counted *sum, const struct thread *thread)
{
	add_calls_of(sum, thread);
	add_words(sum->stats, thread->shared->stats, AP_STATS);
}

/* Returns whether the figures may lack calls that a signal handler made within another call of the thread: stand-ins
 * have counted those, and not by thread. */
static bool lacks_handlers(const char *region, bool is_live)
{
	return is_thread(region) && is_live && stand_ins__first();
}

static int read_figures(const char *region, struct allocprof_figures *figures)
{
	bool is_live = process.mode == INSIDE_LIVE && !process.samples;
	bool is_begun = true;
	struct counted counted;

	memset(&counted, 0, sizeof(counted));
	if (is_thread(region)) {
		add_thread(&counted, thread__current());
	} else if (region) {
		__u32 number = region__number(region);

		is_begun = number < AP_MAX_REGIONS;
		if (is_begun)
			add_region(&counted, number, (__u64 *)&figures->entered);
	} else {
		add_process(&counted);
		if (is_live)
			figures->peak_bytes = load(&process.header->live.max_bytes);
	}
	if (is_live)
		add_blocks(figures, counted.stats);
	else
		add_calls(figures, &counted);
	/* A thread that goes from one task to the next frees the blocks of one within another. */
	if (region)
		figures->temporary = figures->temporary_bytes = 0;
	if (has_gaps(region && !is_thread(region)) || lacks_handlers(region, is_live))
		return ALLOCPROF_READ_INCOMPLETE;
	if (!is_begun)
		return ALLOCPROF_READ_NOT_BEGUN;
	return is_live ? ALLOCPROF_READ_LIVE : ALLOCPROF_READ_COUNTS;
}

/* Called by allocprof_read(). @bytes: the size of the program's struct allocprof_figures, which may have fewer
 * fields than this library's. Fields that only it has stay 0. */
EXPORT int allocprof_read_(const char *region, void *out, unsigned long bytes);
EXPORT int allocprof_read_(const char *region, void *out, unsigned long bytes)
{
	struct allocprof_figures figures;
	int answer;

	if (!thread__current() || header__has_ended(process.header))
		return ALLOCPROF_READ_NOBODY;
	if (region && !is_thread(region) && !process.header->settings.regions)
		return ALLOCPROF_READ_NO_REGIONS;
	memset(&figures, 0, sizeof(figures));
	answer = read_figures(region, &figures);
	memcpy(out, &figures, bytes < sizeof(figures) ? bytes : sizeof(figures));
	return answer;
}
