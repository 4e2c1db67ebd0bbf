// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Walks the frames of CPython's interpreter, and puts them in the place of those of its loop. */
#include "python.h"

#include "code.h"
#include "memory.h"
#include "objects.h"
#include "python_layout.h"
#include "stack.h"

/* How often the thread's state is looked for in vain before the interpreter counts as one that is not known. */
#define MOST_TRIES 64
/* How many interpreters and threads are looked at for that, and how many frames of one stack. */
#define MOST_INTERPRETERS 64
#define MOST_THREADS	  65536
#define MOST_FRAMES	  8192
/* How long bytecode may be. */
#define MOST_POSITION (1 << 30)
/* How far the key may be from where it was in the release that the table was made from. */
#define KEY_MOVES 1024
/* Keys of thread-specific data are below this (musl's PTHREAD_KEYS_MAX, which is less than glibc's). */
#define MOST_KEYS 128

typedef void *(*get_specific_fn)(__u32 key);

/* All but the last group is written before python_is_there, by the one thread that looks at the objects. */
static struct {
	const struct object *object; /* that the interpreter is in */
	struct object_span span;
	struct python_layout layout;
	__u64 runtime, runtime_bytes; /* the struct _PyRuntimeState */
	__u64 loop, loop_bytes;	      /* the code of _PyEval_EvalFrameDefault */
	__u64 code_type;	      /* PyCode_Type */
	get_specific_fn get_specific; /* pthread_getspecific(3) */
	/* Where in the runtime is the key under which each thread keeps its state; 0: not known yet. */
	__u32 key_at;
	__u32 generation; /* code__generation() when the runtime was there */
	__u32 n_tries;	  /* to find key_at */
	__u32 is_proven;  /* a stack was read without a doubt: the layout is right */
	/* Whether the interpreters are ending, or have, and how often they have begun again since: then they number anew. */
	__u32 is_over, n_ended;
} python;

bool python_is_there;
static bool is_wanted;

void python__want(bool wanted)
{
	is_wanted = wanted;
}

/* How the interpreter keeps the key: Py_tss_t. */
struct key {
	__u32 is_initialized, number;
};

void python__look(void)
{
	const struct object *object = objects__first();
	struct definition runtime, loop, version;
	__u64 words[PYTHON_OFFSETS_BYTES / 8] = { 0 };
	struct definition get_specific;
	__u64 number = 0;

	if (!is_wanted || python_is_there)
		return;
	while (object && !object__defines_variable(object, "_PyRuntime", &runtime))
		object = object->next;
	if (!object || !object__defines(object, "_PyEval_EvalFrameDefault", &loop) ||
	    !objects__find_function("pthread_getspecific", &get_specific) ||
	    !objects__span((__u64)object->dynamic, &python.span))
		return;
	if (object__defines_variable(object, "Py_Version", &version))
		(void)memory__read((__u64)version.address, &number, sizeof(number));
	python.object = object;
	python.runtime = (__u64)runtime.address;
	python.runtime_bytes = runtime.size;
	if (runtime.size < sizeof(words) || python.runtime & 7 ||
	    !memory__read(python.runtime, words, sizeof(words)) ||
	    !python_layout__find(words, number, &python.layout))
		return;
	python.code_type = (__u64)objects__find("PyCode_Type");
	python.loop = (__u64)loop.address;
	python.loop_bytes = loop.size;
	python.get_specific = (get_specific_fn)get_specific.address;
	python.generation = code__generation();
	__atomic_store_n(&python_is_there, true, __ATOMIC_RELEASE);
}

void python__forget_unloaded(void)
{
	if (!python_is_there || object__is_listed(python.object))
		return;
	__atomic_store_n(&python_is_there, false, __ATOMIC_RELEASE);
	python.key_at = python.n_tries = python.is_proven = 0;
}

