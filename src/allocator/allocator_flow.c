// SPDX-License-Identifier: GPL-3.0-or-later
/* Follows the code of an allocator's functions: jumps from one function to another, and tail
 * calls, by which a call of one function goes on in another. */
#include "allocator_internal.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"

/* Maximum distance in bytes between a branch with an 8-bit displacement and its target. */
#define SHORT_BRANCH 130

/* Limits of the search for real branches: bytes that are decoded of one function, and number of
 * functions that are decoded. */
#define MAX_DECODED   (16u << 10)
#define MAX_DECODINGS 1000

static const struct slot *slot_at(const struct allocator_reader *reader, __u64 vaddr)
{
	size_t at = ARRAY_LOWER_BOUND(reader->n_slots, i, reader->slots[i].vaddr < vaddr);

	return at < reader->n_slots && reader->slots[at].vaddr == vaddr ? &reader->slots[at] : NULL;
}

const struct elf_text *reader__text_at(const struct allocator_reader *reader, __u64 vaddr)
{
	for (size_t i = 0; i < reader->n_texts; i++)
		if (vaddr - reader->texts[i].vaddr < reader->texts[i].size)
			return &reader->texts[i];
	return NULL;
}

int reader__decode_at(const struct allocator_reader *reader, __u64 vaddr, struct disasm_insn *out)
{
	const struct elf_text *text = reader__text_at(reader, vaddr);
	__u64 at;

	if (!text)
		return -ENOENT;
	at = vaddr - text->vaddr;
	return disasm__decode(text->code + at, text->size - at, vaddr, out);
}

bool reader__stub_slot(const struct allocator_reader *reader, __u64 vaddr, __u64 *slot)
{
	const struct elf_text *text = reader__text_at(reader, vaddr);
	__u64 at = text ? vaddr - text->vaddr : 0;

	return text && disasm__stub_slot(text->code + at, text->size - at, vaddr, slot);
}

/* Returns the slot that the PLT stub at @vaddr jumps through, or NULL if there is no stub, or its
 * slot is not in the list. */
static const struct slot *slot_of_stub(const struct allocator_reader *reader, __u64 vaddr)
{
	__u64 slot;

	return reader->n_slots && reader__stub_slot(reader, vaddr, &slot) ? slot_at(reader, slot)
									  : NULL;
}

struct way reader__way_of(const struct allocator_reader *reader, const struct disasm_insn *insn)
{
	const struct slot *slot = NULL;
	struct way way = { 0 };

	if (insn->has_target) {
		way.site = allocator__site_at(reader->allocator, insn->target);
		if (!way.site)
			slot = slot_of_stub(reader, insn->target);
	} else if (insn->has_slot) {
		slot = slot_at(reader, insn->slot);
	}
	if (slot) {
		if (slot->site >= 0)
			way.site = &reader->allocator->sites[slot->site];
		way.names = slot->names;
		way.target = slot->target;
	}
	if (way.site)
		way.names |= way.site->names;
	return way;
}

/* Returns whether an instruction begins at @target, if execution runs from the site's entry to
 * there without jumps. */
static bool begins_instruction(const struct allocator_reader *reader, const struct site *site,
			       __u64 target)
{
	__u64 vaddr = site->entry_vaddr;

	while (vaddr < target) {
		struct disasm_insn insn;

		if (reader__decode_at(reader, vaddr, &insn))
			return true;
		vaddr += insn.length;
	}
	return vaddr == target;
}

/* Returns whether the bytes that look like a branch are a branch, and not part of other
 * instructions of their function. A hostile file may have such bytes everywhere; after many of
 * them, all are taken for branches. */
static bool is_instruction(struct allocator_reader *reader, const struct disasm_branch *branch)
{
	__u64 vaddr = reader__function_at(reader, branch->next - 1);
	struct disasm_insn insn = { 0 };

	if (!vaddr || branch->next - vaddr > MAX_DECODED || reader->n_decoded >= MAX_DECODINGS)
		return true;
	reader->n_decoded++;
	for (; vaddr < branch->next; vaddr += insn.length)
		if (reader__decode_at(reader, vaddr, &insn))
			return true;
	return vaddr == branch->next && insn.has_target;
}

