// SPDX-License-Identifier: GPL-3.0-or-later
/* Go's table of functions: as a whole in an ELF file, and alone. */
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "go_table.h"

static void read_table(const struct go_table *table)
{
	struct go_function function;

	for (__u32 i = 0; i < table->count && i < 4096; i++) {
		struct go_depths depths;

		if (!go_table__function(table, i, &function))
			continue;
		FUZZ_CHECK(function.lo < function.hi);
		fuzz__read(function.name, function.name_size);
		depths = go_depths__begin(&function);
		while (go_depths__next(&depths))
			FUZZ_CHECK(depths.lo < depths.hi);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct go_table table;
	char *image;
	Elf *elf;

	elf_version(EV_CURRENT);
	image = fuzz__text(data, size);
	elf = elf_memory(image, size);
	if (elf && !go_table__open(elf, &table))
		read_table(&table);
	elf_end(elf);
	free(image);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return elf_mutator__mutate(data, size, max_size, seed);
}
