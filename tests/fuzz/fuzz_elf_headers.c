// SPDX-License-Identifier: GPL-3.0-or-later
/* The headers of ELF files that the process with privileges reads itself. */
#include <unistd.h>

#include "elf_headers.h"
#include "fuzz.h"

static void read_parts(int fd, __u64 size)
{
	struct executable_parts parts;

	if (executable_parts__read(fd, &parts))
		return;
	FUZZ_CHECK(parts.n <= MAX_EXECUTABLE_PARTS && parts.file_bytes == size);
	for (size_t i = 0; i < parts.n; i++) {
		const struct executable_part *part = &parts.list[i];

		FUZZ_CHECK(part->offset <= size && part->size <= size - part->offset);
		if (part->size)
			FUZZ_CHECK(executable_parts__have_offset(&parts, part->offset));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz__file(data, size, NULL);
	struct elf_headers *headers;
	__u64 vaddr, offset;
	__u32 checksum;

	read_parts(fd, size);
	elf_headers__debuglink_checksum(fd, &checksum);
	if (elf_headers__read_any(fd, &headers))
		return 0;
	fuzz__read_text(elf_headers__build_id(headers));
	elf_headers__entry(headers);
	for (__u64 at = 0; at < size; at += 1 + size / 64)
		if (!elf_headers__offset_to_vaddr(headers, at, &vaddr))
			elf_headers__vaddr_to_offset(headers, vaddr, &offset);
	elf_headers__vaddr_to_offset(headers, ~0ULL, &offset);
	elf_headers__offset_to_vaddr(headers, ~0ULL, &vaddr);
	elf_headers__free(headers);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return elf_mutator__mutate(data, size, max_size, seed);
}