/* Finds the state of the calling thread in the interpreters' lists, which other threads may be changing. */
static __u64 find_thread(void)
{
	const struct python_layout *layout = &python.layout;
	__u64 interpreter, thread;
	__u32 tid = sys__tid(), number;

	if (!memory__read(python.runtime + layout->interpreters, &interpreter, 8))
		return 0;
	for (int i = 0; interpreter && i < MOST_INTERPRETERS; i++) {
		if (!memory__read(interpreter + layout->threads, &thread, 8))
			return 0;
		for (int j = 0; thread && j < MOST_THREADS; j++) {
			if (!memory__read(thread + layout->native_id, &number, 4))
				return 0;
			if (number == tid)
				return thread;
			if (!memory__read(thread + layout->next_thread, &thread, 8))
				return 0;
		}
		if (!memory__read(interpreter + layout->next_interpreter, &interpreter, 8))
			return 0;
	}
	return 0;
}

static __u64 specific(const struct key *key)
{
	__u64 value;

	if (key->is_initialized != 1 || key->number >= MOST_KEYS)
		return 0;
	outside__begin();
	value = (__u64)python.get_specific(key->number);
	outside__end();
	return value;
}

/* Returns whether the key is at an offset in the runtime: its value is the state that the lists have for this thread. */
static bool is_key(__s64 at, __u64 thread)
{
	return at > 0 && at <= (__s64)(python.runtime_bytes - sizeof(struct key)) &&
	       specific((const struct key *)(python.runtime + at)) == thread;
}

/* Finds the key under which threads keep their states, which the interpreter does not tell. */
static void find_key(void)
{
	__s64 about = python.layout.about_key, at = 0;
	__u64 thread;

	if (__atomic_fetch_add(&python.n_tries, 1, __ATOMIC_RELAXED) >= MOST_TRIES)
		return;
	thread = find_thread();
	for (__s64 off = 0; thread && !at && off <= KEY_MOVES; off += 4)
		at = is_key(about + off, thread)   ? about + off
		     : is_key(about - off, thread) ? about - off
						   : 0;
	__atomic_store_n(&python.key_at, at, __ATOMIC_RELEASE);
}

/* Returns whether the object with the interpreter is still loaded. */
static bool is_loaded(void)
{
	__u32 generation = code__generation();
	__u64 word;

	if (likely(python.generation == generation))
		return true;
	if (!memory__read(python.runtime, &word, sizeof(word)) ||
	    !memory__read(python.loop, &word, sizeof(word)))
		return false;
	python.generation = generation;
	return true;
}

/* A walk through the interpreter's frames. */
struct python_walk {
	struct python_reader reader;
	const struct walker *walker;
	struct python_stack *stack;
	__u32 step; /* all steps from this index on have been looked at */
	__u64 thread;
	bool is_numbered; /* stack->known is of the thread's interpreter */
};

static __attribute__((noinline)) bool load_copy(struct python_stack *stack, __u64 address,
						__u64 *value)
{
	__u64 at = address - stack->copy_start;

	if (address & 7 || address < LEAST_PAGE)
		return false;
	if (at >= stack->copy_bytes || stack->copy_bytes - at < sizeof(*value)) {
		long size;

		/* Outer frames are mostly at lower addresses. */
		stack->copy_start = address - sizeof(stack->copy) + 128;
		size = memory__read_some(stack->copy_start, stack->copy, sizeof(stack->copy));
		if (size < (long)sizeof(stack->copy)) {
			stack->copy_start = address;
			size = memory__read_some(address, stack->copy, sizeof(stack->copy));
		}
		stack->copy_bytes = size > 0 ? size : 0;
		at = address - stack->copy_start;
	}
	if (at >= stack->copy_bytes || stack->copy_bytes - at < sizeof(*value))
		return false;
	*value = stack->copy[at / sizeof(*value)];
	return true;
}

/* Reads a word of a thread's state or of a frame. Those of a thread that does not hold the interpreter's lock may be unmapped at
 * any time while the interpreter ends, so they are copied. */
