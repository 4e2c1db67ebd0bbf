// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the compilation units to which addresses belong. */
#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>

#include "array.h"
#include "dwarf_internal.h"

/* Limit of units without ranges that are searched for addresses without a unit. */
#define MAX_BARE 65536

int code_ranges__read(struct code_ranges *code, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t n;

	if (elf_getshdrnum(elf, &n))
		return 0;
	code->ranges = calloc(n + 1, sizeof(*code->ranges));
	if (!code->ranges)
		return -ENOMEM;
	while ((section = elf_nextscn(elf, section)) && code->n < n) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR) ||
		    header.sh_addr + header.sh_size < header.sh_addr)
			continue;
		code->ranges[code->n++] =
			(struct code_range){ header.sh_addr, header.sh_addr + header.sh_size };
	}
	return 0;
}

__u64 code_ranges__limit(const struct code_ranges *code, __u64 start)
{
	for (size_t i = 0; i < code->n; i++)
		if (start >= code->ranges[i].start && start < code->ranges[i].end)
			return code->ranges[i].end;
	return code->n ? 0 : UINT64_MAX;
}

size_t query__first(const struct query *query, size_t n, __u64 vaddr)
{
	return ARRAY_LOWER_BOUND(n, i, query[i].address->vaddr < vaddr);
}

static void give_unit(struct query *query, size_t n, __u64 start, __u64 end, Dwarf_Off unit,
		      struct dwarf_budget *budget)
{
	for (size_t i = query__first(query, n, start);
	     i < n && query[i].address->vaddr < end && budget->dies; i++) {
		budget->dies--;
		if (query[i].has_unit && query[i].unit_bytes <= end - start)
			continue;
		query[i].has_unit = true;
		query[i].unit = unit;
		query[i].unit_bytes = end - start;
	}
}

/* Assigns the unit to queries in its ranges. Returns whether the unit has ranges. */
static bool assign_unit(Dwarf_Die *unit, const struct code_ranges *code, struct query *query,
			size_t n, struct dwarf_budget *budget)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	bool has_ranges = false;

	while (budget->dies && (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0) {
		__u64 limit = code_ranges__limit(code, start);

		budget->dies--;
		has_ranges = true;
		if (limit && end > start)
			give_unit(query, n, start, end < limit ? end : limit, dwarf_dieoffset(unit),
				  budget);
	}
	return has_ranges;
}

static int add_bare(Dwarf_Off **bare, size_t *n_bare, size_t *room, Dwarf_Off unit)
{
	if (*n_bare >= MAX_BARE)
		return 0;
	if (array__reserve(bare, room, *n_bare + 1, sizeof(**bare)))
		return -ENOMEM;
	(*bare)[(*n_bare)++] = unit;
	return 0;
}

int dwarf_units__assign(Dwarf *dwarf, const struct code_ranges *code, struct query *query, size_t n,
			struct dwarf_budget *budget, Dwarf_Off **bare, size_t *n_bare)
{
	Dwarf_CU *cu = NULL;
	size_t room = 0;
	uint8_t type;
	Dwarf_Die unit;
	int end = 0, err = 0;

	*bare = NULL;
	*n_bare = 0;
	while (!err && budget->dies &&
	       !(end = dwarf_get_units(dwarf, cu, &cu, NULL, &type, &unit, NULL))) {
		budget->dies--;
		if ((type == DW_UT_compile || type == DW_UT_skeleton) &&
		    !assign_unit(&unit, code, query, n, budget) &&
		    (dwarf_haschildren(&unit) > 0 || type == DW_UT_skeleton))
			err = add_bare(bare, n_bare, &room, dwarf_dieoffset(&unit));
	}
	if (err)
		return err;
	return end < 0 || !budget->dies ? -ENOEXEC : 0;
}
