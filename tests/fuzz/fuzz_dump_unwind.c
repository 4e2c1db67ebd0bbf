// SPDX-License-Identifier: GPL-3.0-or-later
/* The rules of an ELF file for single addresses, and what they make of registers and a stack. */
#include <stdlib.h>
#include <string.h>

#include "cfi_frames.h"
#include "fuzz.h"

#define STACK	    0x7ffff000
#define STACK_BYTES 4096

static bool load(void *context, __u64 address, __u64 *value)
{
	if (address - STACK > STACK_BYTES - sizeof(*value))
		return false;
	memcpy(value, (char *)context + (address - STACK), sizeof(*value));
	return true;
}

static void compute(const struct frame_rules *rules, void *stack)
{
	struct dwarf_machine machine = { .known = ~0ULL, .load = load, .context = stack };
	__u64 cfa, value;

	for (int i = 0; i < DWARF_REGISTERS; i++)
		machine.registers[i] = STACK + 8 * i;
	if (frame_rules__cfa(rules, &machine, &cfa))
		return;
	for (int i = 0; i < DWARF_REGISTERS; i++)
		frame_rules__caller_register(rules, &machine, i, cfa, &value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char stack[STACK_BYTES];
	struct cfi_frames *frames;
	struct frame_rules rules;

	if (cfi_frames__open(fuzz__file(data, size, NULL), &frames))
		return 0;
	for (size_t i = 0; i < STACK_BYTES; i++)
		stack[i] = data[i % size];
	for (__u64 at = 0x200; at < 0x3000; at += 0x13)
		if (cfi_frames__find(frames, at, &rules))
			compute(&rules, stack);
	cfi_frames__free(frames);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return elf_mutator__mutate(data, size, max_size, seed);
}
