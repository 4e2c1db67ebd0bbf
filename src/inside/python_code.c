// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads code objects of CPython: names, and what decides about a line. */
#include "memory.h"
#include "python.h"
#include "python_layout.h"
#include "python_table.h"
#include "stack.h"

/* How much of a table of locations is read. */
#define MOST_LINES_BYTES (1 << 20)

/* A table that stays for a long time, and a value for a code object and a position. */
#define PREFIX_SHIFT 12
#define PREFIX_BITS  20

static struct kept prefixes[1 << PREFIX_SHIFT];

/* Keys are hashes of a code object's address and a position. Values are how many bytes of the table of locations decide
 * about the line, and in the bits above PREFIX_BITS those of the frame's id: a code object may have been replaced
 * by another one at the same address, so an id is made of what is there at each time. */
static const struct kept_table known_prefixes = { prefixes, PREFIX_SHIFT, 8 };

static __u32 generation;

/* A string or bytes. */
struct text {
	__u64 address;
	__u32 n; /* number of characters */
	__u8 kind;
	bool is_ascii;
};

static bool find_string(const struct python_reader *reader, __u64 object, __u32 most_bytes,
			struct text *out)
{
	const struct python_layout *layout = reader->layout;
	__u64 length;
	__u32 state;

	if (!python_reader__load(reader, object + layout->length, &length) ||
	    !python_reader__load_part(reader, object + layout->state, 4, &state))
		return false;
	state >>= layout->kind_bit;
	*out = (struct text){ .kind = state & 7, .is_ascii = state >> 4 & 1 };
	/* Strings of another form are those of extensions from before 3.12. */
	if (!(state >> 3 & 1) || (out->kind != 1 && out->kind != 2 && out->kind != 4))
		return false;
	out->address = object + (out->is_ascii ? layout->ascii : layout->characters);
	out->n = length < most_bytes ? length : most_bytes;
	return true;
}

static bool find_lines(const struct python_reader *reader, __u64 code, struct text *out)
{
	__u64 object, n;

	if (!python_reader__load(reader, code + reader->layout->lines, &object) ||
	    !python_reader__load(reader, object + reader->layout->size, &n) || n > MOST_LINES_BYTES)
		return false;
	*out = (struct text){ object + reader->layout->data, n, 1, true };
	return true;
}

struct code {
	__u64 names[2];	      /* addresses of the strings: qualified name, file */
	struct text texts[2]; /* of these */
	struct text lines;
	__u32 first_line;
};

static bool read_code(const struct python_reader *reader, __u64 address, struct code *out)
{
	const struct python_layout *layout = reader->layout;

	return python_reader__load(reader, address + layout->name, &out->names[0]) &&
	       python_reader__load(reader, address + layout->file, &out->names[1]) &&
	       python_reader__load_part(reader, address + layout->first_line, 4,
					&out->first_line) &&
	       find_string(reader, out->names[0], AP_PYTHON_NAME_BYTES, &out->texts[0]) &&
	       find_string(reader, out->names[1], AP_PYTHON_FILE_BYTES, &out->texts[1]) &&
	       find_lines(reader, address, &out->lines);
}

static bool load_word(const void *reader, __u64 address, __u64 *word)
{
	return python_reader__load(reader, address, word);
}

/* Finds the line at a position, and how many bytes of the table decide about it. */
static __u32 find_line(const struct python_reader *reader, const struct code *code, __u32 position,
		       __u32 *prefix)
{
	const struct python_table table = {
		.load = load_word,
		.context = reader,
		.address = code->lines.address,
		.n_bytes = code->lines.n,
	};

	return python_table__line(&table, code->first_line, position, prefix);
}

static inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash << 35 | hash >> 29;
}

