// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "blocks.h"

#include <linux/errno.h>

#include "memory.h"
#include "sample_abi.h"
#include "sys.h"

/* How many slots are tried for a block, from its hash's slot on. */
#define TRIES 32

/* log2 of the least distance in bytes between two blocks of glibc. */
#define GRANULE_SHIFT 5

#define ADDRESS_BITS 48
#define LOW_BITS     0xffff

__u8 blocks_followed[1 << FOLLOWED_SHIFT];

static struct inside_block *tables[INSIDE_BLOCK_TABLES];
static __u32 n_tables;
static struct inside_program *program;
static struct inside_header *header;
static __s64 n_blocks; /* counted only where max_blocks limits their number */

void blocks__begin(struct inside_program *of)
{
	/* Without a table no block was counted here. */
	if (n_tables)
		memset(blocks_followed, 0, sizeof(blocks_followed));
	program = of;
	header = memory__header();
	n_tables = 0;
	n_blocks = 0;
	for (int i = 0; i < INSIDE_BLOCK_TABLES; i++)
		tables[i] = NULL;
}

/* Blocks that are neighbours in memory get neighbouring slots of the table. */
static inline __u32 slot_of(__u64 address, __u32 shift)
{
	__u64 far = (address >> GRANULE_SHIFT >> shift) * 0x9e3779b97f4a7c15ULL >> 32;

	return ((address >> GRANULE_SHIFT) + far) & ((1U << shift) - 1);
}

