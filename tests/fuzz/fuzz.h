/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What fuzz targets share. */
#ifndef ALLOCPROF_TESTS_FUZZ_H
#define ALLOCPROF_TESTS_FUZZ_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

/* Called by libFuzzer with each input. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* If a target has it, called for each mutation in the place of libFuzzer's own; returns the new size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* libFuzzer's own mutation. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Ends the target where something does not hold that holds for all inputs. */
#define FUZZ_CHECK(condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fuzz__fail(#condition, __FILE__, __LINE__);                                \
	} while (0)

__attribute__((noreturn)) void fuzz__fail(const char *condition, const char *file, int line);

/* A file in memory with these bytes, the same one at each call; *@path, which may be NULL, is a name of it. */
int fuzz__file(const void *bytes, size_t size, const char **path);

/* A copy of the bytes with a NUL behind them; to be freed. */
char *fuzz__text(const uint8_t *data, size_t size);

/* Takes a number from the end of the input. */
uint32_t fuzz__take(const uint8_t *data, size_t *size);

/* Reads each byte, so that ASan sees which of them are none of ours. */
void fuzz__read(const void *bytes, size_t size);
void fuzz__read_text(const char *text);

/* Mutates headers, tables and contents of an ELF file in place, mostly; or any bytes. */
size_t elf_mutator__mutate(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

#endif
