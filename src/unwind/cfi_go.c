// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Rules for Go code. Go's compiler writes no .eh_frame, and .debug_frame only with debug
 * information, but always the table by which its own runtime unwinds. That table does not describe
 * where the runtime switches stacks; rules for these addresses are derived from the machine code.
 */
#include "cfi_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Size limit of a C function whose instructions are all decoded. */
#define MAX_FOREIGN_BYTES (1 << 20)

static bool is_in_text(const struct cfi_text *texts, __u32 count,
		       const struct go_function *function)
{
	for (__u32 i = 0; i < count; i++)
		if (function->lo - texts[i].vaddr < texts[i].size)
			return function->hi - texts[i].vaddr <= texts[i].size;
	return false;
}

int cfi_go__entries(const struct cfi_section *section, const struct cfi_text *texts,
		    __u32 text_count, struct cfi_entries *out)
{
	const struct go_table *table = &section->go->table;
	struct cfi_entries entries = { 0 };
	struct go_function function;

	entries.cies = calloc(1, sizeof(*entries.cies));
	entries.fdes = calloc((size_t)table->count + 1, sizeof(*entries.fdes));
	if (!entries.cies || !entries.fdes) {
		cfi_entries__free(&entries);
		return -ENOMEM;
	}
	entries.cie_count = 1;
	for (__u32 i = 0; i < table->count; i++) {
		struct cfi_fde *fde = &entries.fdes[entries.fde_count];

		/* The table is sorted by address; a function out of order is damaged. */
		if (!go_table__function(table, i, &function) ||
		    !is_in_text(texts, text_count, &function) ||
		    (entries.fde_count && fde[-1].hi > function.lo))
			continue;
		*fde = (struct cfi_fde){ .lo = function.lo, .hi = function.hi, .cie = 0 };
		fde->program_size = i; /* the function's index */
		entries.fde_count++;
	}
	*out = entries;
	return 0;
}

void cfi_go__add_switch(struct cfi_go *go, __u64 lo, __u64 hi, const struct unwind_rule *rule)
{
	if (lo >= hi || go->switch_count == MAX_GO_SWITCHES)
		return;
	go->switches[go->switch_count++] = (struct go_switch){ lo, hi, *rule };
}

/* The stack switch at @pc, or NULL; *@end is where that changes, at most @hi. */
static const struct go_switch *find_switch(const struct cfi_go *go, __u64 pc, __u64 hi, __u64 *end)
{
	const struct go_switch *found = NULL;

	*end = hi;
	for (__u32 i = 0; i < go->switch_count; i++) {
		const struct go_switch *at = &go->switches[i];

		if (pc >= at->lo && pc < at->hi)
			found = at;
		if (at->lo > pc && at->lo < *end)
			*end = at->lo;
	}
	if (found && found->hi < *end)
		*end = found->hi;
	return found;
}

static struct unwind_rule depth_rule(const struct go_function *function, __s64 depth_bytes)
{
	struct unwind_rule rule = { .flags = UNWIND_OF_CODE };

	if (depth_bytes < 0 || depth_bytes > INT32_MAX - 8) {
		rule.cfa = UNWIND_CFA_UNSUPPORTED;
		rule.cfa_offset = UNWIND_UNSUPPORTED_OFFSET;
		return rule;
	}
	rule.cfa = UNWIND_CFA_SP;
	rule.cfa_offset = (__s32)depth_bytes + 8;
	rule.ra_where = UNWIND_AT_CFA;
	rule.ra_offset = -8;
	if (function->outermost) {
		rule.ra_where = UNWIND_UNDEFINED;
		rule.ra_offset = 0;
	}
	return rule;
}

/* C code linked by Go's internal linker, which drops call frame information. */
static int run_foreign(const struct cfi_go *go, const struct cfi_fde *fde, cfi_rule_fn take,
		       void *ctx)
{
	static const struct unwind_rule none = { 0 };
	const __u8 *code = NULL;

	if (fde->hi - fde->lo <= MAX_FOREIGN_BYTES)
		code = go->code(go->file, fde->lo, fde->hi - fde->lo);
	return code ? cfi_code__run(fde->lo, code, fde->hi - fde->lo, take, ctx)
		    : take(ctx, fde->lo, &none);
}

int cfi_go__run(const struct cfi_go *go, const struct cfi_fde *fde, cfi_rule_fn take, void *ctx)
{
	static const struct unwind_rule none = { 0 };
	struct go_function function;
	struct go_depths depths;
	__u64 pc = fde->lo;

	if (!go_table__function(&go->table, fde->program_size, &function))
		return take(ctx, pc, &none);
	if (!function.depths)
		return run_foreign(go, fde, take, ctx);
	depths = go_depths__begin(&function);
	while (pc < fde->hi && go_depths__next(&depths)) {
		const struct unwind_rule usual = depth_rule(&function, depths.depth_bytes);
		__u64 hi = depths.hi < fde->hi ? depths.hi : fde->hi;

		while (pc < hi) {
			struct unwind_rule rule = usual;
			const struct go_switch *at;
			__u64 end;
			int err;

			at = find_switch(go, pc, hi, &end);
			if (at && at->rule.cfa == UNWIND_CFA_NONE) {
				rule.fp_where = at->rule.fp_where;
				rule.fp_offset = at->rule.fp_offset;
			} else if (at) {
				rule = at->rule;
			}
			rule.flags |= UNWIND_OF_CODE;
			err = take(ctx, pc, &rule);
			if (err)
				return err;
			pc = end;
		}
	}
	/* Padding. */
	return pc < fde->hi ? take(ctx, pc, &none) : 0;
}

__s64 go_function__depth(const struct go_function *function, __u64 pc)
{
	struct go_depths depths = go_depths__begin(function);

	while (depths.hi < function->hi && go_depths__next(&depths))
		if (pc >= depths.lo && pc < depths.hi)
			return depths.depth_bytes;
	return -1;
}
