// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds unwind rules in .eh_frame_hdr and .eh_frame, as they are mapped, and keeps where they are by module. */
#include "frame_rules.h"

#include "image.h"
#include "memory.h"
#include "stack.h"

/* Encodings of .eh_frame_hdr (LSB 5.0 core, 10.6.2): the table is sorted, and has pairs of signed words relative to
 * the header. */
#define HEADER_VERSION 1
#define TABLE_ENCODING 0x3b /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define HEADER_BYTES   4

struct frame_entry {
	__s32 code, fde;
};

/* The call frame information of a module. Once published it does not change, but for @generation. */
struct frames {
	__u32 generation; /* the last one of the code in which this was so */
	__u64 bias;	  /* of the code, as in struct code_range */
	/* The mapping that has both sections; end 0: there is none that can be used. */
	__u64 start, end;
	__u64 header;
	const struct frame_entry *table;
	__u32 n;
	/* As in struct unwind_table. */
	__u32 entry_size;
	__u64 entry_offset;
};

/* Indexed by module. A process may have the same file mapped twice, or at another address later: then the newer
 * one is kept. */
static struct frames *known[UNWIND_MAX_MODULES];

static bool read_header(struct frames *frames, const struct image *image, void *buffer, __u32 size)
{
	const Elf64_Phdr *segment = image__segment(image, PT_GNU_EH_FRAME);
	__u64 address = segment ? segment->p_vaddr + image->load : 0, count;
	struct cfi_section section;
	struct dwarf_cursor cursor;
	struct mapping mapping;
	const __u8 *encodings;

	if (!segment || maps__find(address, &mapping, NULL, 0, buffer, size) ||
	    !mapping.is_readable || mapping.end - address < HEADER_BYTES + 8)
		return false;
	section = (struct cfi_section){
		.data = (const __u8 *)mapping.start,
		.size = mapping.end - mapping.start,
		.vaddr = mapping.start,
	};
	cursor = (struct dwarf_cursor){ (const __u8 *)address, (const __u8 *)mapping.end, false };
	encodings = dwarf_cursor__skip(&cursor, HEADER_BYTES);
	if (encodings[0] != HEADER_VERSION || encodings[3] != TABLE_ENCODING ||
	    cfi_pointer__read(&cursor, encodings[1], &section, address, &count) ||
	    cfi_pointer__read(&cursor, encodings[2], &section, address, &count) ||
	    (__u64)cursor.pos & 3 ||
	    count > (__u64)(cursor.end - cursor.pos) / sizeof(struct frame_entry))
		return false;
	frames->start = mapping.start;
	frames->end = mapping.end;
	frames->header = address;
	frames->table = (const void *)cursor.pos;
	frames->n = count;
	return true;
}

static struct frame_entry entry_at(const struct frames *frames, struct frame_work *work,
				   __u32 index)
{
	struct frame_entry entry = { 0 };

	if (!work->may_be_unmapped)
		return frames->table[index];
	if (!memory__read((__u64)&frames->table[index], &entry, sizeof(entry)))
		work->is_gone = true;
	return entry;
}

static __u64 code_at(const struct frames *frames, struct frame_work *work, __u32 index)
{
	return frames->header + entry_at(frames, work, index).code;
}