/* Adds a table to the @had ones. Returns 0 or an error of blocks__put(). */
static __attribute__((noinline)) int add_table(__u32 had)
{
	__u32 n = had, shift = INSIDE_FIRST_BLOCKS + had;

	if (!program || had == INSIDE_BLOCK_TABLES || shift > header->settings.max_live_shift)
		return -ENOSPC;
	if (!memory__add_pages((void **)&tables[had], &program->blocks[had],
			       sizeof(struct inside_block) << shift))
		return memory__is_full() ? -ENOMEM : -ENOSPC;
	__atomic_compare_exchange_n(&n_tables, &n, had + 1, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
	return 0;
}

/* Returns the smaller of the two weights (numbers of calls that a sampled one stands for) that
 * occur for this size; the other one is greater by 1. */
static __u32 least_weight(__u64 size_bytes)
{
	__u64 chance = ap_sample__chance(&header->settings.sampling, size_bytes);

	return chance ? ap_sample__weight(chance, ~0ULL) : 1;
}

static inline bool samples(void)
{
	return unlikely(header->settings.sampling.sample);
}

static void unpack(const struct inside_block *slot, struct ap_block *out)
{
	__u64 size_bytes = (slot->size & ~INSIDE_BLOCK_UP) >> 16;

	*out = (struct ap_block){
		.size_bytes = size_bytes,
		.birth_ns = slot->birth_ns,
		.record = (slot->key & LOW_BITS) | (slot->size & LOW_BITS) << 16,
		.thread = slot->thread,
		.sequence = slot->sequence,
		.weight = samples() ? least_weight(size_bytes) + (slot->size >> 63) : 1,
	};
}

static inline bool try_put(struct inside_block *slot, __u64 address, const struct ap_block *block)
{
	__u64 key = __atomic_load_n(&slot->key, __ATOMIC_RELAXED);

	if (key > INSIDE_BLOCK_FREED ||
	    !__atomic_compare_exchange_n(&slot->key, &key, INSIDE_BLOCK_WRITTEN, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	slot->size = block->size_bytes << 16 | block->record >> 16;
	if (samples() && block->weight > least_weight(block->size_bytes))
		slot->size |= INSIDE_BLOCK_UP;
	slot->birth_ns = block->birth_ns;
	slot->thread = block->thread;
	slot->sequence = block->sequence;
	__atomic_store_n(&slot->key, address << 16 | (block->record & LOW_BITS), __ATOMIC_RELEASE);
	return true;
}

/* Counts a followed block. Called before the block is put into a table, so that any thread that is
 * given the block finds it counted. */
static void follow(__u64 address)
{
	__u8 *count = blocks__followed(address), n = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (n != FOLLOWED_MOST &&
	       !__atomic_compare_exchange_n(count, &n, n + 1, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

/* Undoes follow(). Called after the block was taken out of its table. */
static void unfollow(__u64 address)
{
	__u8 *count = blocks__followed(address), n = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (n != FOLLOWED_MOST &&
	       !__atomic_compare_exchange_n(count, &n, n - 1, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

/* Takes a block out of the counts by which max_blocks is enforced. */
static inline void give_room(void)
{
	if (likely(!header->settings.max_blocks))
		return;
	__atomic_fetch_sub(&header->live.entries, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&n_blocks, 1, __ATOMIC_RELAXED);
}

/* Called for a block that is in no table any more. */
static inline void leave(__u64 address)
{
	if (samples())
		unfollow(address);
	give_room();
}

__s64 blocks__count(void)
{
	return __atomic_load_n(&n_blocks, __ATOMIC_RELAXED);
}

static inline bool take_room(void)
{
	if (likely(!header->settings.max_blocks))
		return true;
	__atomic_fetch_add(&n_blocks, 1, __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&header->live.entries, 1, __ATOMIC_RELAXED) <=
	    (__s64)header->settings.max_blocks)
		return true;
	give_room();
	return false;
}

static int put(__u64 address, const struct ap_block *block, struct ap_block *stale)
{
	__u32 n;
	int err;

	do {
		n = __atomic_load_n(&n_tables, __ATOMIC_ACQUIRE);
		for (__u32 table = n; table-- > 0;) {
			__u32 shift = INSIDE_FIRST_BLOCKS + table, at = slot_of(address, shift);

			for (__u32 i = 0; i < TRIES; i++) {
				struct inside_block *slot =
					&tables[table][(at + i) & ((1U << shift) - 1)];

				if (try_put(slot, address, block))
					return 0;
				if (unlikely(slot->key >> 16 == address)) {
					unpack(slot, stale);
					__atomic_store_n(&slot->key, INSIDE_BLOCK_FREED,
							 __ATOMIC_RELEASE);
					return -EEXIST;
				}
			}
		}
		err = add_table(n);
	} while (!err);
	return err;
}

int blocks__put(__u64 address, const struct ap_block *block, struct ap_block *stale)
{
	int err;

	if (address >> ADDRESS_BITS || block->size_bytes >> INSIDE_BLOCK_SIZE_BITS || !take_room())
		return -ENOSPC;
	if (samples())
		follow(address);
	err = put(address, block, stale);
	if (unlikely(err))
		leave(address);
	/* The stale block is not followed any more either. */
	if (unlikely(err == -EEXIST))
		leave(address);
	return err;
}

bool blocks__has(__u64 address)
{
	__u32 n = __atomic_load_n(&n_tables, __ATOMIC_ACQUIRE);

	for (__u32 table = n; table-- > 0;) {
		__u32 shift = INSIDE_FIRST_BLOCKS + table, at = slot_of(address, shift);

		for (__u32 i = 0; i < TRIES; i++) {
			__u64 key =
				__atomic_load_n(&tables[table][(at + i) & ((1U << shift) - 1)].key,
						__ATOMIC_RELAXED);

			if (key >> 16 == address)
				return true;
			if (key == INSIDE_BLOCK_NEVER)
				break;
		}
	}
	return false;
}

bool blocks__take(__u64 address, struct ap_block *out)
{
	__u32 n = __atomic_load_n(&n_tables, __ATOMIC_ACQUIRE);

	for (__u32 table = n; table-- > 0;) {
		__u32 shift = INSIDE_FIRST_BLOCKS + table, at = slot_of(address, shift);

		for (__u32 i = 0; i < TRIES; i++) {
			struct inside_block *slot = &tables[table][(at + i) & ((1U << shift) - 1)];
			__u64 key = __atomic_load_n(&slot->key, __ATOMIC_RELAXED);

			if (key >> 16 == address) {
				unpack(slot, out);
				__atomic_store_n(&slot->key, INSIDE_BLOCK_FREED, __ATOMIC_RELEASE);
				leave(address);
				return true;
			}
			if (key == INSIDE_BLOCK_NEVER)
				break;
		}
	}
	return false;
}