static inline bool load(struct python_walk *walk, __u64 address, __u64 *value)
{
	return likely(walk->reader.is_safe) ? python_reader__load(&walk->reader, address, value)
					    : load_copy(walk->stack, address, value);
}

static inline bool load_part(struct python_walk *walk, __u64 address, __u32 size, __u32 *value)
{
	__u64 word;

	if (!load(walk, address & ~7ULL, &word))
		return false;
	*value = python_word__part(word, address, size);
	return true;
}

/*
 * Returns the state of the calling thread; 0: it does not run in the interpreter. Sets reader.is_safe.
 *
 * The thread itself frees its state, and before it does so it takes it out of the thread-specific data. Another thread does
 * that only to end the interpreter, says so before, and waits for one that holds the interpreter's lock.
 */
static __u64 current_thread(struct python_walk *walk)
{
	const struct python_layout *layout = &python.layout;
	const struct key *key = (const struct key *)(python.runtime + python.key_at);
	__u64 thread = specific(key);
	__u64 ends = stack__word(python.runtime + layout->finalizing), owner, word;
	__u32 tid;

	walk->stack->copy_bytes = 0;
	if (unlikely(ends || key->is_initialized != 1)) {
		python.is_over = 1;
	} else if (unlikely(python.is_over)) {
		python.n_ended++;
		python.is_over = 0;
	}
	if (ends && ends != thread)
		return 0;
	if (layout->gil_owner) {
		owner = stack__word(python.runtime + layout->gil_owner);
		walk->reader.is_safe = owner == thread;
		/* A thread that runs in another interpreter keeps the state that it has in the first one. */
		if (owner != thread && owner &&
		    load_part(walk, owner + layout->native_id, 4, &tid) && tid == sys__tid())
			thread = owner;
	} else if (thread && memory__read_kept(thread + (layout->attached & ~7U), &word)) {
		walk->reader.is_safe = word >> 8 * (layout->attached & 7) & layout->attached_bit;
	}
	/* A stack whose end was not found may have been interrupted anywhere. */
	walk->reader.is_safe &= python.is_proven && (walk->walker->end == AP_END_COMPLETE ||
						     walk->walker->end == AP_END_MAX_DEPTH);
	return thread;
}

/* Returns the index of the step in whose frame @address is, from walk->step inwards out; -1: there is none. */
static __s32 find_step(struct python_walk *walk, __u64 address)
{
	const struct step *steps = walk->walker->steps;

	/* Nothing tells where the outermost frame ends. */
	for (__u32 i = walk->step; i-- > 1;)
		if (address >= steps[i].sp && address < steps[i - 1].sp) {
			walk->step = i;
			return i;
		}
	return -1;
}

/* Finds the id of a frame; 0: it is left out. Returns false if it cannot be read. */
static __attribute__((noinline)) bool find_id(struct python_walk *walk, struct python_frame *frame)
{
	const struct python_layout *layout = &python.layout;
	__u64 type, n, name, file;
	__u32 first_line;

	if (!python_reader__load(&walk->reader, frame->code + layout->type, &type) ||
	    type != python.code_type ||
	    !python_reader__load(&walk->reader, frame->code + layout->size, &n) ||
	    frame->position & 1 || frame->position > 2 * n)
		return false;
	/* The interpreter has a frame that only tidies up behind __init__, which nobody has written. */
	if (python_reader__load(&walk->reader, frame->code + layout->name, &name) &&
	    python_reader__load(&walk->reader, frame->code + layout->file, &file) && name == file &&
	    python_reader__load_part(&walk->reader, frame->code + layout->first_line, 4,
				     &first_line) &&
	    !first_line)
		return true;
	return python_code__id(&walk->reader, frame);
}

/* Does the same for a code object that can have been replaced by another one at its address only if its number has
 * changed. */
