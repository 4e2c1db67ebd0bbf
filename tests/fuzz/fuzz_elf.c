// SPDX-License-Identifier: GPL-3.0-or-later
/* ELF files as probing reads them: symbols, slots, code, and where probes are set. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "allocator.h"
#include "code_map.h"
#include "elf_file.h"
#include "error.h"
#include "function_code.h"
#include "fuzz.h"

static int take_symbol(const struct elf_symbol *symbol, void *arg)
{
	fuzz__read_text(symbol->name);
	return 0;
}

static int take_slot(const struct elf_slot *slot, void *arg)
{
	fuzz__read_text(slot->name);
	return 0;
}

static int take_string(const char *string, void *arg)
{
	fuzz__read_text(string);
	return 0;
}

static void read_code(struct elf_file *elf)
{
	struct code_map *map;
	struct code_target target;
	struct code_exit exits[8];
	__u64 start, end, entry;

	if (elf_file__text_range(elf, &start, &end)) {
		elf_file__free(elf);
		return;
	}
	if (code_map__new(elf, &map))
		return;
	for (__u64 at = start; at < end && at - start < 512; at += 3) {
		if (code_map__call(map, at, &target))
			fuzz__read_text(target.name);
		if (!code_map__function(map, at, &entry))
			continue;
		code_map__exits(map, entry, exits, 8);
		code_map__has(map, entry, at);
		code_map__is_named(map, entry, "malloc");
	}
	code_map__exported(map, "malloc", &entry);
	code_map__free(map);
}

static void read_file(int fd)
{
	struct error error = { "" };
	struct elf_file *elf;
	struct elf_text text;
	__u64 *starts;
	size_t n;

	if (elf_file__open(fd, "/x/file", &elf, &error)) {
		FUZZ_CHECK(error.text[0]);
		return;
	}
	fuzz__read_text(elf_file__build_id(elf));
	fuzz__read_text(elf_file__interpreter(elf));
	fuzz__read_text(elf_file__soname(elf));
	elf_file__is_program(elf);
	elf_file__imports(elf, "dlsym");
	elf_file__for_each_symbol(elf, take_symbol, NULL);
	elf_file__for_each_further_symbol(elf, take_symbol, NULL);
	elf_file__for_each_slot(elf, take_slot, NULL);
	elf_file__for_each_dynamic_string(elf, 1, take_string, NULL);
	if (!elf_file__fde_starts(elf, &starts, &n)) {
		fuzz__read(starts, n * sizeof(*starts));
		free(starts);
	}
	for (size_t i = 0; i < 4 && !elf_file__text(elf, i, &text); i++)
		fuzz__read(text.code, text.size);
	read_code(elf);
}

static void check_site(const struct site *site)
{
	FUZZ_CHECK(site->probe_vaddr - site->entry_vaddr <= SITE_MAX_DISTANCE);
	fuzz__read_text(site->instruction);
	fuzz__read_text(site->reason);
	for (size_t i = 0; i < site->n_aliases; i++)
		fuzz__read_text(site->aliases[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz__file(data, size, NULL);
	struct error error = { "" };
	struct allocator *allocator;
	struct function_code code;

	read_file(fd);
	if (!allocator__read(fd, "/x/file", SITE_BEST, &allocator, &error)) {
		for (size_t i = 0; i < allocator->n_sites; i++)
			check_site(&allocator->sites[i]);
		allocator__free(allocator);
	}
	function_code__find(fd, "/x/file", "malloc", &code, &error);
	function_code__find_usdt(fd, "/x/file", "unit:probe", &code, &error);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return elf_mutator__mutate(data, size, max_size, seed);
}
