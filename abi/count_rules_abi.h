/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules by which the programs of bpf/ and src/inside count a call, and the begin and end of a block
 * (docs/semantics.md, docs/live.md). Each side defines these macros before it includes this header:
 *
 *	AP_CALLER		type that identifies the caller: its open regions and its statistics
 *	AP_ADD(counter, n)				adds to a counter
 *	AP_ADD_BYTES(sum, size_bytes)			adds a requested size to a sum, which saturates
 *	AP_ADD_STAT(caller, which, n)			adds to the statistic @which, an enum ap_stat
 *	AP_HAS_REGIONS(caller)				whether the caller has open regions
 *	AP_ADD_IN_REGIONS(caller, which, n)		as AP_ADD_STAT(), in the caller's open regions
 *	AP_ADD_ESTIMATE(estimate, weight, size_bytes)	adds to an estimate, only with sampling
 *	AP_IS_SAMPLED					whether calls are sampled
 *	AP_SIGNIFICANT_BITS(value)			number of significant bits
 *
 * @n: number of calls or blocks that this one stands for, of @bytes together.
 */
#ifndef ALLOCPROF_COUNT_RULES_ABI_H
#define ALLOCPROF_COUNT_RULES_ABI_H

#include "abi.h"

#define AP_COUNT_RULE static inline __attribute__((always_inline, unused))

/* Adds a call of @function to the counters of a site or of a set of regions. */
AP_COUNT_RULE void ap_site_counts__add(struct ap_site_counts *counts, __u32 function,
				       __u64 size_bytes, __u64 pointer, int overflows)
{
	AP_ADD(&counts->calls, 1);
	if (AP_FREEING >> function & 1) {
		if (!pointer)
			AP_ADD(&counts->null, 1);
		return;
	}
	AP_ADD_BYTES(&counts->size_bytes, size_bytes);
	if (AP_REALLOCATING >> function & 1) {
		if (!pointer) {
			AP_ADD(&counts->fresh, 1);
			AP_ADD_BYTES(&counts->fresh_size_bytes, size_bytes);
		} else if (!size_bytes && !overflows) {
			AP_ADD(&counts->released, 1);
		}
	}
}

/* Returns whether the call asks for more than any process can have. */
AP_COUNT_RULE int ap_call__is_impossible(__u32 function, __u64 size_bytes, int overflows)
{
	return (size_bytes >= AP_IMPOSSIBLE_BYTES || overflows) && !(AP_FREEING >> function & 1);
}

/* Returns whether @now live bytes begin a new peak generation. One begins per growth by 1/128 over
 * @mark, what was live when the last one began, which bounds the error of the peak by stack. */
AP_COUNT_RULE int ap_peak__is_over(__u64 now, __u64 mark)
{
	return now > mark + (mark >> 7);
}

/* Notes how much of @record was live when the peak generation began. To be called before the
 * record changes. */
AP_COUNT_RULE void ap_blocks__note_peak(struct ap_blocks *record)
{
	record->peak = record->allocations - record->frees;
	record->peak_bytes = record->size_bytes - record->freed_bytes;
}

AP_COUNT_RULE void ap_blocks__begin(struct ap_blocks *record, AP_CALLER caller,
				    const struct ap_block *block, __u64 n, __u64 bytes)
{
	AP_ADD(&record->allocations, n);
	AP_ADD(&record->size_bytes, bytes);
	AP_ADD_ESTIMATE(&record->of_allocations, block->weight, block->size_bytes);
	AP_ADD_STAT(caller, AP_STAT_ALLOCATIONS, n);
	AP_ADD_STAT(caller, AP_STAT_ALLOCATED_BYTES, bytes);
}

enum ap_block_end {
	AP_BLOCK_FREED,
	AP_BLOCK_MOVED,	 /* realloc returned another block for it */
	AP_BLOCK_UNSEEN, /* the address was allocated again without a free in between */
};

AP_COUNT_RULE void ap_blocks__end(struct ap_blocks *record, AP_CALLER caller,
				  const struct ap_block *block, __u64 n, __u64 bytes,
				  enum ap_block_end how)
{
	AP_ADD(&record->frees, n);
	AP_ADD(&record->freed_bytes, bytes);
	AP_ADD_ESTIMATE(&record->of_frees, block->weight, block->size_bytes);
	AP_ADD_STAT(caller, AP_STAT_FREES, n);
	AP_ADD_STAT(caller, AP_STAT_FREED_BYTES, bytes);
	if (how != AP_BLOCK_MOVED) {
		AP_ADD_STAT(caller, AP_STAT_DEALLOCATIONS, n);
		AP_ADD_STAT(caller, AP_STAT_DEALLOCATED_BYTES, bytes);
	}
}

/* Counts a block that ended before the next allocation of the thread that has allocated it. */
AP_COUNT_RULE void ap_blocks__end_temporary(struct ap_blocks *record, AP_CALLER caller,
					    const struct ap_block *block, __u64 n, __u64 bytes)
{
	AP_ADD(&record->temporary, n);
	AP_ADD(&record->temporary_bytes, bytes);
	AP_ADD_ESTIMATE(&record->of_temporary, block->weight, block->size_bytes);
	AP_ADD_STAT(caller, AP_STAT_TEMPORARY, n);
	AP_ADD_STAT(caller, AP_STAT_TEMPORARY_BYTES, bytes);
}

