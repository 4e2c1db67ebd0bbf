// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Keeps what the walker has found of the code at an address. */
#include "known_code.h"

#include <linux/errno.h>

#include "stack.h"
#include "tables.h"

/* As arch__epilogue(): of the next 8 bytes of code. */
static __u32 epilogue_of(__u64 code)
{
	__u32 says = SAYS_EPILOGUE;

	if ((code & 0xffffff) == 0xc48348) {
		__u32 popped = code >> 24 & 0xff;

		if (popped & 0x87)
			return 0;
		says |= popped;
		code >>= 32;
	}
	if ((code & 0xff) == 0x5d) {
		says |= SAYS_FP;
		code >>= 8;
	}
	return (code & 0xff) == 0xc3 ? says : 0;
}

#define CONTEXT_END_BYTES 3

/* As arch__is_context_end(): of what is @before a return address and behind it. */
static bool is_context_end(__u64 before, __u64 behind)
{
	behind &= 0xffffffff;
	return (before & 0xffffff) == 0xe3ff55 && (behind == 0xe8ff3148 || behind == 0xfa1e0ff3);
}

__u32 code__says(__u64 pc)
{
	__u64 code[2] = { 0 }, behind;
	__u32 said = 0;

	if (code__recall(pc, &said))
		return said;
	if (memory__read(pc - CONTEXT_END_BYTES, code, CONTEXT_END_BYTES + sizeof(behind))) {
		behind = code[0] >> 8 * CONTEXT_END_BYTES | code[1] << (64 - 8 * CONTEXT_END_BYTES);
		said = epilogue_of(behind) | (is_context_end(code[0], behind) ? SAYS_END : 0);
	} else if (memory__read(pc, &behind, sizeof(behind))) {
		said = epilogue_of(behind);
	}
	code__remember(pc, said);
	return said;
}

static bool is_made_up(const struct unwind_table *table, __u64 offset)
{
	const struct unwind_slice *slice = tables__slice(table, offset);
	const struct unwind_rule *rule =
		slice ? slice__rule(slice, offset - slice->file_offset) : NULL;

	return rule && rule->cfa != UNWIND_CFA_NONE;
}

void no_code__forget(struct no_code *none)
{
	for (int i = 0; i < NO_CODES; i++)
		none->list[i].start = none->list[i].end = 0;
}

static bool no_code__has(struct no_code *none, __u64 address)
{
	if (none->loads != code__loads()) {
		none->loads = code__loads();
		no_code__forget(none);
	}
	for (int i = 0; i < NO_CODES; i++)
		if (address - none->list[i].start < none->list[i].end - none->list[i].start)
			return true;
	return false;
}

/* No code is in @range, which begins at the page that was asked for where nothing is mapped. */
static void no_code__add(struct no_code *none, const struct code_range *range)
{
	__u32 at;

	for (at = 0; at < NO_CODES; at++)
		if (none->list[at].end == range->end && range->end) {
			if (range->start < none->list[at].start)
				none->list[at].start = range->start;
			return;
		}
	at = none->next++ % NO_CODES;
	none->list[at].start = range->start;
	none->list[at].end = range->end;
}

__attribute__((noinline)) bool known_code__find(struct no_code *none, __u64 pc, __u32 call,
						struct known_code *out)
{
	__u64 address = pc - call;
	const struct unwind_slice *slice;
	const struct unwind_table *table;
	const struct unwind_rule *rule;
	struct code_range range;
	int err;

	if (no_code__has(none, address))
		return false;
	err = code__find(address, &range);
	if (err == -ENOENT)
		no_code__add(none, &range);
	if (err)
		return false;
	*out = (struct known_code){
		.offset = pc + range.bias,
		.module = range.module,
		.state = UNWIND_TABLE_NONE,
		.address = NO_ADDRESS,
	};
	if (tables__is_within(range.module, address + range.bias))
		out->within = AP_FRAME_WITHIN;
	table = tables__of(range.module);
	if (table)
		out->state = __atomic_load_n(&table->state, __ATOMIC_ACQUIRE);
	/* It may come yet. */
	if (out->state == UNWIND_TABLE_AWAITED)
		return true;
	out->address = address;
	if (out->state != UNWIND_TABLE_READY)
		return true;
	slice = tables__slice(table, address + range.bias);
	if (!slice) {
		out->state = UNWIND_TABLE_NONE;
		return true;
	}
	rule = slice__rule(slice, address + range.bias - slice->file_offset);
	if (!rule) {
		out->state = UNWIND_TABLE_AWAITED;
		out->address = NO_ADDRESS;
		return true;
	}
	out->rule = *rule;
	if (rule->cfa == UNWIND_CFA_NONE)
		out->made_up = call && is_made_up(table, pc + range.bias);
	out->simple = (rule->cfa == UNWIND_CFA_SP || rule->cfa == UNWIND_CFA_FP) &&
		      rule->ra_where == UNWIND_AT_CFA && rule->ra_offset == -8 && !rule->flags &&
		      rule->fp_where <= UNWIND_AT_CFA;
	return true;
}