static bool find_known_id(struct python_walk *walk, struct python_frame *frame)
{
	__u64 slot = (frame->code + frame->position) * 0x9e3779b97f4a7c15ULL >> PYTHON_KNOWN_AT;
	struct python_known *known = &walk->stack->known[slot];
	__u32 number = 0;

	if (!walk->is_numbered ||
	    !python_reader__load_part(&walk->reader, frame->code + python.layout.number, 4,
				      &number) ||
	    !number)
		return find_id(walk, frame);
	if (likely(known->code == frame->code && known->position == frame->position &&
		   known->number == number)) {
		frame->id = known->id;
		return true;
	}
	if (!find_id(walk, frame))
		return false;
	*known = (struct python_known){ frame->code, frame->id, frame->position, number };
	return true;
}

/* Adds a frame, if there is room. Returns false if it cannot be read. */
static bool add_frame(struct python_walk *walk, __u64 address, __u64 code)
{
	const struct python_layout *layout = &python.layout;
	struct python_stack *stack = walk->stack;
	struct python_frame *frame = &stack->frames[stack->n];
	__u64 instruction;

	if (stack->n >= walk->walker->max_depth || stack->n >= AP_MAX_DEPTH)
		return true;
	if (!load(walk, address + layout->instruction, &instruction))
		return false;
	instruction -= code + layout->bytecode - 2;
	if (instruction > MOST_POSITION)
		return false;
	*frame = (struct python_frame){ .code = code, .position = instruction };
	/* Recursion is often deep. */
	if (stack->n && frame[-1].code == code && frame[-1].position == instruction)
		frame->id = frame[-1].id;
	else if (!find_known_id(walk, frame))
		return false;
	stack->n += frame->id != 0;
	return true;
}

/* Gives the frames from @first on to the step in whose frame is @address. */
static bool place(struct python_walk *walk, __u32 first, __u64 address)
{
	struct python_stack *stack = walk->stack;
	__s32 step = find_step(walk, address);

	for (__u32 i = first; i < stack->n && step >= 0; i++)
		stack->frames[i].step = step;
	return step >= 0;
}

/* Interpreters number their code objects each for itself. */
static void know_interpreter(struct python_walk *walk)
{
	const struct python_layout *layout = &python.layout;
	struct python_stack *stack = walk->stack;
	__u64 interpreter, id = 0;

	walk->is_numbered = layout->number && walk->reader.is_safe &&
			    load(walk, walk->thread + layout->interpreter, &interpreter) &&
			    load(walk, interpreter + layout->interpreter_id, &id);
	id = (id + 1) << 16 | (__u16)python.n_ended;
	if (!walk->is_numbered || stack->interpreter == id)
		return;
	memset(stack->known, 0, sizeof(stack->known));
	stack->interpreter = id;
}

/* Adds all frames of which it is certain to which step they belong. */
static void add_frames(struct python_walk *walk)
{
	const struct python_layout *layout = &python.layout;
	struct python_stack *stack = walk->stack;
	__u64 holder = walk->thread, frame, code;
	__u32 first = 0, owner, is_entry = 0;
	bool is_good = !layout->cframe || load(walk, holder + layout->cframe, &holder);

	is_good = is_good && load(walk, holder + layout->frame, &frame);
	for (int i = 0; is_good && frame; i++) {
		is_good = i < MOST_FRAMES && load(walk, frame + layout->code, &code) &&
			  load_part(walk, frame + layout->owner, 1, &owner);
		if (is_good && (layout->is_entry || owner < layout->entry_owner)) {
			is_good = add_frame(walk, frame, code);
			if (is_good && layout->is_entry)
				is_good = load_part(walk, frame + layout->is_entry, 1, &is_entry);
		} else {
			is_entry = 1;
		}
		if (is_good && is_entry) {
			is_good = place(walk, first, layout->is_entry ? holder : frame);
			first = is_good ? stack->n : first;
			if (layout->is_entry)
				is_good = is_good &&
					  load(walk, holder + layout->next_cframe, &holder);
			is_entry = 0;
		}
		is_good = is_good && load(walk, frame + layout->previous, &frame);
	}
	stack->n = first;
	if (first)
		python.is_proven = 1;
}

