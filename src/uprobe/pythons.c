// SPDX-License-Identifier: GPL-3.0-or-later
/* Fills the map of interpreters, and makes of the records of the BPF programs those of the engine inside. */
#include "pythons.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "collector.h"
#include "hash_table.h"
#include "path.h"
#include "python_abi.h"
#include "python_file.h"
#include "python_layout.h"
#include "python_table.h"
#include "record_abi.h"

/* A code object and a position in it, of one process. */
struct known_code {
	__u64 key;
	__u64 id; /* as in struct ap_python_record */
};

struct pythons {
	int map_fd;
	struct parser *parser; /* the caller's */
	__u32 max_depth;
	size_t n_modules; /* that have an interpreter */
	struct known_code *codes;
	size_t n_codes, codes_room;
	struct hash_table index; /* of codes, by key */
	/* The last record that was made. */
	struct {
		struct ap_stack_record record;
		struct ap_frame frames[AP_MAX_DEPTH];
	} stack;
	struct {
		struct ap_python_record record;
		char text[AP_PYTHON_NAME_BYTES + AP_PYTHON_FILE_BYTES];
	} names;
};

struct pythons *pythons__new(int map_fd, struct parser *parser, __u32 max_depth)
{
	struct pythons *pythons = calloc(1, sizeof(*pythons));

	if (!pythons)
		return NULL;
	pythons->map_fd = map_fd;
	pythons->parser = parser;
	pythons->max_depth = max_depth < AP_MAX_DEPTH ? max_depth : AP_MAX_DEPTH;
	return pythons;
}

void pythons__free(struct pythons *pythons)
{
	if (!pythons)
		return;
	hash_table__release(&pythons->index);
	free(pythons->codes);
	free(pythons);
}

/* Returns whether the programs find all fields in what they read of a frame and of a code object. */
static bool is_sound(const struct python_layout *layout)
{
	const __u32 words_of_frame[] = { layout->code, layout->previous, layout->instruction };
	const __u32 words_of_code[] = { layout->type, layout->size, layout->file, layout->name,
					layout->lines };

	for (size_t i = 0; i < ARRAY_SIZE(words_of_frame); i++)
		if (words_of_frame[i] & 7 || words_of_frame[i] >= AP_PYTHON_FRAME_BYTES)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(words_of_code); i++)
		if (words_of_code[i] & 7 || words_of_code[i] >= AP_PYTHON_CODE_BYTES)
			return false;
	/* The programs have a string's hash behind its length, and a thread's last one before its next one. */
	return layout->next_thread >= 8 && layout->owner < AP_PYTHON_FRAME_BYTES &&
	       layout->is_entry < AP_PYTHON_FRAME_BYTES &&
	       layout->first_line < AP_PYTHON_CODE_BYTES && !(layout->first_line & 3) &&
	       layout->number < AP_PYTHON_CODE_BYTES && !(layout->number & 3) &&
	       layout->state == layout->length + 16;
}

int pythons__meet(struct pythons *pythons, __u32 module, int fd, const char *path,
		  struct collector_code *loop)
{
	struct python_file file;
	struct ap_python python;
	int err;

	/* Nobody gives the interpreter's program or library another name. */
	if (fd < 0 || !pythons->parser || pythons->n_modules == AP_MAX_PYTHONS ||
	    !strstr(path__name(path), "python"))
		return 0;
	err = python_file__parse(pythons->parser, fd, path, &file);
	if (!err && python_layout__find(file.words, file.version, &python.layout) &&
	    is_sound(&python.layout)) {
		python.loop = file.loop_offset;
		python.loop_bytes = file.loop_bytes;
		python.runtime = file.runtime - file.loop;
		python.code_type = file.code_type - file.loop;
		pythons->n_modules++;
		*loop = (struct collector_code){ python.loop, python.loop_bytes };
		if (bpf_map_update_elem(pythons->map_fd, &module, &python, BPF_ANY))
			err = -errno;
	}
	python_file__release(&file);
	/* Without its frames the file's stacks are as good as those of any other. */
	return err == -ENOMEM ? err : 0;
}

static bool code_has_key(const void *owner, __u32 id, const void *key)
{
	const struct pythons *pythons = owner;

	return pythons->codes[id - 1].key == *(const __u64 *)key;
}

static struct known_code *find_code(const struct pythons *pythons, __u64 key)
{
	__u32 id = hash_table__find(&pythons->index, key, code_has_key, pythons, &key);

	return id ? &pythons->codes[id - 1] : NULL;
}

static int know_code(struct pythons *pythons, __u64 key, __u64 id)
{
	int err;

	if (find_code(pythons, key))
		return 0;
	err = array__reserve(&pythons->codes, &pythons->codes_room, pythons->n_codes + 1,
			     sizeof(*pythons->codes));
	if (err)
		return err;
	pythons->codes[pythons->n_codes] = (struct known_code){ key, id };
	return hash_table__insert(&pythons->index, key, ++pythons->n_codes);
}

/* Writes text of a code object as UTF-8. Returns the number of bytes. */
static __u32 write_text(const char *text, __u32 n, __u32 kind, char *out, __u32 room)
{
	__u32 written = 0, more = 1;

	if (kind != 1 && kind != 2 && kind != 4)
		return 0;
	for (__u32 i = 0; more && i + kind <= n; i += kind) {
		__u32 character = 0;

		memcpy(&character, text + i, kind);
		more = python_text__put(character, out + written, room - written);
		written += more;
	}
	return written;
}

