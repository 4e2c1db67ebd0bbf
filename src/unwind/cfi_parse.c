// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads .eh_frame and .debug_frame: CIEs, and FDEs that do not overlap. */
#include "cfi_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

/* The escape for a 64-bit length; values from 0xfffffff0 up are reserved. */
#define LENGTH_IS_64  0xffffffffu
#define LENGTH_LOWEST 0xfffffff0u

static const struct cfi_cie *find_cie(const struct cfi_entries *entries, __u64 offset)
{
	__u32 lo = 0, hi = entries->cie_count;

	while (lo < hi) {
		__u32 mid = lo + (hi - lo) / 2;

		if (entries->cies[mid].offset == offset)
			return &entries->cies[mid];
		if (entries->cies[mid].offset < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static const struct cfi_text *find_text(const struct cfi_text *texts, __u32 count, __u64 vaddr)
{
	for (__u32 i = 0; i < count; i++)
		if (vaddr - texts[i].vaddr < texts[i].size)
			return &texts[i];
	return NULL;
}

/* Reads an FDE whose code is in @texts. @c is behind the CIE pointer. */
static enum cfi_reject read_fde(struct dwarf_cursor *c, const struct cfi_section *section,
				const struct cfi_cie *cie, const struct cfi_text *texts,
				__u32 text_count, struct cfi_fde *fde)
{
	enum cfi_reject reject = cfi_fde__read(c, section, cie, fde);
	const struct cfi_text *text;

	if (reject)
		return reject;
	text = find_text(texts, text_count, fde->lo);
	if (!text)
		return CFI_REJECT_OUTSIDE;
	if (fde->hi > text->vaddr + text->size)
		fde->hi = text->vaddr + text->size;
	return CFI_OK;
}

/* An FDE after the first pass; its CIE may come later. */
struct raw_fde {
	__u64 cie_offset;
	struct dwarf_cursor body;
};

struct scan {
	struct cfi_entries *entries;
	struct raw_fde *raw;
	__u32 raw_count;
	size_t raw_room;
	size_t cie_room;
};

static int add_cie(struct scan *scan, const struct cfi_arch *arch,
		   const struct cfi_section *section, __u64 offset, struct dwarf_cursor body,
		   struct cfi_stats *stats)
{
	struct cfi_entries *entries = scan->entries;
	struct cfi_machine machine;
	struct cfi_cie *cie;
	int err;

	err = array__reserve(&entries->cies, &scan->cie_room, (size_t)entries->cie_count + 1,
			     sizeof(*cie));
	if (err)
		return err;
	cie = &entries->cies[entries->cie_count++];
	memset(cie, 0, sizeof(*cie));
	cie->offset = offset;
	cie->reject = cfi_cie__read(&body, arch, section, &machine, cie);
	if (cie->reject)
		stats->rejected[cie->reject]++;
	else
		stats->cies++;
	return 0;
}

static int add_raw_fde(struct scan *scan, __u64 cie_offset, struct dwarf_cursor body)
{
	int err;

	err = array__reserve(&scan->raw, &scan->raw_room, (size_t)scan->raw_count + 1,
			     sizeof(*scan->raw));
	if (err)
		return err;
	scan->raw[scan->raw_count++] = (struct raw_fde){ cie_offset, body };
	return 0;
}

/* Makes the first pass. Reads each CIE once, and only at boundaries of entries, so that FDEs with
 * arbitrary CIE pointers cannot make the work more than linear. */
static int scan_section(struct scan *scan, const struct cfi_arch *arch,
			const struct cfi_section *section, struct cfi_stats *stats)
{
	struct dwarf_cursor c = { section->data, section->data + section->size, false };

	while (c.end - c.pos >= 4) {
		const __u8 *start = c.pos, *id_pos;
		struct dwarf_cursor body = c;
		__u64 length, id;
		bool wide = false, is_cie;
		int err;

		length = dwarf_cursor__u32(&c);
		if (!length) {
			if (section->ends_at_zero && scan->raw_count >= section->fdes_expected)
				break;
			continue;
		}
		if (length == LENGTH_IS_64) {
			wide = true;
			length = dwarf_cursor__u64(&c);
		} else if (length >= LENGTH_LOWEST) {
			c.bad = true;
		}
		body.pos = dwarf_cursor__skip(&c, length);
		body.end = c.pos;
		if (c.bad) {
			stats->rejected[CFI_REJECT_LENGTH]++;
			break;
		}

		/* In .eh_frame the id has four bytes even after a 64-bit length (LSB). */
		id_pos = body.pos;
		if (section->debug_frame && wide) {
			id = dwarf_cursor__u64(&body);
			is_cie = id == ~(__u64)0;
		} else {
			id = dwarf_cursor__u32(&body);
			is_cie = id == (section->debug_frame ? 0xffffffffu : 0);
		}
		if (body.bad) {
			stats->rejected[CFI_REJECT_TRUNCATED]++;
			continue;
		}
		if (is_cie)
			err = add_cie(scan, arch, section, (__u64)(start - section->data), body,
				      stats);
		else if (section->debug_frame)
			err = add_raw_fde(scan, id, body);
		else
			err = add_raw_fde(scan, (__u64)(id_pos - section->data) - id, body);
		if (err)
			return err;
	}
	return 0;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct cfi_fde *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->program < y->program ? -1 : x->program > y->program;
}

/* Makes the FDEs disjoint, as libgcc's binary search in .eh_frame_hdr sees them: an FDE ends where
 * the next one starts. Among FDEs with the same start the first in the section wins. */
static void separate_fdes(struct cfi_entries *entries, bool sorted, struct cfi_stats *stats)
{
	struct cfi_fde *fdes = entries->fdes;
	__u32 kept = 0;

	if (!sorted)
		qsort(fdes, entries->fde_count, sizeof(*fdes), compare_fdes);
	for (__u32 i = 0; i < entries->fde_count; i++) {
		if (kept && fdes[kept - 1].lo == fdes[i].lo) {
			stats->rejected[CFI_REJECT_OVERLAP]++;
			continue;
		}
		if (kept && fdes[kept - 1].hi > fdes[i].lo) {
			stats->rejected[CFI_REJECT_OVERLAP]++;
			fdes[kept - 1].hi = fdes[i].lo;
		}
		fdes[kept++] = fdes[i];
	}
	entries->fde_count = kept;
}

int cfi_entries__read(const struct cfi_arch *arch, const struct cfi_section *section,
		      const struct cfi_text *texts, __u32 text_count, struct cfi_stats *stats,
		      struct cfi_entries *out)
{
	struct cfi_entries entries = { 0 };
	struct scan scan = { .entries = &entries };
	const struct cfi_cie *cie = NULL;
	bool sorted = true;
	int err;

	if (section->go)
		return cfi_go__entries(section, texts, text_count, out);
	if (section->bare)
		return cfi_bare__entries(section->bare, out);
	err = scan_section(&scan, arch, section, stats);
	if (err)
		goto out;
	entries.fdes = calloc(scan.raw_count ? scan.raw_count : 1, sizeof(*entries.fdes));
	if (!entries.fdes) {
		err = -ENOMEM;
		goto out;
	}
	for (__u32 i = 0; i < scan.raw_count; i++) {
		struct cfi_fde *fde = &entries.fdes[entries.fde_count];
		struct raw_fde *raw = &scan.raw[i];
		enum cfi_reject reject;

		if (!cie || cie->offset != raw->cie_offset)
			cie = find_cie(&entries, raw->cie_offset);
		reject = cie ? read_fde(&raw->body, section, cie, texts, text_count, fde)
			     : CFI_REJECT_CIE;
		if (reject) {
			stats->rejected[reject]++;
			continue;
		}
		fde->cie = (__u32)(cie - entries.cies);
		if (entries.fde_count && fde[-1].lo > fde->lo)
			sorted = false;
		entries.fde_count++;
	}
	separate_fdes(&entries, sorted, stats);
	*out = entries;
	memset(&entries, 0, sizeof(entries));
out:
	cfi_entries__free(&entries);
	free(scan.raw);
	return err;
}

void cfi_entries__free(struct cfi_entries *entries)
{
	free(entries->cies);
	free(entries->fdes);
}
