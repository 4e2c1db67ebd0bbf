// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Walks the frames of CPython's interpreter, as src/inside/python.c does, and reads their code objects. What is read belongs to the thread
 * that stands at the probe, so it stays as it is meanwhile; all reads are checked, and what is wrong finds no place in the stack.
 */
#include "python.bpf.h"

#include "sent.bpf.h"

/* How many interpreters and threads are looked at to find a thread, and how many frames of a stack. */
#define MOST_THREADS 8192
#define MOST_FRAMES  8192

/* How long bytecode may be. */
#define MOST_POSITION (1 << 30)

/* Entries that are left for the ends of calls of the loop. */
#define ROOM_FOR_ENDS 32

/* How much of a code object's texts decides about its key, if neither a number nor a hash of the interpreter's does. */
#define TEXT_BYTES (PYTHON_TEXT_WORDS * 8)

static __always_inline bool load(__u64 address, __u64 *value)
{
	return !bpf_probe_read_user(value, sizeof(*value), (void *)address);
}

static __always_inline bool load_half(__u64 address, __u32 *value)
{
	return !bpf_probe_read_user(value, sizeof(*value), (void *)address);
}

static __always_inline __u64 frame_word(const struct scratch *scratch, __u32 offset)
{
	return scratch->python.frame_words[offset >> 3 & (PYTHON_FRAME_WORDS - 1)];
}

static __always_inline __u32 frame_byte(const struct scratch *scratch, __u32 offset)
{
	return frame_word(scratch, offset) >> 8 * (offset & 7) & 0xff;
}

static __always_inline __u64 code_word(const struct scratch *scratch, __u32 offset)
{
	return scratch->python.code_words[offset >> 3 & (PYTHON_CODE_WORDS - 1)];
}

static __always_inline __u32 code_half(const struct scratch *scratch, __u32 offset)
{
	return code_word(scratch, offset) >> 8 * (offset & 7);
}

static __always_inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash << 35 | hash >> 29;
}