/* The table of a record, which ends anywhere. */
static bool load_word(const void *context, __u64 address, __u64 *word)
{
	const struct python_table *table = context;
	__u64 left = table->address + table->n_bytes - address;

	*word = 0;
	memcpy(word, (const void *)address, left < sizeof(*word) ? left : sizeof(*word));
	return true;
}

static __u32 find_line(const struct ap_code_record *code)
{
	_Alignas(8) char lines[AP_CODE_LINES_BYTES];
	struct python_table table = {
		.load = load_word,
		.context = &table,
		.address = (__u64)lines,
		.n_bytes = code->n_lines,
	};
	__u32 prefix;

	memcpy(lines, code + 1, code->n_lines);
	return python_table__line(&table, code->first_line, code->position, &prefix);
}

static int translate_code(struct pythons *pythons, const void **out, size_t *size)
{
	const struct ap_code_record *code = *out;
	struct ap_python_record *record = &pythons->names.record;
	__u32 n_name, n_file;
	__u64 id;

	if (*size < sizeof(*code) || code->n_lines > AP_CODE_LINES_BYTES ||
	    *size < sizeof(*code) + code->n_lines || code->n_name > sizeof(code->name) ||
	    code->n_file > sizeof(code->file))
		return 0;
	n_name = write_text(code->name, code->n_name, code->name_kind, pythons->names.text,
			    AP_PYTHON_NAME_BYTES);
	n_file = write_text(code->file, code->n_file, code->file_kind, pythons->names.text + n_name,
			    AP_PYTHON_FILE_BYTES);
	*record = (struct ap_python_record){
		.type = AP_RECORD_PYTHON,
		.line = find_line(code),
		.n_name = n_name,
		.n_file = n_file,
	};
	id = hash_bytes((__u64)record->line << 32 | code->first_line, pythons->names.text,
			n_name + n_file);
	record->id = ap_stack__mix(id ^ n_name) >> 1 ?: 1;
	*out = &pythons->names;
	*size = sizeof(*record) + n_name + n_file;
	return know_code(pythons, code->key, record->id);
}

/* Reads of a stack's record the frames of the stack and behind them those of Python. */
struct stack_reader {
	const struct ap_frame *frames;
	__u32 n_frames;			 /* of the stack */
	const struct ap_frame *at, *end; /* those of Python that are left */
	bool is_cut;
};

static void add_frame(struct pythons *pythons, const struct ap_frame *frame)
{
	struct ap_stack_record *record = &pythons->stack.record;

	if (record->n_frames < pythons->max_depth)
		pythons->stack.frames[record->n_frames++] = *frame;
	else
		record->end = AP_END_MAX_DEPTH;
}

/* Adds the frames of Python that belong to a frame of the stack. Returns false if it has none. */
static bool add_frames_of(struct pythons *pythons, struct stack_reader *in, __u32 step)
{
	const struct ap_frame *end = in->at;

	while (end < in->end && end->offset)
		end++;
	if (end == in->end || end->module != step)
		return false;
	in->is_cut = end->flags & AP_FRAME_INTERRUPTED;
	if (in->at == end) {
		in->at = end + 1;
		return false;
	}
	for (; in->at < end; in->at++) {
		const struct known_code *code = find_code(pythons, in->at->offset);
		const struct ap_frame frame = {
			.flags = AP_FRAME_PYTHON,
			.offset = code ? code->id : 0,
		};

		add_frame(pythons, &frame);
	}
	in->at = end + 1;
	return true;
}

static bool is_interrupted(const struct stack_reader *in)
{
	for (__u32 i = 0; i < in->n_frames; i++)
		if (in->frames[i].flags & AP_FRAME_INTERRUPTED)
			return true;
	return false;
}

static void translate_stack(struct pythons *pythons, const void **out, size_t *size)
{
	const struct ap_stack_record *record = *out;
	struct stack_reader in = { .frames = (const struct ap_frame *)(record + 1) };

	if (*size < sizeof(*record) || record->n_frames > AP_MAX_DEPTH ||
	    *size < sizeof(*record) + record->n_frames * sizeof(struct ap_frame))
		return;
	in.at = in.end = in.frames + record->n_frames;
	while (in.at > in.frames && in.at[-1].flags & AP_FRAME_PYTHON)
		in.at--;
	in.n_frames = in.at - in.frames;
	/* A signal may have come while the interpreter's lists were in disorder. */
	if (is_interrupted(&in))
		in.at = in.end;
	pythons->stack.record = *record;
	pythons->stack.record.n_frames = 0;
	for (__u32 i = 0; i < in.n_frames && !in.is_cut; i++) {
		if (!add_frames_of(pythons, &in, i))
			add_frame(pythons, &in.frames[i]);
	}
	if (in.is_cut)
		pythons->stack.record.end = AP_END_MAX_DEPTH;
	*out = &pythons->stack;
	*size = sizeof(*record) + pythons->stack.record.n_frames * sizeof(struct ap_frame);
}

int pythons__translate(struct pythons *pythons, const void **record, size_t *size)
{
	__u32 type;

	if (!pythons->n_modules || *size < sizeof(type))
		return 0;
	memcpy(&type, *record, sizeof(type));
	if (type == AP_RECORD_CODE)
		return translate_code(pythons, record, size);
	if (type == AP_RECORD_STACK)
		translate_stack(pythons, record, size);
	return 0;
}
