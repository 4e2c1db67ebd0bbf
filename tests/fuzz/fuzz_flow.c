// SPDX-License-Identifier: GPL-3.0-or-later
/* Machine code: single instructions, branches, and walks along them. */
#include <stdlib.h>
#include <string.h>

#include "disasm.h"
#include "flow.h"
#include "fuzz.h"

#define MOST_LENGTH 15

static enum flow_step follow(const struct disasm_insn *insn, void *arg)
{
	size_t *n = arg;

	FUZZ_CHECK(++*n <= FLOW_MAX_INSNS);
	return FLOW_FOLLOW;
}

static void take_branch(const struct disasm_branch *branch, void *arg)
{
	fuzz__read(branch, sizeof(*branch));
}

static void read_at(const char *code, size_t size, __u64 vaddr)
{
	const struct elf_text text = {
		.vaddr = vaddr,
		.size = size,
		.code = (const unsigned char *)code,
	};
	const __u64 starts[] = { vaddr, vaddr + size / 2 };
	size_t n = 0;

	for (size_t at = 0; at < size;) {
		struct disasm_insn insn;
		char line[64];

		if (disasm__decode(code + at, size - at, vaddr + at, &insn)) {
			at++;
			continue;
		}
		FUZZ_CHECK(insn.length && insn.length <= MOST_LENGTH && insn.length <= size - at);
		disasm_insn__text(&insn, line, sizeof(line));
		FUZZ_CHECK(strlen(line) < sizeof(line));
		at += insn.length;
	}
	flow__walk(&text, starts, 2, vaddr, follow, &n);
	disasm__scan_branches(code, size, vaddr, take_branch, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Nothing may be read behind the last byte. */
	char *code = malloc(size);

	if (size && code) {
		memcpy(code, data, size);
		read_at(code, size, 0x401000);
		read_at(code, size, -(__u64)size);
	}
	free(code);
	return 0;
}