/* Returns whether the step is in the interpreter's loop. */
static inline bool is_loop(const struct step *step)
{
	return step->pc - python.loop < python.loop_bytes;
}

/* Facts about all steps of a walker. */
struct steps {
	bool in_interpreter; /* one is in the interpreter's object, which stays loaded while the thread is there */
	bool has_loop;
	/* A signal has interrupted the thread anywhere in the stack: the interpreter's lists may be in disorder. */
	bool is_interrupted;
};

static struct steps steps_of(const struct walker *walker)
{
	struct steps steps = { 0 };
	__u32 flags = 0;

	for (__u32 i = 0; i < walker->n; i++) {
		const struct step *step = &walker->steps[i];

		flags |= step->frame.flags;
		steps.in_interpreter |=
			step->pc - python.span.start < python.span.end - python.span.start;
		steps.has_loop |= is_loop(step);
	}
	steps.is_interrupted = flags & AP_FRAME_INTERRUPTED;
	return steps;
}

static bool has_python(struct walker *walker)
{
	struct python_stack *made;

	if (likely(walker->python))
		return true;
	made = memory__take_private(sizeof(*made));
	walker->python = made;
	return made;
}

__u64 python__walk(struct walker *walker, __u64 hash)
{
	struct python_walk walk = {
		.reader.layout = &python.layout,
		.walker = walker,
		.step = walker->n,
	};
	struct steps steps = steps_of(walker);

	if (walker->python)
		walker->python->is_used = false;
	if (!steps.in_interpreter || !is_loaded())
		return hash;
	if (steps.has_loop && !__atomic_load_n(&python.key_at, __ATOMIC_ACQUIRE))
		find_key();
	if (!python.key_at || !has_python(walker))
		return hash;
	walk.stack = walker->python;
	walk.stack->n = 0;
	walk.thread = steps.is_interrupted ? 0 : current_thread(&walk);
	if (walk.thread) {
		know_interpreter(&walk);
		add_frames(&walk);
	}
	/* A part of the loop's code may lie elsewhere, so frames may be there without it. */
	walk.stack->is_used = steps.has_loop || walk.stack->n;
	if (!walk.stack->is_used)
		return hash;
	hash = ap_stack__mix(hash ^ walk.stack->n);
	for (__u32 i = 0; i < walk.stack->n; i++)
		hash = ap_stack__mix(hash ^ walk.stack->frames[i].id ^
				     (__u64)walk.stack->frames[i].step << 48);
	return hash;
}

const struct python_names *python__names(const struct walker *walker, __u32 index)
{
	struct python_stack *stack = walker->python;
	struct python_reader reader = { .layout = &python.layout };

	for (; index < stack->n; index++)
		if (python_code__names(&reader, &stack->frames[index], &stack->names))
			return &stack->names;
	return NULL;
}

__u32 python__frames(const struct walker *walker, struct ap_frame *out, __u32 *end)
{
	const struct python_stack *stack = walker->python;
	__u32 n = 0, at = 0, i = walker->n;

	while (i > 0 && n < walker->max_depth) {
		const struct step *step = &walker->steps[i - 1];
		struct ap_frame frame = { .flags = AP_FRAME_PYTHON };

		if (at < stack->n && stack->frames[at].step == i - 1) {
			frame.offset = stack->frames[at++].id;
			/* The step stands for as many frames as it has. */
			i -= at == stack->n || stack->frames[at].step != i - 1;
		} else {
			i--;
			if (walker->own_module && step->frame.module == walker->own_module)
				continue;
			if (!is_loop(step))
				frame = step->frame;
		}
		if (out) {
			out[n] = frame;
			out[n].flags &= ~STEP_FLAGS;
		}
		n++;
	}
	if (i && out)
		*end = AP_END_MAX_DEPTH;
	return n;
}
