// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads code objects of CPython: names, and lines by the table of locations that they have since 3.11. */
#include "memory.h"
#include "python.h"
#include "python_layout.h"
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

/* Lines. A table has an entry for each run of instructions: a byte with its bit 7 set, the kind of entry in four bits and
 * the number of instructions less 1 in three, and what the kind says, in which bit 7 is not set. */

enum {
	ENTRY_LONG = 14,
	ENTRY_NO_COLUMNS = 13,
	ENTRY_NO_LINE = 15,
	ENTRY_FIRST_DELTA = 10, /* the line is that of the last entry and this number less 10 */
};

#define INSTRUCTION_BYTES 2

struct line_reader {
	const struct python_reader *reader;
	const struct text *lines;
	__u32 at;
	__u64 word;
	__u64 word_address;
};

/* Returns the byte at @at; -1 behind the last one, and if it cannot be read. */
static int line_reader__peek(struct line_reader *in)
{
	__u64 address = in->lines->address + in->at, aligned = address & ~7ULL;

	if (in->at >= in->lines->n)
		return -1;
	if (aligned != in->word_address) {
		if (!python_reader__load(in->reader, aligned, &in->word))
			return -1;
		in->word_address = aligned;
	}
	return in->word >> 8 * (address & 7) & 0xff;
}

/* Reads a signed number of 6 bits a byte, the lowest first, whose lowest bit is the sign. */
static __s64 line_reader__number(struct line_reader *in)
{
	__u64 value = 0;
	int byte;

	for (__u32 shift = 0; shift < 36; shift += 6) {
		byte = line_reader__peek(in);
		if (byte < 0 || byte & 0x80)
			break;
		in->at++;
		value |= (__u64)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value & 1 ? -(__s64)(value >> 1) : (__s64)(value >> 1);
}

/* Finds the line at a position. Stores how many bytes of the table decide about it: those up to the first of the
 * entries that follow one another with this line. Returns 0 if there is no line. */
static __u32 find_line(const struct python_reader *reader, const struct code *code, __u32 position,
		       __u32 *prefix)
{
	struct line_reader in = { .reader = reader, .lines = &code->lines };
	__s64 line = code->first_line, before = -1;
	__u64 end = 0;
	int byte;

	*prefix = 0;
	if (!position)
		return line;
	while ((byte = line_reader__peek(&in)) >= 0x80) {
		__u32 kind = byte >> 3 & 15;
		__s64 now;

		in.at++;
		end += INSTRUCTION_BYTES * ((byte & 7) + 1);
		if (kind == ENTRY_LONG || kind == ENTRY_NO_COLUMNS)
			line += line_reader__number(&in);
		else if (kind >= ENTRY_FIRST_DELTA && kind < ENTRY_NO_COLUMNS)
			line += kind - ENTRY_FIRST_DELTA;
		while ((byte = line_reader__peek(&in)) >= 0 && byte < 0x80)
			in.at++;
		now = kind == ENTRY_NO_LINE ? 0 : line;
		if (now != before)
			*prefix = in.at;
		before = now;
		if (position - INSTRUCTION_BYTES < end)
			return now > 0 && now <= 0x7fffffff ? now : 0;
	}
	*prefix = in.at;
	return 0;
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

/* Appends a character in UTF-8. Returns the number of bytes; 0: there is no room. */
static __u32 put_character(__u32 character, char *out, __u32 room)
{
	__u32 n;

	/* Names of files may have bytes that are no text, which stand as half of a pair. */
	if (character - 0xd800 < 0x800)
		character = '?';
	n = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
	if (room < n)
		return 0;
	if (n == 1) {
		*out = character;
		return 1;
	}
	for (__u32 i = n; i-- > 1; character >>= 6)
		out[i] = 0x80 | (character & 63);
	*out = 0xf0 << (4 - n) | character;
	return n;
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
		more = put_character(word, out + n, room - n);
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