/* Hashes the first @n bytes. A word that has one of an object's bytes can be read. */
static bool hash_bytes(const struct python_reader *reader, __u64 address, __u32 n, __u64 *out)
{
	__u64 word, even = n, odd = 0;

	for (; n >= 8; n -= 8, address += 8) {
		__u64 mixed;

		if (!python_reader__load(reader, address, &word))
			return false;
		/* Two hashes that do not wait for one another. */
		mixed = mix(even, word);
		even = odd;
		odd = mixed;
	}
	if (n) {
		if (!python_reader__load(reader, address, &word))
			return false;
		even = mix(even, word & ((1ULL << 8 * n) - 1));
	}
	*out = ap_stack__mix(even ^ ap_stack__mix(odd));
	return true;
}

static bool hash_text(const struct python_reader *reader, const struct text *text, __u64 *out)
{
	return hash_bytes(reader, text->address, text->n * text->kind, out);
}

/* Hashes all that decides about a frame but its line. */
static bool hash_names(struct python_reader *reader, const struct code *code, __u64 *out)
{
	__u64 name;

	if (reader->file != code->names[1]) {
		if (!hash_text(reader, &code->texts[1], &reader->file_hash))
			return false;
		reader->file = code->names[1];
	}
	if (!hash_text(reader, &code->texts[0], &name))
		return false;
	*out = mix(mix(name, reader->file_hash), code->first_line);
	return true;
}

/* Makes the id of a frame whose line the first @prefix bytes of the table decide. */
static bool make_id(const struct python_reader *reader, const struct code *code, __u64 names,
		    __u32 prefix, __u64 *id)
{
	__u64 lines;

	if (!hash_bytes(reader, code->lines.address, prefix, &lines))
		return false;
	/* 0 is a frame that is missing, and data files have signed numbers. */
	*id = ap_stack__mix(names ^ lines) >> 1 ?: 1;
	return true;
}

bool python_code__id(struct python_reader *reader, struct python_frame *frame)
{
	__u64 key = kept__key(&known_prefixes, ap_stack__mix(frame->code + frame->position),
			      __atomic_load_n(&generation, __ATOMIC_RELAXED));
	__u64 value, names;
	struct code code;
	__u32 prefix;

	if (!read_code(reader, frame->code, &code) || !hash_names(reader, &code, &names))
		return false;
	if (kept__find(&known_prefixes, key, &value)) {
		prefix = value & ((1 << PREFIX_BITS) - 1);
		if (prefix <= code.lines.n && make_id(reader, &code, names, prefix, &frame->id) &&
		    frame->id >> PREFIX_BITS == value >> PREFIX_BITS)
			return true;
	}
	(void)find_line(reader, &code, frame->position, &prefix);
	if (!make_id(reader, &code, names, prefix, &frame->id))
		return false;
	value = (frame->id >> PREFIX_BITS) << PREFIX_BITS | prefix;
	if (prefix < 1 << PREFIX_BITS && !kept__put(&known_prefixes, key, value))
		__atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
	return true;
}

static bool copy_text(const struct python_reader *reader, const struct text *text, char *out,
		      __u32 room, __u32 *n_out)
{
	__u32 n = 0, more = 1;

	for (__u32 i = 0; i < text->n && more; i++) {
		__u64 address = text->address + (__u64)i * text->kind, word;

		if (!python_reader__load(reader, address & ~7ULL, &word))
			return false;
		word >>= 8 * (address & 7);
		word &= (1ULL << 8 * text->kind) - 1;
		more = python_text__put(word, out + n, room - n);
		n += more;
	}
	*n_out = n;
	return true;
}

bool python_code__names(const struct python_reader *reader, const struct python_frame *frame,
			struct python_names *out)
{
	struct code code;
	__u32 prefix;

	if (!read_code(reader, frame->code, &code))
		return false;
	out->id = frame->id;
	out->line = find_line(reader, &code, frame->position, &prefix);
	return copy_text(reader, &code.texts[0], out->name, sizeof(out->name), &out->n_name) &&
	       copy_text(reader, &code.texts[1], out->file, sizeof(out->file), &out->n_file);
}
