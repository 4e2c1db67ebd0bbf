// SPDX-License-Identifier: GPL-3.0-or-later
/* Adds up what live blocks have of the resident pages of processes, and what the other pages are. */
#include "resident.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "array.h"
#include "cleanup.h"
#include "resident_heaps.h"
#include "resident_memory.h"
#include "profile.h"

/* Figures of one count. */
struct count_share {
	__u64 resident_bytes, pages, unique_pages, unique_slack_bytes, rounding_bytes;
};

struct accounting {
	const struct resident_pages *memory;
	const struct resident_pages *before;
	size_t before_run; /* the first run of it that does not end before the page */
	const struct resident_block *blocks;
	size_t n_blocks;
	size_t next; /* the first block that does not end before the page */
	const struct profile *profile;
	struct count_share *shares; /* by id - 1 */
	__u32 *stack_pages;	    /* by stack's id - 1: number of the last page on which it was */
	__u32 n_pages;		    /* number of the page, from 1 */
	bool *has_block;	    /* by mapping */
	/* The mappings that calls of the process have made (--allocator mmap), by ascending addresses, and
	 * the first of them that does not end before the page. */
	const struct profile_mapping *mapped;
	size_t n_mapped, next_mapped;
	struct resident_heaps *heaps;
	bool is_forked; /* and has executed nothing since */
	__u64 bytes[RSS_ROWS];
};

/* This is what blocks have of one page. */
struct page_share {
	__u64 block_bytes;
	__u32 first_count;
	bool has_blocks, is_of_several;
};

/* A block without bytes occupies its address all the same. */
static __u64 block_end(const struct resident_block *block)
{
	__u64 size = block->size_bytes ? block->size_bytes : 1;

	return size > UINT64_MAX - block->begin ? UINT64_MAX : block->begin + size;
}

static __u32 stack_of(const struct accounting *accounting, __u32 count)
{
	return accounting->profile->counts[count - 1].stack;
}

/* Ascribes to a block what it has of the page that begins at @begin. */
static void add_part(struct accounting *accounting, const struct resident_block *block, __u64 begin,
		     struct page_share *page)
{
	__u64 from = block->begin > begin ? block->begin : begin;
	__u64 end = block->begin + block->size_bytes, until = begin + RESIDENT_PAGE_BYTES;
	struct count_share *share = &accounting->shares[block->count - 1];
	__u32 stack = stack_of(accounting, block->count);

	if (end < block->begin || end > until)
		end = until;
	if (from < end) {
		share->resident_bytes += end - from;
		page->block_bytes += end - from;
	}
	if (accounting->stack_pages[stack - 1] != accounting->n_pages) {
		accounting->stack_pages[stack - 1] = accounting->n_pages;
		share->pages++;
		page->is_of_several |= page->has_blocks;
		if (!page->has_blocks)
			page->first_count = block->count;
	}
	page->has_blocks = true;
}

/* Returns whether the page was resident before the recording. Pages come in ascending order. */
static bool was_there(struct accounting *accounting, __u64 page)
{
	const struct resident_pages *before = accounting->before;

	while (accounting->before_run < before->n_runs &&
	       before->runs[accounting->before_run].end <= page)
		accounting->before_run++;
	return accounting->before_run < before->n_runs &&
	       before->runs[accounting->before_run].begin <= page;
}

/* Returns the kind of pages without a live block. */
static enum rss_kind rss_kind_of(const struct accounting *accounting, const struct memory_run *run,
				 bool was_resident)
{
	enum memory_kind kind = accounting->memory->of.mappings[run->mapping].kind;

	switch (kind) {
	case MEMORY_OWN:
		return RSS_OWN;
	case MEMORY_SHARED:
		return RSS_SHARED;
	case MEMORY_FILE:
		return run->is_of_file ? RSS_FILES : RSS_DATA;
	case MEMORY_DATA:
		return RSS_DATA;
	default:
		break;
	}
	if (run->is_shared)
		return RSS_SHARED;
	if (kind == MEMORY_STACK)
		return RSS_STACKS;
	if (accounting->is_forked)
		return RSS_INHERITED;
	if (kind == MEMORY_ANONYMOUS && !accounting->has_block[run->mapping])
		return RSS_MAPPINGS;
	return was_resident ? RSS_BEFORE : RSS_FREE;
}

/* Ascribes a page without a live block to the call that has mapped it, if that is known. */
static void add_mapped(struct accounting *accounting, __u64 page)
{
	const struct profile_mapping *mapped = accounting->mapped;
	struct count_share *share;

	while (accounting->next_mapped < accounting->n_mapped &&
	       mapped[accounting->next_mapped].address +
			       mapped[accounting->next_mapped].size_bytes <=
		       page)
		accounting->next_mapped++;
	if (accounting->next_mapped == accounting->n_mapped ||
	    mapped[accounting->next_mapped].address > page)
		return;
	share = &accounting->shares[mapped[accounting->next_mapped].count - 1];
	share->resident_bytes += RESIDENT_PAGE_BYTES;
	share->pages++;
	share->unique_pages++;
}

