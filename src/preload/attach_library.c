// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the library that is mapped into running processes, and finds out whether threads of such a process are within it. */
#include "attach_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "disasm.h"
#include "elf_file.h"
#include "elf_host.h"
#include "file.h"
#include "hold.h"
#include "inside_abi.h"
#include "proc.h"
#include "remote.h"

#define STACK_MAX (1ULL << 20)

const Elf64_Phdr *library_file__segment(const struct library_file *file, size_t index)
{
	const Elf64_Ehdr *header = (const void *)file->bytes;

	return index < header->e_phnum ? (const Elf64_Phdr *)(file->bytes + header->e_phoff) + index
				       : NULL;
}

static int add_entry(struct library_file *file, __u64 address)
{
	if (array__reserve(&file->entries, &file->room_entries, file->n_entries + 1,
			   sizeof(*file->entries)))
		return -ENOMEM;
	file->entries[file->n_entries++] = address;
	return 0;
}

static int find_symbols(struct library_file *file)
{
	const Elf64_Ehdr *header = (const void *)file->bytes;
	const Elf64_Shdr *sections = (const void *)(file->bytes + header->e_shoff);
	int err = 0;

	for (size_t i = 0; i < header->e_shnum; i++) {
		const Elf64_Sym *symbol = (const void *)(file->bytes + sections[i].sh_offset);
		const char *names;

		if (sections[i].sh_type != SHT_DYNSYM)
			continue;
		names = (const char *)file->bytes + sections[sections[i].sh_link].sh_offset;
		for (size_t n = sections[i].sh_size / sizeof(*symbol); n && !err; n--, symbol++) {
			if (symbol->st_shndx && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
				err = add_entry(file, symbol->st_value);
			if (!strcmp(names + symbol->st_name, "allocprof_attach"))
				file->attach = symbol->st_value;
			else if (!strcmp(names + symbol->st_name, "allocprof_request"))
				file->request = symbol->st_value;
			else if (!strcmp(names + symbol->st_name, "allocprof_n_outside"))
				file->n_outside = symbol->st_value;
			else if (!strcmp(names + symbol->st_name, "allocprof_redirections"))
				file->redirections = symbol->st_value;
			else if (!strcmp(names + symbol->st_name, "allocprof_stubs"))
				file->stubs = symbol->st_value;
			else if (!strcmp(names + symbol->st_name, "allocprof_functions")) {
				file->stub_functions = symbol->st_value;
				file->stub_functions_bytes = symbol->st_size;
			}
		}
	}
	return err;
}

static int find_functions(struct library_file *file, int fd, const char *path)
{
	struct elf_file *elf;
	int err = elf_file__open(fd, path, &elf, NULL);

	if (err)
		return err;
	err = elf_file__fde_starts(elf, &file->functions, &file->n_functions);
	elf_file__free(elf);
	return err;
}

void library_file__release(struct library_file *file)
{
	free(file->bytes);
	free(file->functions);
	free(file->entries);
}

/* Reads the library's file, which belongs to allocprof and is as trusted as this code. */
int library_file__read(const char *path, struct library_file *out)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	const Elf64_Phdr *segment;
	struct stat status;
	int err;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	out->size = status.st_size;
	out->bytes = malloc(out->size);
	if (!out->bytes)
		return -ENOMEM;
	err = fd__read_all(fd, out->bytes, out->size);
	if (err)
		return err;
	for (size_t i = 0; (segment = library_file__segment(out, i)); i++) {
		__u64 end = segment->p_vaddr + segment->p_memsz;

		if (segment->p_type != PT_LOAD)
			continue;
		if (end > out->memory_bytes)
			out->memory_bytes = end;
		if (segment->p_flags & PF_X) {
			out->code_start = segment->p_vaddr;
			out->code_end = end;
		}
	}
	out->memory_bytes = (out->memory_bytes + PAGE - 1) & ~(PAGE - 1);
	err = find_symbols(out);
	if (!err)
		err = find_functions(out, fd, path);
	if (err)
		return err;
	return out->attach && out->request && out->n_outside && out->redirections && out->stubs &&
			       out->stub_functions
		       ? 0
		       : -ENOEXEC;
}

static __u64 offset_of(const struct library_file *file, __u64 vaddr)
{
	const Elf64_Phdr *segment;

	for (size_t i = 0; (segment = library_file__segment(file, i)); i++)
		if (segment->p_type == PT_LOAD && vaddr - segment->p_vaddr < segment->p_filesz)
			return segment->p_offset + (vaddr - segment->p_vaddr);
	return 0;
}

void library_file__relocate(struct library_file *file, __u64 base)
{
	const Elf64_Ehdr *header = (const void *)file->bytes;
	const Elf64_Shdr *sections = (const void *)(file->bytes + header->e_shoff);

	for (size_t i = 0; i < header->e_shnum; i++) {
		const Elf64_Rela *relocation = (const void *)(file->bytes + sections[i].sh_offset);

		if (sections[i].sh_type != SHT_RELA || !(sections[i].sh_flags & SHF_ALLOC))
			continue;
		for (size_t n = sections[i].sh_size / sizeof(*relocation); n; n--, relocation++) {
			__u64 at = offset_of(file, relocation->r_offset);
			__u64 value = base + relocation->r_addend;

			if (at && ELF64_R_TYPE(relocation->r_info) == elf_host.relative)
				memcpy(file->bytes + at, &value, sizeof(value));
		}
	}
}

