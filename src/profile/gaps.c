// SPDX-License-Identifier: GPL-3.0-or-later
#include "gaps.h"

#include <string.h>

/* clang-format off */
static const struct gap_text texts[GAPS] = {
	[GAP_NOT_NESTED] = {
		"not_nested", " call{|s} of defined sources could not be matched with {its return|their returns}, so "
		"allocator calls inside {it|them} are counted as well", "numbers may be too large" },
	[GAP_MAPPINGS_UNSURE] = {
		"mappings_unsure", " call{|s} of munmap and mremap {is|are} counted although the mapping may not have "
		"been anonymous", "numbers may be too large" },
	[GAP_OPERANDS_UNREAD] = {
		"operands_unread", " argument{|s} of USDT probes could not be read and count{s|} as 0",
		"numbers may be too small" },
	[GAP_CALLS_UNREAD] = {
		"calls_unread", " return address{|es}, argument{|s} or result{|s} of calls could not be read: bytes and "
		"blocks may be missing, and calls that allocators make themselves may be counted",
		"numbers may be wrong" },
	[GAP_PROCESSES_UNFOLLOWED] = {
		"processes_unfollowed", " process{|es} could not be followed", NULL },
	[GAP_PROCESSES_REFUSED] = {
		"processes_refused", " program{|s} had more privileges than the user who measured, and {was|were} not "
		"measured; run allocprof as root", NULL },
	[GAP_PROCESSES_UNNOTICED] = {
		"processes_unnoticed", " beginning{|s} or end{|s} of processes went unnoticed, and with {it|them} "
		"perhaps an allocator", NULL },
	[GAP_MAPPINGS_LOST] = {
		"mappings_lost", " mapping{|s} of files went unnoticed, and with {it|them} perhaps an allocator", NULL },
	[GAP_COUNTERS_UNREAD] = {
		"counters_unread", " of the kernel's counters could not be read, so that numbers may be too small",
		NULL },
	[GAP_ALLOCATIONS_UNSEEN] = {
		"allocations_unseen", " block{|s} {was|were} freed that no counted call had allocated: an allocator of "
		"the target hands out memory by a function that is not known", NULL },
	[GAP_TORN] = {
		"torn_ms", " millisecond{|s} went by while this copy was made of a target that allocated and freed: some of "
		"its numbers have what happened then, and others do not", "numbers are of moments that far apart" },
};
/* clang-format on */

const struct gap_text *gap__text(enum gap gap)
{
	return &texts[gap];
}

bool gap__is_key(const char *key)
{
	for (int gap = 0; gap < GAPS; gap++)
		if (!strcmp(texts[gap].key, key))
			return true;
	return false;
}