/* Returns whether the bytes that look like a branch may be one that leads to an instruction of
 * @site: they are in the site's own function, or are certainly a branch. */
static bool may_lead(struct allocator_reader *reader, const struct disasm_branch *branch,
		     const struct site *site)
{
	return begins_instruction(reader, site, branch->target) &&
	       (reader__function_at(reader, branch->next - 1) == site->entry_vaddr ||
		is_instruction(reader, branch));
}

/* Notes a branch to @target if that is just behind the entry of a site. @looks is NULL if the
 * branch is certainly an instruction; else it describes bytes that look like a branch. */
static void note_branch(struct allocator_reader *reader, __u64 target,
			const struct disasm_branch *looks)
{
	const struct allocator *allocator = reader->allocator;

	if (target <= reader->lowest_entry || target > reader->highest_entry + SITE_MAX_DISTANCE)
		return;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		__u64 distance = target - allocator->sites[i].entry_vaddr;

		if (distance - 1 < SITE_MAX_DISTANCE &&
		    !(reader->branched_to[i] >> (distance - 1) & 1) &&
		    (!looks || may_lead(reader, looks, &allocator->sites[i])))
			reader->branched_to[i] |= 1ULL << (distance - 1);
	}
}

/* Adds the address behind a call or a jump to the list. */
static void note_address(struct allocator_reader *reader, struct addresses *list, __u64 vaddr)
{
	if (reader->err)
		return;
	/* A hostile file can have a call at every byte. */
	if (list->n >= MAX_RETURNS)
		reader->err = -EFBIG;
	else
		reader->err = addresses__add(list, vaddr);
}

bool site__frees(const struct site *site)
{
	return AP_FREEING >> site->function & 1;
}

static void note_return_instruction(struct allocator_reader *reader, __u64 vaddr)
{
	if (array__reserve(&reader->ends, &reader->room_ends, reader->n_ends + 1,
			   sizeof(*reader->ends)))
		reader->err = -ENOMEM;
	else
		reader->ends[reader->n_ends++] = (struct end){ reader->current, vaddr };
}

/* Notes how the instruction may leave the function. A jump into other code of the same text
 * section is followed. The target of a jump through a table or a stub is unknown, unless it is a
 * site or another function of the file. */
static void note_end(struct allocator_reader *reader, const struct disasm_insn *insn,
		     const struct way *way)
{
	bool *leaves_unseen = &reader->leaves_unseen[reader->current];

	if (reader->err)
		return;
	if (insn->class == DISASM_RET && insn->refused) {
		*leaves_unseen = true;
	} else if (insn->class == DISASM_RET) {
		if (reader->n_ends >= MAX_RETURNS)
			reader->err = -EFBIG;
		else
			note_return_instruction(reader, insn->vaddr);
	} else if (insn->class == DISASM_JUMP_INDIRECT) {
		*leaves_unseen |= !way->names && !way->target;
	} else if (insn->class == DISASM_JUMP || insn->class == DISASM_JUMP_CONDITIONAL) {
		if (!insn->has_target ||
		    reader__text_at(reader, insn->target) != reader__text_at(reader, insn->vaddr))
			*leaves_unseen |= !way->names && !way->target;
	}
}

static void note_jump(struct allocator_reader *reader, const struct site *to)
{
	size_t at = to - reader->allocator->sites;

	if (at == reader->current || reader->err)
		return;
	reader->allocator->sites[reader->current].may_jump = true;
	for (size_t i = 0; i < reader->n_edges; i++)
		if (reader->edges[i].from == reader->current && reader->edges[i].to == at)
			return;
	if (array__reserve(&reader->edges, &reader->room_edges, reader->n_edges + 1,
			   sizeof(*reader->edges)))
		reader->err = -ENOMEM;
	else
		reader->edges[reader->n_edges++] = (struct edge){ reader->current, at };
}

