/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the frames of CPython's interpreter that belong to a stack: function, file and line. Each call of the
 * interpreter's loop has a frame of the stack, and a struct in it that the interpreter's own list of frames
 * refers to. So its place says which frames of Python stand for which frame of the stack, and a list that
 * has been misread is noticed. docs/inside.md.
 */
#ifndef ALLOCPROF_INSIDE_PYTHON_H
#define ALLOCPROF_INSIDE_PYTHON_H

#include "abi.h"
#include "record_abi.h"
#include "stack.h"
#include "sys.h"
#include "walk.h"

/* A frame of Python. */
struct python_frame {
	__u64 id;   /* as in struct ap_python_record */
	__u64 code; /* the code object */
	__u32 position; /* offset of the next instruction in its bytecode, plus 2; 0: there is none yet */
	__u32 step; /* index of the walker's step for which it stands */
};

/* Names and line of a frame, in UTF-8; longer ones are cut off. */
struct python_names {
	__u64 id;   /* of the frame */
	__u32 line; /* 0: it has none */
	__u32 n_name, n_file;
	char name[AP_PYTHON_NAME_BYTES], file[AP_PYTHON_FILE_BYTES];
};

/* Words that were read from memory that another thread may unmap. */
#define PYTHON_COPY_WORDS 256

/* A frame whose id is known, in an interpreter that numbers its code objects. */
struct python_known {
	__u64 code, id; /* id 0: the frame is left out */
	__u32 position, number;
};

/* How many are known: one for each value that the bits of a hash from PYTHON_KNOWN_AT on can have. */
#define PYTHON_KNOWN	(1 << (64 - PYTHON_KNOWN_AT))
#define PYTHON_KNOWN_AT 55

/* The frames of Python in a walker's last stack, innermost first. A walker has one from when its thread first runs in an
 * interpreter. */
struct python_stack {
	bool is_used;	   /* the stack has frames of Python, or lacks some */
	__u64 interpreter; /* of which @known is, a number; 0: of none yet */
	struct python_known known[PYTHON_KNOWN];
	__u64 copy_start, copy_bytes;
	__u64 copy[PYTHON_COPY_WORDS];
	struct python_names names; /* of the frame that is being stored */
	__u32 n;
	struct python_frame frames[AP_MAX_DEPTH];
};

/* An interpreter was found in the process. */
extern bool python_is_there __attribute__((visibility("hidden")));

/* To be called once it is known whether stacks are wanted: else no interpreter is looked for. */
void python__want(bool wanted);

/* Looks for an interpreter among the loaded objects. To be called within objects__hold(). */
void python__look(void);

/* Forgets the interpreter if its object is not in the linker's list any more. */
void python__forget_unloaded(void);

/* Finds the frames of Python in the walker's last stack, which has @hash. Returns the hash with them. */
__u64 python__walk(struct walker *walker, __u64 hash);

/* Returns the names of the first frame in the walker's last stack, from the one with @index on, that can be read; NULL:
 * there is none. Valid until the next call. */
const struct python_names *python__names(const struct walker *walker, __u32 index);

/* Does what walker__frames() does. @out is NULL: only counts. If there are more than the walker may have, the outermost are left out, and
 * *@end is set. */
__u32 python__frames(const struct walker *walker, struct ap_frame *out, __u32 *end);

/* The id and the names of a frame are read from its code object: python_code.c. */

struct python_layout;

/* Reads memory of the interpreter. */
struct python_reader {
	const struct python_layout *layout;
	/* Nothing of it is unmapped meanwhile, and it is what the layout says: it need not be asked whether a word can be
	 * read. */
	bool is_safe;
	/* A string with the path of a file, and its hash; while one stack is read it stays the same. 0: none. */
	__u64 file, file_hash;
};

static inline bool python_reader__load(const struct python_reader *reader, __u64 address,
				       __u64 *value)
{
	if (unlikely(address & 7 || address < LEAST_PAGE))
		return false;
	if (unlikely(!reader->is_safe))
		return memory__read_kept(address, value);
	*value = stack__word(address);
	return true;
}

/* Returns the 4 bytes or the 1 byte at @address, of the word around it. */
static inline __u32 python_word__part(__u64 word, __u64 address, __u32 size)
{
	word >>= 8 * (address & 7);
	return size == 1 ? (__u8)word : (__u32)word;
}

static inline bool python_reader__load_part(const struct python_reader *reader, __u64 address,
					    __u32 size, __u32 *value)
{
	__u64 word;

	if (!python_reader__load(reader, address & ~7ULL, &word))
		return false;
	*value = python_word__part(word, address, size);
	return true;
}

/* Finds the id of a frame, which its names and its line decide. Returns false if the code object cannot be read. */
bool python_code__id(struct python_reader *reader, struct python_frame *frame);

bool python_code__names(const struct python_reader *reader, const struct python_frame *frame,
			struct python_names *out);

#endif
