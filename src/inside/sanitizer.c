// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sanitizer.h"

#include "elf_symbols.h"
#include "refusal_abi.h"
#include "sys.h"

#define NAME_BYTES 32

static bool begins_as_library(const char *name)
{
#define BEGINS(text)                                                                               \
	if (text__begins(name, text))                                                              \
		return true;
	SANITIZER_LIBRARIES(BEGINS)
#undef BEGINS
	return false;
}

static bool needs_library(const struct file_symbols *symbols)
{
	char name[NAME_BYTES];
	Elf64_Dyn entry;

	for (__u32 i = 0; file_symbols__entry(symbols, i, &entry); i++) {
		if (entry.d_tag != DT_NEEDED)
			continue;
		file_symbols__string(symbols, entry.d_un.d_val, name, sizeof(name));
		if (begins_as_library(name))
			return true;
	}
	return false;
}

static bool defines_function(const struct file_symbols *symbols)
{
#define DEFINES(name)                                                                              \
	if (file_symbols__define(symbols, name))                                                   \
		return true;
	SANITIZER_FUNCTIONS(DEFINES)
#undef DEFINES
	return false;
}

bool sanitizer__is_in(int fd, const Elf64_Ehdr *header)
{
	struct file_symbols symbols;

	return file_symbols__open(&symbols, fd, header) &&
	       (needs_library(&symbols) || defines_function(&symbols));
}

bool sanitizer__is_preloaded(const char *value)
{
	for (bool begins = true; *value; value++) {
		if (begins && begins_as_library(value))
			return true;
		begins = *value == '/' || *value == ':' || *value == ' ';
	}
	return false;
}
