// SPDX-License-Identifier: GPL-3.0-or-later
/* Names, files and lines of addresses, from all that an ELF file can have of these. */
#include <stdint.h>
#include <stdlib.h>

#include "error.h"
#include "fuzz.h"
#include "symbols_module.h"

#define ADDRESSES 64

static void read_address(const struct address *address)
{
	for (__u32 i = 0; i < address->n_lines; i++) {
		fuzz__read_text(address->lines[i].symbol);
		fuzz__read_text(address->lines[i].file);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct module_job job = {
		.fd = fuzz__file(data, size, NULL),
		.path = "/x/file",
		.build_id = "",
		.n_addresses = ADDRESSES,
	};

	job.addresses = calloc(ADDRESSES, sizeof(*job.addresses));
	FUZZ_CHECK(job.addresses);
	/* The seeds have their code in the first pages. */
	for (size_t i = 0; i + 1 < ADDRESSES; i++)
		job.addresses[i].vaddr = i * 0x69;
	job.addresses[ADDRESSES - 1].vaddr = UINT64_MAX;
	if (!module_job__run(&job))
		for (size_t i = 0; i < ADDRESSES; i++)
			read_address(&job.addresses[i]);
	fuzz__read_text(job.text);
	module_job__release(&job);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return elf_mutator__mutate(data, size, max_size, seed);
}
