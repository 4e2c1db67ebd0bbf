// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds the ELF header and the segments of a file that the process has mapped. */
#include "image.h"

/* How many mappings in front of the code may be the same file's: segments, and the gaps between them. */
#define MOST_MAPPINGS 16

static bool find_beginning(struct mapping *mapping, void *buffer, __u32 size)
{
	for (int i = 0; mapping->offset && i < MOST_MAPPINGS; i++) {
		struct mapping below;

		if (maps__find(mapping->start - 1, &below, NULL, 0, buffer, size) ||
		    below.inode != mapping->inode || below.device != mapping->device)
			return false;
		*mapping = below;
	}
	return !mapping->offset;
}

bool image__find(const struct mapping *code, struct image *out, void *buffer, __u32 size)
{
	struct mapping first = *code;
	const Elf64_Ehdr *header;
	__u64 room;

	if (!find_beginning(&first, buffer, size) || !first.is_readable)
		return false;
	header = (const Elf64_Ehdr *)first.start;
	if (*(const __u32 *)header->e_ident != *(const __u32 *)ELFMAG ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr))
		return false;
	room = first.end - first.start;
	if (header->e_phoff & 7 || header->e_phoff > room ||
	    header->e_phnum > (room - header->e_phoff) / sizeof(Elf64_Phdr))
		return false;
	*out = (struct image){
		.start = first.start,
		.end = first.end,
		.segments = (const Elf64_Phdr *)(first.start + header->e_phoff),
		.n_segments = header->e_phnum,
	};
	for (__u32 i = 0; i < out->n_segments; i++) {
		const Elf64_Phdr *segment = &out->segments[i];

		if (segment->p_type != PT_LOAD || segment->p_offset >= LEAST_PAGE)
			continue;
		out->load = first.start - (segment->p_vaddr - segment->p_offset);
		out->entry = header->e_entry ? header->e_entry + out->load : 0;
		return true;
	}
	return false;
}

const Elf64_Phdr *image__segment(const struct image *image, __u32 type)
{
	for (__u32 i = 0; i < image->n_segments; i++)
		if (image->segments[i].p_type == type)
			return &image->segments[i];
	return NULL;
}

static __u32 aligned(__u32 bytes)
{
	return (bytes + 3) & ~3U;
}

static __u32 find_in_notes(const char *notes, __u64 left, __u8 *out, __u32 size)
{
	while (left >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *note = (const void *)notes;
		__u64 name = aligned(note->n_namesz), described = aligned(note->n_descsz);

		if (name < note->n_namesz || described < note->n_descsz ||
		    name + described > left - sizeof(*note))
			return 0;
		notes += sizeof(*note);
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    text__equal(notes, "GNU") && note->n_descsz <= size) {
			memcpy(out, notes + name, note->n_descsz);
			return note->n_descsz;
		}
		notes += name + described;
		left -= sizeof(*note) + name + described;
	}
	return 0;
}

__u32 image__build_id(const struct image *image, __u8 *out, __u32 size)
{
	__u32 n = 0;

	for (__u32 i = 0; i < image->n_segments && !n; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		__u64 address = segment->p_vaddr + image->load;

		if (segment->p_type == PT_NOTE && !(address & 3) && address >= image->start &&
		    address <= image->end && segment->p_filesz <= image->end - address)
			n = find_in_notes((const char *)address, segment->p_filesz, out, size);
	}
	return n;
}
