// SPDX-License-Identifier: GPL-3.0-or-later
#include "disasm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* bfd.h requires a config.h. */
#define PACKAGE "allocprof"
#include <dis-asm.h>

struct disasm {
	struct disassemble_info info;
	disassembler_ftype print_insn;
	char text[256];
	size_t len;
};

static void append(struct disasm *disasm, const char *fmt, va_list args)
{
	size_t room = sizeof(disasm->text) - disasm->len;
	int len = vsnprintf(disasm->text + disasm->len, room, fmt, args);

	if (len < 0)
		return;
	disasm->len += (size_t)len < room ? (size_t)len : room - 1;
}

static int __attribute__((format(printf, 2, 3))) print_plain(void *stream, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	append(stream, fmt, args);
	va_end(args);
	return 0;
}

static int __attribute__((format(printf, 3, 4)))
print_styled(void *stream, enum disassembler_style style, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	append(stream, fmt, args);
	va_end(args);
	return 0;
}

static void print_address(bfd_vma addr, struct disassemble_info *info)
{
	print_plain(info->stream, "0x%llx", (unsigned long long)addr);
}

static void ignore_memory_error(int status, bfd_vma addr, struct disassemble_info *info)
{
}

int disasm__new(struct disasm **out)
{
	struct disasm *disasm = calloc(1, sizeof(*disasm));

	if (!disasm)
		return -ENOMEM;
	init_disassemble_info(&disasm->info, disasm, print_plain, print_styled);
	disasm->info.arch = bfd_arch_i386;
	disasm->info.mach = bfd_mach_x86_64;
	disasm->info.endian = BFD_ENDIAN_LITTLE;
	disasm->info.read_memory_func = buffer_read_memory;
	disasm->info.memory_error_func = ignore_memory_error;
	disasm->info.print_address_func = print_address;
	disasm->print_insn = disassembler(disasm->info.arch, false, disasm->info.mach, NULL);
	if (!disasm->print_insn) {
		free(disasm);
		return -ENOTSUP;
	}
	disassemble_init_for_target(&disasm->info);
	*out = disasm;
	return 0;
}

void disasm__free(struct disasm *disasm)
{
	if (!disasm)
		return;
	disassemble_free_target(&disasm->info);
	free(disasm);
}

/* libopcodes pads mnemonics to columns and appends `# address` comments. */
static void copy_text(char *to, size_t size, const char *from)
{
	size_t len = 0;

	for (; *from && *from != '#' && len + 1 < size; from++) {
		if (*from == ' ' && (len == 0 || to[len - 1] == ' '))
			continue;
		to[len++] = *from;
	}
	while (len > 0 && to[len - 1] == ' ')
		len--;
	to[len] = '\0';
}

int disasm__decode(struct disasm *disasm, const void *code, size_t size, __u64 vaddr,
		   struct disasm_insn *out)
{
	struct disasm_insn insn = { .vaddr = vaddr };
	int length;

	/* No instruction is longer, and buffer_read_memory() computes vaddr + length. */
	if (size > 64)
		size = 64;
	if (size == 0 || vaddr + size < vaddr)
		return -EILSEQ;
	disasm->len = 0;
	disasm->text[0] = '\0';
	/* Older struct definitions lack the const. */
	disasm->info.buffer = (bfd_byte *)(unsigned long)code;
	disasm->info.buffer_vma = vaddr;
	disasm->info.buffer_length = size;
	length = disasm->print_insn(vaddr, &disasm->info);
	/* libopcodes prints a truncated instruction as `.byte`. */
	if (length <= 0 || (size_t)length > size || strstr(disasm->text, "(bad)") ||
	    disasm->text[0] == '.')
		return -EILSEQ;
	insn.length = length;
	copy_text(insn.text, sizeof(insn.text), disasm->text);
	disasm_arch__classify(code, &insn);
	*out = insn;
	return 0;
}