void reader__note_continuation(struct allocator_reader *reader, __u64 vaddr)
{
	for (size_t i = 0; i < reader->continuations.n; i++)
		if (reader->continuations.at[i] == vaddr)
			return;
	if (reader->continuations.n >= MAX_CONTINUATIONS)
		reader->leaves_unseen[reader->current] = true;
	else if (!reader->err)
		reader->err = addresses__add(&reader->continuations, vaddr);
}

static enum flow_step visit(const struct disasm_insn *insn, void *arg)
{
	struct allocator_reader *reader = arg;
	struct site *site = &reader->allocator->sites[reader->current];
	struct way way = { 0 };

	switch (insn->class) {
	case DISASM_CALL:
	case DISASM_CALL_INDIRECT:
		note_address(reader, &reader->returns, insn->vaddr + insn->length);
		if (insn->has_target)
			note_branch(reader, insn->target, NULL);
		return FLOW_PASS;
	case DISASM_JUMP:
	case DISASM_JUMP_CONDITIONAL:
		if (insn->has_target)
			note_branch(reader, insn->target, NULL);
		break;
	case DISASM_JUMP_INDIRECT:
	case DISASM_RET:
		break;
	default:
		return FLOW_PASS;
	}
	way = reader__way_of(reader, insn);
	note_end(reader, insn, &way);
	if (way.site) {
		note_jump(reader, way.site);
		if (insn->has_target)
			note_address(reader, &reader->jumps, insn->vaddr + insn->length);
	} else if (way.target) {
		reader__note_continuation(reader, way.target);
	}
	/* A jump to the function itself is no tail call. If it is unknown whether this file has
	 * the function, the tail call may still hit a site. */
	site->tail_calls |= way.names & ~site->names;
	site->may_jump |= way.names & ~site->names;
	return way.names || way.target ? FLOW_PASS : FLOW_FOLLOW;
}

int reader__walk_flow(struct allocator_reader *reader, __u64 entry, flow_fn fn)
{
	const struct elf_text *text = reader__text_at(reader, entry);
	int err;

	if (!text)
		return -ENOENT;
	err = flow__walk(text, reader->starts.at, reader->starts.n, entry, fn, reader);
	return err ? err : reader->err;
}

/* Returns whether all paths through the current site end in tail calls. */
static bool always_jumps(const struct allocator_reader *reader, size_t first_end)
{
	return reader->allocator->sites[reader->current].may_jump && first_end == reader->n_ends &&
	       !reader->leaves_unseen[reader->current];
}

/* Returns the mask of the tail calls that hit__forced_tail_call() predicts from the arguments, in
 * allocators that are not described. glibc's valloc makes its tail call only for alignments that
 * are smaller than any page. */
static __u32 foreseen_jumps(const struct allocator_reader *reader, enum ap_function function)
{
	switch (function) {
	case AP_REALLOC:
	case AP_ALIGNED_ALLOC:
	case AP_MEMALIGN:
		return 1U << AP_MALLOC;
	case AP_REALLOCARRAY:
		return 1U << AP_REALLOC;
	case AP_VALLOC:
	case AP_PVALLOC:
		return reader->is_c_library ? 1U << AP_MALLOC : 0;
	default:
		return 0;
	}
}

/* Returns whether a site makes a tail call that only the BPF programs for described allocators
 * handle, such as that of a memalign which is an alias of aligned_alloc. */
static bool has_other_jumps(const struct allocator_reader *reader)
{
	const struct allocator *allocator = reader->allocator;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		const struct site *site = &allocator->sites[i];

		if (site->tail_calls & ~foreseen_jumps(reader, site->function))
			return true;
	}
	return false;
}

/* Notes the branches among the first instructions of the site, also those that only a table of
 * addresses leads to: short branches are found nowhere else. */
