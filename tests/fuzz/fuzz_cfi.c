// SPDX-License-Identifier: GPL-3.0-or-later
/* Unwind tables of ELF files, and of raw call frame information: all that the kernel is given is in bounds. */
#include <stdlib.h>
#include <string.h>

#include "cfi.h"
#include "cfi_internal.h"
#include "error.h"
#include "fuzz.h"
#include "unwind_tables.h"

static int write_element(void *context, enum unwind_map map, __u32 index, const void *value)
{
	static const size_t sizes[] = {
		[UNWIND_MAP_CHUNKS] = sizeof(struct unwind_chunk),
		[UNWIND_MAP_TABLES] = sizeof(struct unwind_table),
		[UNWIND_MAP_SLICES] = sizeof(struct unwind_slice),
		[UNWIND_MAP_RULES] = sizeof(struct unwind_rule),
	};

	if (value)
		fuzz__read(value, sizes[map]);
	return 0;
}

static void check_segment(const struct cfi_table *table, const struct unwind_segment *segment)
{
	__u64 step = segment->size / 16 + 1;

	for (__u64 at = 0; at <= segment->size; at += step) {
		struct cfi_range range;
		struct unwind_rule rule;
		__u64 vaddr = segment->vaddr + at;

		cfi_table__lookup(table, vaddr, &rule);
		if (cfi_table__range(table, vaddr, &range))
			FUZZ_CHECK(range.lo <= vaddr && vaddr < range.hi);
	}
}

static void check_table(struct cfi_table *table)
{
	const struct unwind_writer writer = { .write = write_element };
	struct unwind_tables *tables;
	struct loaded_table loaded;

	FUZZ_CHECK(cfi_table__is_sound(table));
	for (__u32 i = 0; i < table->segment_count; i++)
		check_segment(table, &table->segments[i]);
	tables = unwind_tables__new(&writer);
	FUZZ_CHECK(tables);
	if (!unwind_tables__load(tables, table, &loaded))
		unwind_tables__assign(tables, 1, &loaded);
	unwind_tables__free(tables);
	cfi_table__free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cfi_text texts[] = {
		{ 0x10000, 0x3000, 0x1000 },
		{ 0x11000, 0x9000, 0x700000 },
		{ 0xffffffffffff0000, 0x5000, 0xfff0 },
	};
	struct cfi_section sections[2] = { { .vaddr = 0x20000 }, { .vaddr = 0xfffffffffffff000 } };
	struct cfi_table *table = NULL;
	uint32_t choice;
	char *copy;

	if (size >= 4 && !memcmp(data, "\177ELF", 4)) {
		if (!cfi_table__build_image(data, size, "image", &table, NULL))
			check_table(table);
		return 0;
	}
	choice = fuzz__take(data, &size);
	copy = fuzz__text(data, size);
	sections[0].data = (__u8 *)copy;
	sections[0].size = choice & 1 ? size / 2 : size;
	sections[0].debug_frame = choice & 2;
	sections[0].ends_at_zero = choice & 4;
	sections[0].fdes_expected = choice >> 8 & 7;
	sections[1].data = (__u8 *)copy + sections[0].size;
	sections[1].size = size - sections[0].size;
	sections[1].debug_frame = choice & 8;
	if (!cfi_table__compile(&cfi_arch_host, sections, 1 + (choice & 1), texts,
				choice & 16 ? 3 : 2, &table))
		check_table(table);
	free(copy);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return elf_mutator__mutate(data, size, max_size, seed);
}
