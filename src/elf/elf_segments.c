// SPDX-License-Identifier: GPL-3.0-or-later
#include "elf_segments.h"

#include <errno.h>

int elf_segments__add(struct elf_segments *segments, const Elf64_Phdr *header, __u64 file_size)
{
	__u64 size = header->p_filesz;

	if (header->p_offset >= file_size || header->p_vaddr + size < header->p_vaddr)
		return 0;
	if (size > file_size - header->p_offset)
		size = file_size - header->p_offset;
	if (!size)
		return 0;
	if (segments->n == MAX_SEGMENTS)
		return -ENOEXEC;
	segments->list[segments->n++] = (struct elf_segment){
		.vaddr = header->p_vaddr,
		.offset = header->p_offset,
		.size = size,
		.executable = header->p_flags & PF_X,
	};
	return 0;
}

int elf_segments__vaddr_to_offset(const struct elf_segments *segments, __u64 vaddr, __u64 *offset)
{
	for (size_t i = 0; i < segments->n; i++) {
		const struct elf_segment *segment = &segments->list[i];

		if (vaddr - segment->vaddr >= segment->size)
			continue;
		*offset = segment->offset + (vaddr - segment->vaddr);
		return 0;
	}
	return -ENOENT;
}

int elf_segments__offset_to_vaddr(const struct elf_segments *segments, __u64 offset, __u64 *vaddr)
{
	/* A page at a segment border belongs to two segments; prefer the code. */
	for (int executable = 1; executable >= 0; executable--) {
		for (size_t i = 0; i < segments->n; i++) {
			const struct elf_segment *segment = &segments->list[i];

			if (segment->executable != executable ||
			    offset - segment->offset >= segment->size)
				continue;
			*vaddr = segment->vaddr + (offset - segment->offset);
			return 0;
		}
	}
	return -ENOENT;
}
