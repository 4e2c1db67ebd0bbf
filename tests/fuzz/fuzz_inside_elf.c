// SPDX-License-Identifier: GPL-3.0-or-later
/* A program that a process is about to execute, as the library in that process looks at it: an ELF file, or a script. */
#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <string.h>

#include "preloadable.h"
#include "elf_symbols.h"
#include "fuzz.h"
#include "inside_abi.h"
#include "inside_host.h"

#define FD 5

/* The library asks the kernel no more often than this for any file. */
#define MAX_CALLS 500000

static const uint8_t *file;
static size_t file_bytes, n_calls;

static long read_file(char *out, size_t size, __u64 offset)
{
	if (offset > INT64_MAX)
		return -EINVAL;
	if (offset >= file_bytes)
		return 0;
	if (size > file_bytes - offset)
		size = file_bytes - offset;
	memcpy(out, file + offset, size);
	return size;
}

static long answer(long number, const long arguments[6])
{
	n_calls++;
	switch (number) {
	case __NR_openat:
	case __NR_fcntl:
		return FD;
	case __NR_pread64:
		FUZZ_CHECK(arguments[0] == FD);
		return read_file((char *)arguments[1], arguments[2], arguments[3]);
	case __NR_fstat:
		memset((void *)arguments[1], 0, sizeof(struct stat));
		return 0;
	case __NR_fgetxattr:
		return -ENODATA;
	}
	return 0;
}

static void look_up(void)
{
	struct file_symbols symbols;
	Elf64_Ehdr header;
	char text[16];

	if (file_bytes < sizeof(header))
		return;
	memcpy(&header, file, sizeof(header));
	if (!file_symbols__open(&symbols, FD, &header))
		return;
	file_symbols__define(&symbols, "malloc");
	file_symbols__define(&symbols, "");
	for (__u64 offset = 0; offset < file_bytes; offset += 1 + file_bytes / 16) {
		file_symbols__string(&symbols, offset, text, sizeof(text));
		FUZZ_CHECK(strnlen(text, sizeof(text)) < sizeof(text));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct program named = { AT_FDCWD, "/program" }, open = { 3, "" };
	int refusal;

	file = data;
	file_bytes = size;
	n_calls = 0;
	host__answer_by(answer);
	refusal = program__refusal(&named, true);
	FUZZ_CHECK(refusal >= -1 && refusal < INSIDE_REFUSALS);
	/* A script has its interpreter looked at by name. */
	if (size < 2 || memcmp(data, "#!", 2) != 0)
		FUZZ_CHECK(program__refusal(&open, true) == refusal);
	look_up();
	FUZZ_CHECK(n_calls < MAX_CALLS);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return elf_mutator__mutate(data, size, max_size, seed);
}