/* Finds out whether threads are within the library, by their stacks. */

struct stacks {
	struct stack_mapping {
		__u64 start, end;
	} * list;
	size_t n, room;
};

static int note_mapping(void *context, const struct proc_mapping *mapping)
{
	struct stacks *stacks = context;

	if (mapping->inode)
		return 0;
	if (array__reserve(&stacks->list, &stacks->room, stacks->n + 1, sizeof(*stacks->list)))
		return -ENOMEM;
	stacks->list[stacks->n++] = (struct stack_mapping){ mapping->start, mapping->end };
	return 0;
}

struct searching {
	const struct mapped_library *library;
	struct stacks stacks;
	__u64 *words; /* room for STACK_MAX bytes */
};

static bool is_code(const struct mapped_library *library, __u64 address)
{
	return address - library->base - library->file->code_start <
	       library->file->code_end - library->file->code_start;
}

/*
 * Returns whether a call can have left @address on a stack. Finished calls have left many return
 * addresses into the library on stacks. A thread that does return to one, from the allocator,
 * finds that the process is not measured any more, and uses no memory that the library has mapped.
 * Any other address into the library is that of an instruction that a signal has interrupted:
 * there the thread goes on with such memory.
 */
static bool is_return_address(const struct mapped_library *library, __u64 address)
{
	__u64 at = address - library->base;

	return at >= library->file->code_start + DISASM_CALL_BYTES &&
	       disasm__ends_with_call(library->file->bytes + at - DISASM_CALL_BYTES);
}

static __u64 end_of_stack(const struct stacks *stacks, __u64 sp)
{
	for (size_t i = 0; i < stacks->n; i++)
		if (sp >= stacks->list[i].start && sp < stacks->list[i].end)
			return stacks->list[i].end;
	return sp;
}

/* Returns whether other code enters the library at @address: programs keep such addresses. A thread that is
 * there has not begun to use memory that the library has mapped, and will find that it is not measured. */
static bool is_entry(const struct mapped_library *library, __u64 address)
{
	const struct library_file *file = library->file;
	__u64 at = address - library->base;

	for (size_t i = 0; i < file->n_entries; i++)
		if (file->entries[i] == at)
			return true;
	return at - file->stubs < INSIDE_STUBS * INSIDE_STUB_BYTES &&
	       (at - file->stubs) % INSIDE_STUB_BYTES == 0;
}

/* Returns whether an instruction of the library may begin at @address. Where part of a word on a stack has
 * been written over, the rest may look like any address. */
static bool may_be_instruction(const struct mapped_library *library, __u64 address)
{
	const struct library_file *file = library->file;
	__u64 at = address - library->base, vaddr;
	size_t next = ARRAY_LOWER_BOUND(file->n_functions, i, file->functions[i] <= at);
	struct disasm_insn insn;

	if (!next)
		return true;
	/* The code segment has the same offset in the file as in memory. */
	for (vaddr = file->functions[next - 1]; vaddr < at; vaddr += insn.length)
		if (disasm__decode(file->bytes + vaddr, file->code_end - vaddr, vaddr, &insn))
			return true;
	return vaddr == at;
}

static int search_thread(void *context, pid_t tid)
{
	struct searching *searching = context;
	__u64 code, sp, size;

	if (remote__position(tid, &code, &sp))
		return 0;
	if (is_code(searching->library, code))
		return 1;
	sp &= ~7ULL;
	size = end_of_stack(&searching->stacks, sp) - sp;
	if (size > STACK_MAX)
		size = STACK_MAX;
	if (process_memory__read(searching->library->pid, sp, searching->words, size))
		return 1;
	for (size_t i = 0; i < size / sizeof(__u64); i++)
		if (is_code(searching->library, searching->words[i]) &&
		    !is_return_address(searching->library, searching->words[i]) &&
		    !is_entry(searching->library, searching->words[i]) &&
		    may_be_instruction(searching->library, searching->words[i]))
			return 1;
	return 0;
}

/* Returns whether a thread runs the library's code, or a signal handler that has interrupted it. */
static bool is_any_within(const struct mapped_library *library, const struct hold *hold)
{
	struct searching searching = { .library = library, .words = malloc(STACK_MAX) };
	bool is = !searching.words ||
		  proc_maps__each(library->pid, note_mapping, &searching.stacks) ||
		  hold__each_stopped(hold, search_thread, &searching);

	free(searching.words);
	free(searching.stacks.list);
	return is;
}

bool mapped_library__may_be_used(const struct mapped_library *library, const struct hold *hold)
{
	__u32 n_outside;

	return hold__count_running(hold) ||
	       process_memory__read(library->pid, library->base + library->file->n_outside,
				    &n_outside, sizeof(n_outside)) ||
	       n_outside || is_any_within(library, hold);
}