/* Returns how many entries begin at or before @address. */
static __u32 find_entry(const struct frames *frames, struct frame_work *work, __u64 address)
{
	__u32 low = 0, high = frames->n;

	while (low < high) {
		__u32 middle = low + (high - low) / 2;

		if (code_at(frames, work, middle) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Reads an entry's length and the offset of its CIE, or its id. Leaves in *@c what follows. */
static bool read_length(struct dwarf_cursor *c, __u64 *id_at, __u32 *id)
{
	__u64 length = dwarf_cursor__u32(c);
	const __u8 *begin;

	if (length == 0xffffffff)
		length = dwarf_cursor__u64(c);
	begin = dwarf_cursor__skip(c, length);
	if (c->bad || !length)
		return false;
	*c = (struct dwarf_cursor){ begin, c->pos, false };
	*id_at = (__u64)begin;
	*id = dwarf_cursor__u32(c);
	return !c->bad;
}

/* Has work->section begin at @address, where an entry is. Returns a cursor at that. */
static struct dwarf_cursor cursor_at(const struct frames *frames, struct frame_work *work,
				     __u64 address, __u8 *copy, __u32 size)
{
	struct cfi_section *section = &work->section;

	if (address < frames->start || address > frames->end)
		address = frames->end;
	*section = (struct cfi_section){
		.data = (const __u8 *)address,
		.size = frames->end - address,
		.vaddr = address,
	};
	if (work->may_be_unmapped) {
		long n = memory__read_some(address, copy,
					   size < section->size ? size : section->size);

		section->data = copy;
		section->size = n > 0 ? n : 0;
	}
	return (struct dwarf_cursor){ section->data, section->data + section->size, false };
}

/* Reads entry number @index and its CIE. */
static bool read_fde(const struct frames *frames, __u32 index, struct frame_work *work)
{
	struct dwarf_cursor at =
		cursor_at(frames, work, frames->header + entry_at(frames, work, index).fde,
			  work->fde_copy, sizeof(work->fde_copy));
	const struct cfi_section section = work->section;
	struct dwarf_cursor of_cie;
	__u64 id_at, cie_at;
	__u32 id, cie_id;

	if (!read_length(&at, &id_at, &id) || !id)
		return false;
	id_at += section.vaddr - (__u64)section.data;
	of_cie = cursor_at(frames, work, id_at - id, work->cie_copy, sizeof(work->cie_copy));
	if (!read_length(&of_cie, &cie_at, &cie_id) || cie_id)
		return false;
	work->cie = (struct cfi_cie){ 0 };
	work->cie.reject =
		cfi_cie__read(&of_cie, &cfi_arch_host, &work->section, &work->machine, &work->cie);
	work->section = section;
	return !cfi_fde__read(&at, &work->section, &work->cie, &work->fde);
}

static int take_row(void *context, __u64 pc, const struct cfi_state *state)
{
	struct frame_work *work = context;

	/* The instructions are run to their end: after an error none of them counts. */
	if (pc <= work->address)
		work->rule = cfi_state__rule(&cfi_arch_host, state, work->cie.signal_frame);
	return 0;
}

static struct unwind_rule rule_at(const struct frames *frames, struct frame_work *work,
				  __u64 address)
{
	static const struct unwind_rule bad = { .cfa = UNWIND_CFA_UNSUPPORTED,
						.cfa_offset = UNWIND_UNSUPPORTED_BAD_FDE };
	struct cfi_fde *fde = &work->fde;
	__u64 next;
	__u32 n;

	work->is_gone = false;
	n = find_entry(frames, work, address);
	if (!n || !read_fde(frames, n - 1, work) || address < fde->lo || address >= fde->hi)
		return (struct unwind_rule){ 0 };
	next = n < frames->n ? code_at(frames, work, n) : fde->hi;
	if (next < fde->hi)
		fde->hi = next;
	if (work->is_gone)
		return (struct unwind_rule){ 0 };
	if (work->cie.reject)
		return bad;
	work->address = address;
	if (cfi_program__run(
		    &work->machine, &cfi_arch_host, &work->cie, &work->section, fde,
		    (struct dwarf_cursor){ fde->program, fde->program + fde->program_size, false },
		    &work->state, take_row, work))
		return bad;
	return work->rule;
}

/* Finds the code at the entry point that has no rule, up to the first function that has one. */
static void find_entry_code(struct frames *frames, struct frame_work *work, __u64 entry)
{
	__u32 n = find_entry(frames, work, entry);

	if (!entry || n == frames->n || rule_at(frames, work, entry).cfa != UNWIND_CFA_NONE)
		return;
	frames->entry_offset = entry + frames->bias;
	/* This includes the return address behind the last call. */
	frames->entry_size = code_at(frames, work, n) - entry + 1;
}

static bool are_same(const struct frames *a, const struct frames *b)
{
	return a->bias == b->bias && a->start == b->start && a->end == b->end &&
	       a->header == b->header && a->table == b->table && a->n == b->n;
}

static __attribute__((noinline)) const struct frames *
learn(struct frame_work *work, __u64 address, const struct code_range *range, __u32 generation)
{
	struct frames found = { .generation = generation, .bias = range->bias };
	struct frames *frames = __atomic_load_n(&known[range->module], __ATOMIC_ACQUIRE);
	void *buffer = &work->machine;
	struct mapping mapping;
	struct image image;

	if (!maps__find(address, &mapping, NULL, 0, buffer, sizeof(work->machine)) &&
	    image__find(&mapping, &image, buffer, sizeof(work->machine)) &&
	    read_header(&found, &image, buffer, sizeof(work->machine)))
		find_entry_code(&found, work, image.entry);
	/* In most cases other code has changed, and a process may change its code for ever. */
	if (frames && are_same(frames, &found)) {
		__atomic_store_n(&frames->generation, generation, __ATOMIC_RELAXED);
		return frames;
	}
	frames = memory__take_private(sizeof(*frames));
	if (!frames)
		return NULL;
	*frames = found;
	__atomic_store_n(&known[range->module], frames, __ATOMIC_RELEASE);
	return frames;
}

/* Returns the call frame information of the range's module; NULL: there is none that can be used. */
static const struct frames *frames_of(struct frame_work *work, __u64 address,
				      const struct code_range *range)
{
	__u32 generation = code__generation();
	const struct frames *frames;

	if (!range->module || range->module >= UNWIND_MAX_MODULES)
		return NULL;
	frames = __atomic_load_n(&known[range->module], __ATOMIC_ACQUIRE);
	if (!frames || frames->bias != range->bias ||
	    __atomic_load_n(&frames->generation, __ATOMIC_RELAXED) != generation)
		frames = learn(work, address, range, generation);
	return frames && frames->end ? frames : NULL;
}

enum unwind_table_state frame_rules__find(struct frame_work *work, __u64 address,
					  const struct code_range *range, struct unwind_rule *out)
{
	const struct frames *frames = frames_of(work, address, range);

	if (!frames)
		return UNWIND_TABLE_NONE;
	*out = rule_at(frames, work, address);
	return UNWIND_TABLE_READY;
}

__u64 frame_rules__function(struct frame_work *work, __u64 address, const struct code_range *range)
{
	const struct frames *frames = frames_of(work, address, range);
	__u64 begin;
	__u32 n;

	work->is_gone = false;
	n = frames ? find_entry(frames, work, address) : 0;
	begin = n ? code_at(frames, work, n - 1) : 0;
	return work->is_gone ? 0 : begin;
}

bool frame_rules__is_entry(__u32 module, __u64 offset)
{
	const struct frames *frames = module < UNWIND_MAX_MODULES
					      ? __atomic_load_n(&known[module], __ATOMIC_ACQUIRE)
					      : NULL;

	return frames && offset - frames->entry_offset < frames->entry_size;
}
