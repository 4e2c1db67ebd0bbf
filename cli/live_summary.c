// SPDX-License-Identifier: GPL-3.0-or-later
#include "live_summary.h"

#include "message.h"
#include "number.h"
#include "session.h"

/* Kernel memory that is worth telling of. */
#define MUCH_KERNEL_MEMORY (256ULL << 20)

void live_summary__print(const struct session_live *live, bool target_runs)
{
	__u64 allocations = live->stats[AP_STAT_ALLOCATIONS];
	__u64 temporary = live->stats[AP_STAT_TEMPORARY];

	message__print("allocations: %s of %s, at most %s at a time",
		       number__count(allocations).text,
		       number__bytes(live->stats[AP_STAT_ALLOCATED_BYTES], false).text,
		       number__bytes(live->peak_bytes, false).text);
	message__print("still live:  %s of %s (%s of the allocations)%s",
		       number__count(live->blocks).text,
		       number__bytes(live->size_bytes, false).text,
		       number__share(live->blocks, allocations).text,
		       target_runs ? ", and may be freed yet" : "");
	message__print("temporary:   %s of %s (%s of the allocations)",
		       number__count(temporary).text,
		       number__bytes(live->stats[AP_STAT_TEMPORARY_BYTES], false).text,
		       number__share(temporary, allocations).text);
	if (live->memory.bytes >= MUCH_KERNEL_MEMORY)
		message__print("the kernel kept %s for it, %llu bytes a live block",
			       number__bytes(live->memory.bytes, false).text,
			       live->memory.entries ? live->memory.bytes / live->memory.entries
						    : 0);
}