static void note_near_branches(struct allocator_reader *reader, const struct site *site)
{
	struct disasm_insn insn;

	for (__u64 at = 0; at <= SITE_MAX_DISTANCE + SHORT_BRANCH; at += insn.length) {
		if (reader__decode_at(reader, site->entry_vaddr + at, &insn))
			return;
		if (insn.has_target && insn.class != DISASM_CALL)
			note_branch(reader, insn.target, NULL);
	}
}

int reader__walk_flows(struct allocator_reader *reader)
{
	struct allocator *allocator = reader->allocator;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		size_t first_end = reader->n_ends;
		int err;

		reader->current = i;
		reader->continuations.n = 0;
		note_near_branches(reader, &allocator->sites[i]);
		err = reader__walk_flow(reader, allocator->sites[i].entry_vaddr, visit);
		for (size_t j = 0; !err && j < reader->continuations.n; j++)
			err = reader__walk_flow(reader, reader->continuations.at[j], visit);
		if (err)
			return err;
		allocator->sites[i].must_jump = always_jumps(reader, first_end);
	}
	allocator->is_described |= has_other_jumps(reader);
	return 0;
}

/* Callback that ends a path at a call of a site, or a jump to one. If a path returns before that,
 * the function gets memory by other means. */
static enum flow_step visit_forwarding(const struct disasm_insn *insn, void *arg)
{
	struct allocator_reader *reader = arg;
	struct way way;

	switch (insn->class) {
	case DISASM_RET:
		reader->gets_by_itself = true;
		return FLOW_PASS;
	case DISASM_CALL:
	case DISASM_CALL_INDIRECT:
	case DISASM_JUMP:
	case DISASM_JUMP_CONDITIONAL:
	case DISASM_JUMP_INDIRECT:
		way = reader__way_of(reader, insn);
		if (way.names)
			return insn->class == DISASM_JUMP_CONDITIONAL ? FLOW_PASS : FLOW_STOP;
		return insn->class == DISASM_CALL ? FLOW_PASS : FLOW_FOLLOW;
	default:
		return FLOW_PASS;
	}
}

static bool is_operator(const struct site *site)
{
	return site->names & (1ULL << AP_NEW | 1ULL << AP_DELETE) &&
	       site->interface->name[0] == '_';
}

/*
 * Removes C++ operators that call malloc and free, since these calls count: so a program with a
 * static C++ library is counted like one with a shared library. An operator that gets memory by
 * other means stays, and then all operators stay.
 */
int reader__drop_forwarding_operators(struct allocator_reader *reader)
{
	struct allocator *allocator = reader->allocator;
	size_t n = 0;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		int err;

		if (allocator->sites[i].function != AP_NEW)
			continue;
		reader->gets_by_itself = false;
		err = reader__walk_flow(reader, allocator->sites[i].entry_vaddr, visit_forwarding);
		if (err || reader->gets_by_itself)
			return err;
	}
	for (size_t i = 0; i < allocator->n_sites; i++) {
		struct site *site = &allocator->sites[i];

		if (!is_operator(site))
			allocator->sites[n++] = *site;
	}
	if (n == allocator->n_sites)
		return 0;
	memset(allocator->sites + n, 0, (allocator->n_sites - n) * sizeof(*allocator->sites));
	allocator->n_sites = n;
	reader__settle_sites(reader);
	return 0;
}

static void visit_anywhere(const struct disasm_branch *branch, void *arg)
{
	struct allocator_reader *reader = arg;

	if (branch->target < reader->lowest_entry ||
	    branch->target > reader->highest_entry + SITE_MAX_DISTANCE)
		return;
	note_branch(reader, branch->target, branch);
	if (branch->is_call && reader__is_core(reader, branch->next) &&
	    allocator__site_at(reader->allocator, branch->target))
		note_address(reader, &reader->returns, branch->next);
}

int reader__scan_texts(struct allocator_reader *reader)
{
	int err = reader__find_core(reader);

	if (err)
		return err;
	for (size_t i = 0; i < reader->n_texts; i++) {
		const struct elf_text *text = &reader->texts[i];

		disasm__scan_branches(text->code, text->size, text->vaddr, visit_anywhere, reader);
	}
	return reader->err;
}