/* The thread's id in the process's own PID namespace, as gettid(2) returns it there. */
static __always_inline __u32 own_tid(void)
{
	struct pid *pid = BPF_CORE_READ(bpf_get_current_task_btf(), thread_pid);
	struct upid upid = {};
	__u32 level;

	if (!pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	bpf_core_read(&upid.nr, sizeof(upid.nr),
		      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
			      level * bpf_core_type_size(struct upid) +
			      bpf_core_field_offset(struct upid, nr));
	return upid.nr;
}

static __always_inline bool is_attached(const struct python_layout *layout, __u64 thread)
{
	__u32 state;

	return layout->attached_bit && load_half(thread + layout->attached, &state) &&
	       state & layout->attached_bit;
}

static __always_inline bool is_of(const struct python_layout *layout, __u64 thread, __u32 tid)
{
	__u32 number;

	return thread && load_half(thread + layout->native_id, &number) && number == tid;
}

struct thread_search {
	struct scratch *scratch;
	__u64 interpreter, thread, found;
	__u32 tid;
};

static long look_at_thread(__u32 index, struct thread_search *search)
{
	const struct python_layout *layout = &search->scratch->python.of.layout;
	__u64 next;

	if (!search->thread) {
		if (!search->interpreter || !load(search->interpreter + layout->threads, &next))
			return 1;
		search->thread = next;
		if (!load(search->interpreter + layout->next_interpreter, &next))
			next = 0;
		search->interpreter = next;
		return 0;
	}
	if (is_of(layout, search->thread, search->tid)) {
		if (is_attached(layout, search->thread)) {
			search->found = search->thread;
			return 1;
		}
		/* One of several interpreters' states for the thread; if none may run, any may be the last that ran. */
		search->found = search->found ?: search->thread;
	}
	if (!load(search->thread + layout->next_thread, &next))
		return 1;
	search->thread = next;
	return 0;
}

/* Returns whether the interpreter @first, the only one, has the state in its list, in which each stands behind the pointer to the one
 * before. */
static __always_inline bool is_listed(const struct python_layout *layout, __u64 first, __u64 thread)
{
	__u64 other, before, next;

	if (!load(first + layout->next_interpreter, &other) || other ||
	    !load(thread + layout->next_thread - sizeof(before), &before))
		return false;
	return load(before ? before + layout->next_thread : first + layout->threads, &next) &&
	       next == thread;
}

/* Returns the state of the current thread, 0 if it has none. */
static __noinline __u64 find_thread(struct scratch *scratch)
{
	const struct python_layout *layout = &scratch->python.of.layout;
	__u64 runtime = scratch->python.loop + scratch->python.of.runtime, first;
	struct thread_search search = { .scratch = scratch, .tid = own_tid() };

	if (layout->gil_owner && load(runtime + layout->gil_owner, &first) &&
	    is_of(layout, first, search.tid))
		return first;
	if (!load(runtime + layout->interpreters, &first))
		return 0;
	if (is_of(layout, scratch->python.thread, search.tid) &&
	    (is_attached(layout, scratch->python.thread) ||
	     is_listed(layout, first, scratch->python.thread)))
		return scratch->python.thread;
	search.interpreter = first;
	bpf_loop(MOST_THREADS, look_at_thread, &search, 0);
	scratch->python.thread = search.found;
	return search.found;
}

/* Interpreters number their code objects each for itself. */
static __always_inline __u64 number_of_interpreter(const struct python_layout *layout, __u64 thread)
{
	__u64 interpreter, id;

	if (!layout->number || !load(thread + layout->interpreter, &interpreter) ||
	    !load(interpreter + layout->interpreter_id, &id))
		return 0;
	return id + 1;
}

/* Mixes text of the process into a hash. Global, so that the verifier checks it once. */
__noinline __u64 python__hash(struct scratch *scratch, __u64 hash, __u64 address, __u32 n)
{
	__u64 *words;

	if (!scratch)
		return hash;
	words = scratch->python.text;
	if (n > TEXT_BYTES)
		n = TEXT_BYTES;
	/* Bytes of the last word that are behind the text count as 0. */
	words[n >> 3 & (PYTHON_TEXT_WORDS - 1)] = 0;
	if (n)
		bpf_probe_read_user(words, n, (void *)address);
	for (__u32 i = 0; i < PYTHON_TEXT_WORDS; i++) {
		if (i * sizeof(*words) >= n)
			break;
		hash = mix(hash, words[i]);
	}
	return hash;
}

struct string {
	__u64 length, hash, state;
};

/* Returns the address of a string's characters, and stores how many bytes each has; 0: it has another form. */
static __always_inline __u64 string__characters(const struct python_layout *layout, __u64 object,
						const struct string *string, __u32 *kind)
{
	__u32 state = (__u32)string->state >> layout->kind_bit;

	*kind = state & 7;
	if (!(state >> 3 & 1) || (*kind != 1 && *kind != 2 && *kind != 4))
		return 0;
	return object + (state >> 4 & 1 ? layout->ascii : layout->characters);
}

static __noinline __u64 hash_string(struct scratch *scratch, __u64 hash, __u64 object)
{
	const struct python_layout *layout = &scratch->python.of.layout;
	struct string string = {};
	__u32 kind;
	__u64 at;

	/* The hash, which the interpreter keeps, stands behind the length. */
	if (bpf_probe_read_user(&string, sizeof(string), (void *)(object + layout->length)))
		return hash;
	hash = mix(hash, string.length);
	if (string.hash != ~0ULL)
		return mix(hash, string.hash);
	at = string__characters(layout, object, &string, &kind);
	if (!at)
		return hash;
	return python__hash(scratch, hash, at,
			    string.length < TEXT_BYTES ? (__u32)string.length * kind : TEXT_BYTES);
}

static __noinline __u64 hash_table(struct scratch *scratch, __u64 hash, __u64 object)
{
	const struct python_layout *layout = &scratch->python.of.layout;
	__u64 n;

	if (!load(object + layout->size, &n))
		return hash;
	return python__hash(scratch, mix(hash, n), object + layout->data,
			    n < TEXT_BYTES ? n : TEXT_BYTES);
}

/* Hashes the path of a file, which mostly is that of the last frame. */
static __always_inline __u64 hash_file(struct scratch *scratch, __u64 object)
{
	struct scratch_python *python = &scratch->python;

	if (python->file != object) {
		python->file_hash = hash_string(scratch, 0, object);
		python->file = object;
	}
	return python->file_hash;
}

/* Returns the key of the code object that has been read, which the names decide that are in its place now. */
static __noinline __u64 key_of(struct scratch *scratch, __u64 code, __u32 position)
{
	const struct python_layout *layout = &scratch->python.of.layout;
	__u64 name = code_word(scratch, layout->name), file = code_word(scratch, layout->file);
	__u64 lines = code_word(scratch, layout->lines);
	__u64 key = mix(mix(scratch->process, code), name);
	__u32 number = layout->number ? code_half(scratch, layout->number) : 0;

	key = mix(mix(key, file), lines);
	key = mix(key, (__u64)code_half(scratch, layout->first_line) << 32 | position);
	if (number && scratch->python.interpreter) {
		key = mix(mix(key, scratch->python.interpreter), number);
	} else {
		key = hash_string(scratch, key, name);
		key = mix(key, hash_file(scratch, file));
		key = hash_table(scratch, key, lines);
	}
	return ap_stack__mix(key) ?: 1;
}

/* Adds a frame, if there is room. Returns false if it cannot be read. */
static __noinline int add_frame(struct scratch *scratch, __u64 code, __u64 position)
{
	struct scratch_python *python = &scratch->python;
	const struct python_layout *layout = &python->of.layout;
	struct python_entry *entry, *last;
	__u64 n;

	if (bpf_probe_read_user(python->code_words, AP_PYTHON_CODE_BYTES, (void *)code))
		return 0;
	position -= code + layout->bytecode - 2;
	n = code_word(scratch, layout->size);
	if (code_word(scratch, layout->type) != python->loop + python->of.code_type ||
	    position > MOST_POSITION || position & 1 || position > 2 * n)
		return 0;
	/* The interpreter has a frame that only tidies up behind __init__, which nobody has written. */
	if (code_word(scratch, layout->name) == code_word(scratch, layout->file) &&
	    !code_half(scratch, layout->first_line))
		return 1;
	if (python->n + ROOM_FOR_ENDS >= python->room) {
		python->is_cut = 1;
		return 1;
	}
	entry = &python->entries[depth_index(python->n)];
	last = &python->entries[depth_index(python->n - 1)];
	/* Recursion is often deep. */
	if (python->n && last->code == code && last->position == position)
		entry->key = last->key;
	else
		entry->key = key_of(scratch, code, position);
	entry->code = code;
	entry->position = position;
	entry->step = 0;
	python->hash = mix(python->hash, entry->key);
	python->n++;
	return 1;
}

/* Ends a call of the loop, whose C frame is that of the step. */
static __always_inline long end_call(struct scratch *scratch)
{
	struct scratch_python *python = &scratch->python;
	const struct python_layout *layout = &python->of.layout;
	__u32 step = python->step - scratch->first;
	__u64 next;

	if (python->n >= python->room)
		return 1;
	python->entries[depth_index(python->n)] =
		(struct python_entry){ .step = step, .position = python->is_cut };
	python->hash = mix(python->hash, step + 1);
	python->n++;
	python->n_placed = python->n;
	python->placed_hash = python->hash;
	python->pending = 0;
	if (!python->frame || python->is_cut)
		return 1;
	if (layout->is_entry) {
		if (!load(python->holder + layout->next_cframe, &next))
			return 1;
		python->holder = next;
	}
	return 0;
}

/* Looks at one frame of the interpreter, or whether the address that waits for its step is in the frame of the next one. */
static long walk_frame_of_python(__u32 index, struct scratch **scratch_at)
{
	struct scratch *scratch = *scratch_at;
	struct scratch_python *python = &scratch->python;
	const struct python_layout *layout = &python->of.layout;
	bool is_entry = false;
	__u64 frame;

	if (python->pending) {
		/* Nothing tells where the outermost frame ends. */
		if (python->step >= AP_MAX_DEPTH - 1)
			return 1;
		if (python->pending >= scratch->steps[depth_index(python->step)].sp &&
		    python->pending < scratch->steps[depth_index(python->step + 1)].sp)
			return end_call(scratch);
		python->step++;
		return 0;
	}
	frame = python->frame;
	if (bpf_probe_read_user(python->frame_words, AP_PYTHON_FRAME_BYTES, (void *)frame))
		return 1;
	if (layout->is_entry || frame_byte(scratch, layout->owner) < (__u8)layout->entry_owner) {
		if (!add_frame(scratch, frame_word(scratch, layout->code),
			       frame_word(scratch, layout->instruction)))
			return 1;
		is_entry = layout->is_entry && frame_byte(scratch, layout->is_entry);
	} else {
		is_entry = true;
	}
	python->frame = frame_word(scratch, layout->previous);
	if (is_entry)
		python->pending = layout->is_entry ? python->holder : frame;
	return !python->pending && !python->frame;
}

__noinline int python__walk(struct scratch *scratch)
{
	struct scratch_python *python;
	const struct python_layout *layout;
	__u64 thread, holder, frame;

	if (!scratch)
		return 0;
	python = &scratch->python;
	layout = &python->of.layout;
	python->n = python->n_placed = python->is_cut = 0;
	python->file = 0;
	thread = find_thread(scratch);
	holder = thread;
	if (!thread || (layout->cframe && !load(thread + layout->cframe, &holder)) ||
	    !load(holder + layout->frame, &frame) || !frame)
		return 0;
	python->interpreter = number_of_interpreter(layout, thread);
	python->holder = holder;
	python->frame = frame;
	python->pending = 0;
	python->hash = python->placed_hash = 0;
	python->step = scratch->first;
	python->room = AP_MAX_DEPTH - scratch->record.n_frames;
	bpf_loop(MOST_FRAMES, walk_frame_of_python, &scratch, 0);
	/* Frames behind the last call that has a place may have been misread. */
	python->n = python->n_placed;
	if (python->n)
		scratch->record.stack = ap_stack__mix(scratch->record.stack ^ python->placed_hash);
	return 0;
}

/* Copies a string of a code object. Returns how many bytes it has. */
static __always_inline __u32 copy_string(const struct python_layout *layout, __u64 object,
					 char *out, __u32 room, __u32 *kind)
{
	struct string string = {};
	__u64 at;
	__u32 n = room;

	if (bpf_probe_read_user(&string, sizeof(string), (void *)(object + layout->length)))
		return 0;
	at = string__characters(layout, object, &string, kind);
	if (!at)
		return 0;
	if (string.length < room)
		n = (__u32)string.length * *kind;
	if (n > room)
		n = room;
	if (!n || bpf_probe_read_user(out, n, (void *)at))
		return 0;
	return n;
}

static __noinline int send_code(struct scratch *scratch, const struct python_entry *entry)
{
	struct scratch_python *python = &scratch->python;
	const struct python_layout *layout = &python->of.layout;
	struct ap_code_record *record = &scratch->code_record.record;
	__u64 lines, n;
	__u32 size = 0;

	if (bpf_probe_read_user(python->code_words, AP_PYTHON_CODE_BYTES, (void *)entry->code))
		return 0;
	record->type = AP_RECORD_CODE;
	record->position = entry->position;
	record->key = entry->key;
	record->first_line = code_half(scratch, layout->first_line);
	record->n_name = copy_string(layout, code_word(scratch, layout->name), record->name,
				     sizeof(record->name), &record->name_kind);
	record->n_file = copy_string(layout, code_word(scratch, layout->file), record->file,
				     sizeof(record->file), &record->file_kind);
	lines = code_word(scratch, layout->lines);
	if (load(lines + layout->size, &n))
		size = n < AP_CODE_LINES_BYTES ? n : AP_CODE_LINES_BYTES;
	if (size > AP_CODE_LINES_BYTES)
		size = AP_CODE_LINES_BYTES;
	if (size &&
	    bpf_probe_read_user(scratch->code_record.lines, size, (void *)(lines + layout->data)))
		size = 0;
	record->n_lines = size;
	if (size > AP_CODE_LINES_BYTES)
		return 0;
	size += sizeof(*record);
	if (!bpf_ringbuf_output(&ring, record, size, ring__flags()))
		return 1;
	if (scratch->walk.locked)
		return 0;
	ring__await();
	return !bpf_ringbuf_output(&ring, record, size, ring__flags());
}

static long send_entry(__u32 index, struct scratch **scratch_at)
{
	struct scratch *scratch = *scratch_at;
	const struct python_entry *entry = &scratch->python.entries[depth_index(index)];
	struct sent_set *sent;

	if (index >= scratch->python.n)
		return 1;
	if (!entry->key)
		return 0;
	sent = sent__set(entry->key);
	if (sent && !sent__has(sent, entry->key) && send_code(scratch, entry))
		sent__add(sent, entry->key);
	return 0;
}

__noinline int python__send(struct scratch *scratch)
{
	if (scratch)
		bpf_loop(AP_MAX_DEPTH, send_entry, &scratch, 0);
	return 0;
}

static long append_frame(__u32 index, struct scratch **scratch_at)
{
	struct scratch *scratch = *scratch_at;
	const struct python_entry *entry = &scratch->python.entries[depth_index(index)];
	__u32 at = scratch->record.n_frames;

	if (index >= scratch->python.n || at >= AP_MAX_DEPTH)
		return 1;
	scratch->frames[depth_index(at)] = (struct ap_frame){
		.module = entry->key ? 0 : entry->step,
		.flags = AP_FRAME_PYTHON |
			 (!entry->key && entry->position ? AP_FRAME_INTERRUPTED : 0),
		.offset = entry->key,
	};
	scratch->record.n_frames++;
	return 0;
}

__noinline int python__lay_out(struct scratch *scratch)
{
	if (scratch)
		bpf_loop(AP_MAX_DEPTH, append_frame, &scratch, 0);
	return 0;
}