/* Counts a block that the thread @thread has freed; 0: it has never allocated. */
AP_COUNT_RULE void ap_blocks__end_by(struct ap_blocks *record, const struct ap_block *block,
				     __u32 thread, __u64 n, enum ap_block_end how)
{
	if (how == AP_BLOCK_FREED && thread != block->thread)
		AP_ADD(&record->freed_by_others, n);
}

/* Returns whether the block @now, which realloc has returned for @old, is one of the same stack and
 * thread that has grown. */
AP_COUNT_RULE int ap_block__has_grown(const struct ap_block *old, const struct ap_block *now)
{
	return now->record == old->record && now->thread == old->thread &&
	       now->size_bytes > old->size_bytes;
}

AP_COUNT_RULE void ap_blocks__grow(struct ap_blocks *record, __u64 n, __u64 old_bytes)
{
	AP_ADD(&record->grown, n);
	AP_ADD(&record->grown_bytes, old_bytes);
}

AP_COUNT_RULE void ap_blocks__fail(struct ap_blocks *record, AP_CALLER caller, __u64 n)
{
	AP_ADD(&record->failed, n);
	AP_ADD_STAT(caller, AP_STAT_FAILED, n);
	if (AP_HAS_REGIONS(caller))
		AP_ADD_IN_REGIONS(caller, AP_STAT_FAILED, 1);
}

/* Count the begin and the end of a block by open regions. */
AP_COUNT_RULE void ap_regions__begin_block(AP_CALLER caller, __u64 size_bytes)
{
	if (!AP_HAS_REGIONS(caller))
		return;
	AP_ADD_IN_REGIONS(caller, AP_STAT_ALLOCATIONS, 1);
	AP_ADD_IN_REGIONS(caller, AP_STAT_ALLOCATED_BYTES, size_bytes);
}

AP_COUNT_RULE void ap_regions__end_block(AP_CALLER caller, __u64 size_bytes, enum ap_block_end how)
{
	if (!AP_HAS_REGIONS(caller))
		return;
	AP_ADD_IN_REGIONS(caller, AP_STAT_FREED_BYTES, size_bytes);
	if (how == AP_BLOCK_MOVED)
		return;
	AP_ADD_IN_REGIONS(caller, AP_STAT_DEALLOCATIONS, 1);
	AP_ADD_IN_REGIONS(caller, AP_STAT_DEALLOCATED_BYTES, size_bytes);
}

/* Counts a realloc that has returned a block of @size_bytes in place of one of @old_bytes, which
 * is 0 if it is not known. */
AP_COUNT_RULE void ap_move__count(AP_CALLER caller, __u64 n, __u64 old_bytes, __u64 size_bytes)
{
	int grows = size_bytes > old_bytes;
	__u64 change = grows ? size_bytes - old_bytes : old_bytes - size_bytes;
	enum ap_stat which = grows ? AP_STAT_GROWN_BYTES : AP_STAT_SHRUNK_BYTES;

	AP_ADD_STAT(caller, AP_STAT_REALLOCATIONS, n);
	if (AP_HAS_REGIONS(caller))
		AP_ADD_IN_REGIONS(caller, AP_STAT_REALLOCATIONS, 1);
	/* With sampling the old block may be one that was not sampled. */
	if (AP_IS_SAMPLED)
		return;
	AP_ADD_STAT(caller, which, change);
	if (AP_HAS_REGIONS(caller))
		AP_ADD_IN_REGIONS(caller, which, change);
}

/* Returns the statistic for a free by @function of a block that is not followed. @inherits: the
 * process has copies of its parent's blocks. */
AP_COUNT_RULE enum ap_stat ap_stat__of_unknown_free(__u32 function, int inherits)
{
	return inherits ? AP_STAT_FREES_INHERITED
			: AP_STAT_FREES_UNKNOWN + ap_function__family(function);
}

/* Returns log2 of the epochs' length, @elapsed_ns after the first one began. *@shift, which all
 * processors share, grows when there are AP_MAX_EPOCHS epochs. */
AP_COUNT_RULE __u32 ap_epoch__shift(__u32 *shift, __u64 elapsed_ns)
{
	__u32 now = *(volatile __u32 *)shift & 63;

	if (elapsed_ns >> now < AP_MAX_EPOCHS)
		return now;
	/* After a pause the length may have to double several times. */
	now = AP_SIGNIFICANT_BITS(elapsed_ns / AP_MAX_EPOCHS);
	*(volatile __u32 *)shift = now;
	return now & 63;
}

/* Returns the key of the lifetime of @block, which ends at @now_ns. @start_ns is when the epochs
 * began. */
AP_COUNT_RULE struct ap_lifetime_key ap_lifetime_key__of(const struct ap_block *block,
							 __u64 start_ns, __u64 now_ns, __u32 *shift)
{
	__u64 born_ns = block->birth_ns - start_ns, died_ns = now_ns - start_ns;
	__u32 epoch_shift = ap_epoch__shift(shift, died_ns);

	return (struct ap_lifetime_key){
		.record = block->record,
		.shift = epoch_shift,
		.born = born_ns >> epoch_shift,
		.died = died_ns >> epoch_shift,
	};
}

#endif