static void account_page(struct accounting *accounting, const struct memory_run *run, __u64 begin)
{
	struct page_share page = { 0 };
	bool was_resident = was_there(accounting, begin);
	enum rss_kind kind;
	__u64 rest;

	accounting->n_pages++;
	while (accounting->next < accounting->n_blocks &&
	       block_end(&accounting->blocks[accounting->next]) <= begin)
		accounting->next++;
	for (size_t i = accounting->next;
	     i < accounting->n_blocks && accounting->blocks[i].begin < begin + RESIDENT_PAGE_BYTES;
	     i++)
		if (accounting->blocks[i].count)
			add_part(accounting, &accounting->blocks[i], begin, &page);
	rest = RESIDENT_PAGE_BYTES - page.block_bytes;
	accounting->bytes[RSS_BLOCKS] += page.block_bytes;
	if (page.has_blocks)
		kind = was_resident ? RSS_BEFORE : RSS_SLACK;
	else
		kind = rss_kind_of(accounting, run, was_resident);
	accounting->bytes[kind] += rest;
	if (kind == RSS_MAPPINGS || kind == RSS_STACKS)
		add_mapped(accounting, begin);
	resident_heaps__add_page(accounting->heaps, run->mapping, page.block_bytes,
				 kind == RSS_SLACK ? rest : 0, kind == RSS_FREE ? rest : 0);
	if (page.has_blocks && !page.is_of_several && !was_resident) {
		struct count_share *share = &accounting->shares[page.first_count - 1];

		share->unique_pages++;
		share->unique_slack_bytes += rest;
	}
}

/* Marks the mappings in which there is a live block: these are an allocator's. */
static void mark_mappings(struct accounting *accounting)
{
	const struct memory_mappings *of = &accounting->memory->of;
	size_t at = 0;

	for (size_t i = 0; i < accounting->n_blocks; i++) {
		const struct resident_block *block = &accounting->blocks[i];
		__u64 rounding_bytes;

		while (at < of->n && of->mappings[at].end <= block->begin)
			at++;
		if (at == of->n || !block->count || block->begin < of->mappings[at].begin)
			continue;
		if (resident_heaps__add_block(accounting->heaps, at, block->begin,
					      block->size_bytes, &rounding_bytes))
			accounting->has_block[at] = true;
		accounting->shares[block->count - 1].rounding_bytes += rounding_bytes;
	}
}

static void account_memory(struct accounting *accounting)
{
	const struct resident_pages *memory = accounting->memory;
	__u64 sum = 0;

	mark_mappings(accounting);
	for (size_t i = 0; i < memory->n_runs; i++)
		for (__u64 page = memory->runs[i].begin; page < memory->runs[i].end;
		     page += RESIDENT_PAGE_BYTES)
			account_page(accounting, &memory->runs[i], page);
	for (int kind = 0; kind < RSS_KINDS; kind++)
		sum += accounting->bytes[kind];
	if (sum < memory->of.rss_bytes)
		accounting->bytes[RSS_CHANGED] = memory->of.rss_bytes - sum;
	for (size_t i = 0; i < memory->of.n; i++)
		accounting->bytes[RSS_HUGE] += memory->of.mappings[i].huge_bytes;
	accounting->bytes[RSS_HIGHEST] = memory->highest_bytes;
}

static int add_to_profile(const struct accounting *accounting, __u32 process,
			  struct profile *profile)
{
	int err = 0;

	for (__u32 i = 0; i < profile->n_counts && !err; i++) {
		const struct count_share *share = &accounting->shares[i];
		const struct profile_blocks blocks = {
			.count = i + 1,
			.resident_bytes = share->resident_bytes,
			.pages = share->pages,
			.unique_pages = share->unique_pages,
			.unique_slack_bytes = share->unique_slack_bytes,
			.rounding_bytes = share->rounding_bytes,
		};

		if (share->resident_bytes || share->pages || share->rounding_bytes)
			err = profile__add_blocks(profile, &blocks);
	}
	for (int kind = 0; kind < RSS_ROWS && !err; kind++)
		if (accounting->bytes[kind])
			err = profile__add_rss(
				profile,
				&(struct profile_rss){ process, kind, accounting->bytes[kind] });
	return err;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct profile_mapping *first = a, *second = b;

	return first->address < second->address ? -1 : first->address > second->address;
}

/* Returns the mappings of the process's calls by ascending addresses, which the caller frees; NULL if there
 * is no memory. */
static struct profile_mapping *find_mapped(const struct profile *profile, __u32 process, size_t *n)
{
	struct profile_mapping *mapped = calloc(profile->n_mappings + 1, sizeof(*mapped));

	*n = 0;
	for (size_t i = 0; mapped && i < profile->n_mappings; i++)
		if (profile->counts[profile->mappings[i].count - 1].process == process)
			mapped[(*n)++] = profile->mappings[i];
	if (mapped)
		qsort(mapped, *n, sizeof(*mapped), compare_addresses);
	return mapped;
}

int resident__account(struct resident_process *of, __u32 process,
		      const struct resident_block *blocks, size_t n, struct profile *profile)
{
	_cleanup_(free_ptr) struct count_share *shares =
		calloc(profile->n_counts + 1, sizeof(*shares));
	_cleanup_(free_ptr) __u32 *stack_pages = calloc(profile->n_stacks + 1, sizeof(__u32));
	_cleanup_(free_ptr) bool *has_block = calloc(of->now.of.n + 1, sizeof(bool));
	size_t n_mapped;
	_cleanup_(free_ptr) struct profile_mapping *mapped =
		find_mapped(profile, process, &n_mapped);
	struct accounting accounting = {
		.memory = &of->now,
		.before = &of->before,
		.blocks = blocks,
		.n_blocks = n,
		.profile = profile,
		.shares = shares,
		.stack_pages = stack_pages,
		.has_block = has_block,
		.mapped = mapped,
		.n_mapped = n_mapped,
		.heaps = resident_heaps__new(&of->now),
		.is_forked = profile__is_forked(profile, process),
	};

	int err = shares && stack_pages && has_block && mapped && accounting.heaps ? 0 : -ENOMEM;

	if (!err) {
		of->is_accounted = true;
		account_memory(&accounting);
		err = add_to_profile(&accounting, process, profile);
	}
	if (!err)
		err = resident_heaps__add_to_profile(accounting.heaps, process, profile);
	resident_heaps__free(accounting.heaps);
	return err;
}
