// SPDX-License-Identifier: GPL-3.0-or-later
/* .gnu_debugdata: ELF files with such a section, and the headers of what is compressed. */
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <libelf.h>

#include "debug_file.h"
#include "error.h"
#include "fuzz.h"
#include "symbol_table.h"

static void read_symbols(const struct debug_file *file)
{
	struct symbol_table *table = symbol_table__new();
	struct mini_debug *mini;
	struct symbol_name name;

	FUZZ_CHECK(table);
	if (!mini_debug__add(file, table, &mini)) {
		FUZZ_CHECK(!symbol_table__finish(table));
		for (__u64 at = 0; at < 0x3000; at += 0x40) {
			name = symbol_table__find(table, at);
			fuzz__read(name.text, name.size);
		}
		symbol_table__free(table);
		mini_debug__free(mini);
	} else {
		symbol_table__free(table);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct debug_file file = DEBUG_FILE_NONE;
	struct error error = { "" };
	__u64 unpacked;
	int fd;

	elf_version(EV_CURRENT);
	mini_debug__unpacked_size(data, size, &unpacked);
	fd = fcntl(fuzz__file(data, size, NULL), F_DUPFD_CLOEXEC, 0);
	if (!debug_file__open(fd, "/x/file", &file, &error)) {
		read_symbols(&file);
		debug_file__close(&file);
	}
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return elf_mutator__mutate(data, size, max_size, seed);
}
