// SPDX-License-Identifier: GPL-3.0-or-later
/* Unwind tables that a cache has kept: what is accepted can be used like a table that was built. */
#include <stdlib.h>
#include <string.h>

#include "cfi.h"
#include "fuzz.h"
#include "unwind_tables.h"

static int write_element(void *context, enum unwind_map map, __u32 index, const void *value)
{
	return 0;
}

static void use(const struct cfi_table *table)
{
	const struct unwind_writer writer = { .write = write_element };
	struct unwind_tables *tables = unwind_tables__new(&writer);
	struct loaded_table loaded;
	struct cfi_range range;

	FUZZ_CHECK(tables);
	for (__u32 i = 0; i < table->segment_count; i++)
		for (__u64 at = 0; at < table->segments[i].size && at < 4096; at += 13)
			cfi_table__range(table, table->segments[i].vaddr + at, &range);
	unwind_tables__load(tables, table, &loaded);
	unwind_tables__free(tables);
}

/* The next @n elements of the input, as many as it has. */
static void *take(const uint8_t **data, size_t *size, __u32 n, size_t element, __u32 *count)
{
	void *array;

	*count = n < *size / element ? n : *size / element;
	array = calloc(*count + 1, element);
	FUZZ_CHECK(array);
	memcpy(array, *data, *count * element);
	*data += *count * element;
	*size -= *count * element;
	return array;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_table table = { 0 };
	uint32_t counts = fuzz__take(data, &size);

	table.segments =
		take(&data, &size, counts & 3, sizeof(*table.segments), &table.segment_count);
	table.rules = take(&data, &size, counts >> 2 & 15, sizeof(*table.rules), &table.rule_count);
	table.rows = take(&data, &size, counts >> 6 & 255, sizeof(*table.rows), &table.row_count);
	table.blocks =
		take(&data, &size, counts >> 14 & 255, sizeof(*table.blocks), &table.block_count);
	if (cfi_table__is_sound(&table))
		use(&table);
	free(table.segments);
	free(table.rules);
	free(table.rows);
	free(table.blocks);
	return 0;
}
