// SPDX-License-Identifier: GPL-3.0-or-later
/* Notes of USDT probes, and the operands that they name. */
#include <fcntl.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "usdt.h"
#include "usdt_definition.h"

static int take_probe(const struct usdt_probe *probe, void *arg)
{
	struct ap_operand operand;

	fuzz__read_text(probe->provider);
	fuzz__read_text(probe->name);
	for (unsigned int i = 0; i < 12; i++)
		usdt_operand__parse(probe->arguments, i, &operand);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ap_operand operand;
	char *text;
	Elf *elf;

	elf_version(EV_CURRENT);
	text = fuzz__text(data, size);
	if (size >= 4 && !memcmp(data, "\177ELF", 4)) {
		elf = elf_memory(text, size);
		if (elf)
			usdt__for_each(elf, take_probe, NULL);
		elf_end(elf);
	} else {
		for (unsigned int i = 0; i < 12; i++)
			usdt_operand__parse(text, i, &operand);
	}
	free(text);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return elf_mutator__mutate(data, size, max_size, seed);
}
