// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the entries of .eh_frame and .debug_frame: CIEs and FDEs. */
#include <dwarf.h>

#include "cfi_rules.h"

enum cfi_reject cfi_pointer__read(struct dwarf_cursor *c, __u8 encoding,
				  const struct cfi_section *section, __u64 data_base, __u64 *out)
{
	__u64 value, base;

	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
	/*
	 * libgcc's text and data bases are NULL for executables of this ABI (unwind-dw2-fde-dip.c).
	 */
	case DW_EH_PE_textrel:
		base = 0;
		break;
	case DW_EH_PE_datarel:
		base = data_base;
		break;
	case DW_EH_PE_pcrel:
		base = section->vaddr + (__u64)(c->pos - section->data);
		break;
	case DW_EH_PE_aligned:
		if (encoding != DW_EH_PE_aligned)
			return CFI_REJECT_ENCODING;
		base = section->vaddr + (__u64)(c->pos - section->data);
		dwarf_cursor__skip(c, -base & 7);
		base = 0;
		break;
	default:
		return CFI_REJECT_ENCODING;
	}
	if (encoding & DW_EH_PE_indirect)
		return CFI_REJECT_ENCODING;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = dwarf_cursor__u64(c);
		break;
	case DW_EH_PE_uleb128:
		value = dwarf_cursor__uleb128(c);
		break;
	case DW_EH_PE_udata2:
		value = dwarf_cursor__u16(c);
		break;
	case DW_EH_PE_udata4:
		value = dwarf_cursor__u32(c);
		break;
	case DW_EH_PE_sleb128:
		value = (__u64)dwarf_cursor__sleb128(c);
		break;
	case DW_EH_PE_sdata2:
		value = (__u64)(__s16)dwarf_cursor__u16(c);
		break;
	case DW_EH_PE_sdata4:
		value = (__u64)(__s32)dwarf_cursor__u32(c);
		break;
	default:
		return CFI_REJECT_ENCODING;
	}
	if (c->bad)
		return CFI_REJECT_TRUNCATED;
	*out = base + value;
	return CFI_OK;
}

/* Skips a pointer whose value is not needed, such as the personality routine's. */
static enum cfi_reject skip_pointer(struct dwarf_cursor *c, __u8 encoding,
				    const struct cfi_section *section)
{
	__u64 ignored;

	if (encoding == DW_EH_PE_omit)
		return CFI_OK;
	return cfi_pointer__read(c, encoding & ~DW_EH_PE_indirect, section, 0, &ignored);
}

static enum cfi_reject read_augmentation(struct dwarf_cursor *c, const char *letters,
					 const struct cfi_section *section, struct cfi_cie *cie)
{
	struct dwarf_cursor data = *c;
	enum cfi_reject reject;
	__u64 size;

	if (!letters[0])
		return CFI_OK;
	if (letters[0] != 'z')
		return CFI_REJECT_AUGMENTATION;

	size = dwarf_cursor__uleb128(c);
	data.pos = dwarf_cursor__skip(c, size);
	data.end = c->pos;
	if (c->bad)
		return CFI_REJECT_TRUNCATED;
	cie->sized_augmentation = true;
	for (letters++; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->fde_encoding = dwarf_cursor__u8(&data);
			break;
		case 'P':
			reject = skip_pointer(&data, dwarf_cursor__u8(&data), section);
			if (reject)
				return reject;
			break;
		case 'L':
			dwarf_cursor__u8(&data);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		case 'B': /* arm64: signed return addresses use the B key */
		case 'G': /* arm64: the stack is tagged */
			break;
		default:
			return CFI_REJECT_AUGMENTATION;
		}
	}
	return data.bad ? CFI_REJECT_TRUNCATED : CFI_OK;
}

enum cfi_reject cfi_cie__read(struct dwarf_cursor *c, const struct cfi_arch *arch,
			      const struct cfi_section *section, struct cfi_machine *machine,
			      struct cfi_cie *cie)
{
	const char *augmentation;
	enum cfi_reject reject;
	__u64 ra_column;
	__u8 version;

	version = dwarf_cursor__u8(c);
	if (c->bad)
		return CFI_REJECT_TRUNCATED;
	if (version != 1 && version != 3 && version != 4)
		return CFI_REJECT_VERSION;

	augmentation = (const char *)c->pos;
	while (dwarf_cursor__u8(c))
		;
	if (c->bad)
		return CFI_REJECT_TRUNCATED;
	/* GCC 2's "eh": a pointer to exception data follows. */
	if (augmentation[0] == 'e' && augmentation[1] == 'h') {
		augmentation += 2;
		dwarf_cursor__u64(c);
	}
	if (version >= 4) {
		__u8 address_size = dwarf_cursor__u8(c);
		__u8 segment_size = dwarf_cursor__u8(c);

		if (!c->bad && (address_size != 8 || segment_size != 0))
			return CFI_REJECT_VERSION;
	}
	cie->code_align = dwarf_cursor__uleb128(c);
	cie->data_align = dwarf_cursor__sleb128(c);
	ra_column = version == 1 ? dwarf_cursor__u8(c) : dwarf_cursor__uleb128(c);
	if (c->bad)
		return CFI_REJECT_TRUNCATED;

	cie->fde_encoding = DW_EH_PE_absptr;
	reject = read_augmentation(c, augmentation, section, cie);
	if (reject)
		return reject;
	cie->readable = true;
	if (ra_column != arch->registers[CFI_COLUMN_RA])
		return CFI_REJECT_CIE;
	cie->program = c->pos;
	cie->program_size = (__u32)(c->end - c->pos);
	return cfi_program__run(machine, arch, cie, section, NULL, *c, &cie->initial, NULL, NULL);
}

enum cfi_reject cfi_fde__read(struct dwarf_cursor *c, const struct cfi_section *section,
			      const struct cfi_cie *cie, struct cfi_fde *fde)
{
	enum cfi_reject reject;
	__u64 size;

	if (!cie->readable)
		return CFI_REJECT_CIE;
	reject = cfi_pointer__read(c, cie->fde_encoding, section, 0, &fde->lo);
	if (reject)
		return reject;
	/* The size is encoded as the pointer, but without a base. */
	reject = cfi_pointer__read(c, cie->fde_encoding & 0x0f, section, 0, &size);
	if (reject)
		return reject;
	if (cie->sized_augmentation)
		dwarf_cursor__skip(c, dwarf_cursor__uleb128(c));
	if (c->bad)
		return CFI_REJECT_TRUNCATED;
	if (!size || fde->lo + size < fde->lo)
		return CFI_REJECT_RANGE;
	fde->hi = fde->lo + size;
	fde->program = c->pos;
	fde->program_size = (__u32)(c->end - c->pos);
	return CFI_OK;
}
