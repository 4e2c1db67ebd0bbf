// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Says where each version of CPython has its fields: by its own table from 3.13 on, by tables of headers before. */
#include "python_layout.h"

#include <stddef.h>

/* The first word of a _PyRuntimeState since 3.13, "xdebugpy"; offsets follow it. */
#define COOKIE 0x7970677562656478ULL

/* Objects have been the same since 3.3, but for strings. */
#define OBJECTS .type = 8, .size = 16, .length = 16, .state = 32, .data = 32

/* tests/live/test_python_frames.py compares them with the headers of the Python that is installed. */
static const struct python_layout layouts[] = {
	{
		.version = 0x030b,
		.interpreters = 40,
		.finalizing = 24,
		.gil_owner = 576,
		.about_key = 592,
		.threads = 16,
		.next_thread = 8,
		.native_id = 160,
		.cframe = 56,
		.frame = 8,
		.is_entry = 68,
		.next_cframe = 16,
		.code = 32,
		.previous = 48,
		.instruction = 56,
		.owner = 69,
		.file = 112,
		.name = 128,
		.lines = 136,
		.first_line = 72,
		.bytecode = 184,
		OBJECTS,
		.kind_bit = 2,
		.ascii = 48,
		.characters = 72,
	},
	{
		.version = 0x030c,
		.interpreters = 40,
		.finalizing = 24,
		.about_key = 1544,
		.threads = 72,
		.interpreter_id = 8,
		.interpreter = 16,
		.number = 92,
		.next_thread = 8,
		.native_id = 144,
		.attached = 24,
		.attached_bit = 1 << 4,
		.cframe = 56,
		.frame = 0,
		.code = 0,
		.previous = 8,
		.instruction = 56,
		.owner = 70,
		.entry_owner = 3,
		.file = 112,
		.name = 128,
		.lines = 136,
		.first_line = 68,
		.bytecode = 192,
		OBJECTS,
		.kind_bit = 2,
		.ascii = 40,
		.characters = 56,
	},
};

/* A _PyRuntimeState of 3.13 begins with offsets of the fields of its structs, 64 bits each. */
struct offset {
	__u8 word;	 /* number of the word in 3.13 */
	__u16 in_layout; /* where the number belongs in struct python_layout */
};

#define AT(word, member)                                                                           \
	{                                                                                          \
		word, offsetof(struct python_layout, member)                                       \
	}

static const struct offset offsets[] = {
	AT(7, interpreter_id), AT(22, interpreter),
	AT(41, number),	       AT(4, finalizing),
	AT(5, interpreters),   AT(9, threads),
	AT(21, next_thread),   AT(23, frame),
	AT(25, native_id),     AT(27, attached),
	AT(29, previous),      AT(30, code),
	AT(31, instruction),   AT(33, owner),
	AT(35, file),	       AT(37, name),
	AT(38, lines),	       AT(39, first_line),
	AT(43, bytecode),      AT(45, type),
	AT(65, size),	       AT(66, data),
	AT(68, state),	       AT(69, length),
	AT(70, ascii),	       AT(8, next_interpreter),
};

/* How much of each offset is believed. */
#define MOST_OFFSET (1 << 20)

/* The number of a code object stands in front of the names of its variables, which the interpreter tells. */
#define NUMBER_BEFORE_NAMES 4

/* In the word behind @status of a thread state is what it was made for, and in the next one whether it is attached. */
#define STATE_AFTER_STATUS 8

static bool read_offsets(const __u64 *words, struct python_layout *out)
{
	/* Elsewhere the bytecode that runs may be a thread's own copy. */
	bool is_free_threaded = words[2];

	*out = (struct python_layout){
		.version = words[1] >> 16,
		.about_key = 2160,
		.attached_bit = 1,
		.entry_owner = 3,
		.kind_bit = 2,
	};
	if (out->version != 0x030d || is_free_threaded)
		return false;
	for (__u32 i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		__u64 value = words[offsets[i].word];

		if (value >= MOST_OFFSET)
			return false;
		*(__u32 *)((char *)out + offsets[i].in_layout) = value;
	}
	out->attached += STATE_AFTER_STATUS;
	out->number -= NUMBER_BEFORE_NAMES;
	out->characters = out->ascii + 16;
	return true;
}

bool python_layout__find(const __u64 words[PYTHON_OFFSETS_BYTES / 8], __u32 version,
			 struct python_layout *out)
{
	if (words[0] == COOKIE)
		return read_offsets(words, out);
	for (__u32 i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == version >> 16) {
			*out = layouts[i];
			return true;
		}
	return false;
}
