// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Changes the words through which objects call functions, and restores them. */
#include "words.h"

#include <asm/unistd.h>
#include <linux/mman.h>

#include "memory.h"
#include "sys.h"

/* A program with many libraries has some thousands of such words. */
#define MAX_WORDS 65536

struct word {
	__u64 *at;
	__u64 before, value;
	const Elf64_Dyn *dynamic; /* dynamic section of the object that has the word */
};

static struct {
	struct word *list; /* NULL: former values are not noted */
	__u32 n;
	bool is_restored;
} words;

/* The read-only pages of one object that have been made writable, or none. */
static struct {
	__u64 start, end;
} unprotected;

void words__protect(void)
{
	if (unprotected.start != unprotected.end)
		sys(__NR_mprotect, unprotected.start, unprotected.end - unprotected.start,
		    PROT_READ, 0, 0, 0);
	unprotected.start = unprotected.end = 0;
}

static bool unprotect(const struct object_span *span, __u64 word)
{
	__u64 start = word & -page_bytes(), end = start + page_bytes();

	if (word < span->protected_start || word >= span->protected_end ||
	    (word >= unprotected.start && word < unprotected.end))
		return true;
	words__protect();
	if (sys(__NR_mprotect, start, end - start, PROT_READ | PROT_WRITE, 0, 0, 0))
		return false;
	unprotected.start = start;
	unprotected.end = end;
	return true;
}

bool words__write(const struct object_span *span, __u64 *word, __u64 value)
{
	__u32 n = words.n;

	if ((words.list && n == MAX_WORDS) || !unprotect(span, (__u64)word))
		return false;
	if (words.list && !words.is_restored)
		words.list[words.n++] = (struct word){
			.at = word,
			.before = __atomic_load_n(word, __ATOMIC_RELAXED),
			.value = value,
			.dynamic = (const Elf64_Dyn *)span->dynamic,
		};
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	return true;
}

bool words__write_byte(const struct object_span *span, __u8 *byte, __u8 value)
{
	if (!unprotect(span, (__u64)byte))
		return false;
	__atomic_store_n(byte, value, __ATOMIC_RELEASE);
	return true;
}

/* A filter with a bit for each hashed address of a first definition of this library's functions:
 * if a word's value is not in it, its name need not be looked up. First definitions that come
 * later belong to an allocator's own functions (own.c). */
static __u64 first_addresses[64];

static __u32 bit_of(__u64 address)
{
	return (address >> 4 ^ address >> 14) % (sizeof(first_addresses) * 8);
}

static void note_first(void *context, const char *name, const struct definition *own)
{
	struct definition first;

	if (objects__find_function(name, &first)) {
		__u32 bit = bit_of((__u64)first.address);

		first_addresses[bit / 64] |= 1ULL << bit % 64;
	}
}

static void note_first_addresses(void)
{
	memset(first_addresses, 0, sizeof(first_addresses));
	object__each_function(&own_object, note_first, NULL);
}

static bool may_be_first(__u64 address)
{
	__u32 bit = bit_of(address);

	return first_addresses[bit / 64] >> bit % 64 & 1;
}

bool words__begin(void)
{
	words.list = sys__map_private(MAX_WORDS * sizeof(*words.list));
	words.n = 0;
	words.is_restored = false;
	note_first_addresses();
	return words.list;
}

bool words__are_bound(void)
{
	return words.list && !words.is_restored;
}

__u64 words__count(void)
{
	return words.n;
}

/* Returns whether calls of the function are not redirected. These functions execute programs
 * within the C library, through no word that could be changed, and a cancellation may unwind them,
 * for which the dynamic linker would have to know this library's frame. */
static bool is_left_alone(const char *name)
{
	return text__equal(name, "system") || text__equal(name, "popen") ||
	       text__equal(name, "wordexp");
}

static bool span__has(const struct object_span *span, __u64 address)
{
	return address >= span->start && address < span->end;
}

/* Returns the address that the word should hold; 0: it is right as it is. */
static __u64 replacement(const struct object_span *span, const char *name, __u64 value,
			 bool is_lazy)
{
	struct definition own, first;
	bool is_unbound = is_lazy && span__has(span, value);

	if (!object__defines(&own_object, name, &own) || is_left_alone(name))
		return 0;
	/* A program's references to these functions are weak, and only this library defines them. */
	if (!value)
		return text__equal(name, AP_REGION_MARK_FUNCTION) ||
				       text__equal(name, AP_REGION_READ_FUNCTION)
			       ? (__u64)own.address
			       : 0;
	if (!objects__find_function(name, &first))
		return 0;
	return is_unbound || value == (__u64)first.address ? (__u64)own.address : 0;
}

struct binding {
	const struct object_span *span;
	bool is_counted; /* the words are only counted, in @n, and not changed */
	__u64 n;
};

/* Returns whether the word's value may have to be replaced. */
static bool matters(void *context, const __u64 *slot, bool is_lazy)
{
	const struct binding *binding = context;
	const struct object_span *span = binding->span;
	__u64 value;

	if (!span__has(span, (__u64)slot))
		return false;
	value = __atomic_load_n(slot, __ATOMIC_RELAXED);
	return !value || (is_lazy && span__has(span, value)) || may_be_first(value);
}

static void bind(void *context, const char *name, __u64 *slot, bool is_lazy)
{
	struct binding *binding = context;
	const struct object_span *span = binding->span;
	__u64 value;

	value = replacement(span, name, __atomic_load_n(slot, __ATOMIC_RELAXED), is_lazy);
	if (!value)
		return;
	binding->n++;
	if (!binding->is_counted && !words__write(span, slot, value))
		memory__add_gap(INSIDE_GAP_FUNCTIONS);
}

void words__bind(const struct object *object, const struct object_span *span)
{
	struct binding binding = { .span = span };

	object__each_slot(object, matters, bind, &binding);
	words__protect();
}

/* glibc's dynamic linker has its four pointers next to each other. */
#define LINKER_FUNCTIONS 4

void words__bind_linker(void)
{
	static const char *const names[LINKER_FUNCTIONS] = { "calloc", "free", "malloc",
							     "realloc" };
	struct definition first[LINKER_FUNCTIONS], own[LINKER_FUNCTIONS];
	__u64 code = objects__linker_code();
	struct object_span span;

	if (!code || !objects__span(code, &span))
		return;
	for (int i = 0; i < LINKER_FUNCTIONS; i++)
		if (!objects__find_function(names[i], &first[i]) ||
		    !object__defines(&own_object, names[i], &own[i]))
			return;
	for (__u64 *at = (__u64 *)span.protected_start; at < (__u64 *)span.protected_end; at++)
		for (int i = 0; i < LINKER_FUNCTIONS; i++)
			if (*at == (__u64)first[i].address)
				words__write(&span, at, (__u64)own[i].address);
	words__protect();
}

static bool is_loaded(const Elf64_Dyn *dynamic)
{
	const struct object *object = objects__first();

	while (object && object->dynamic != dynamic)
		object = object->next;
	return object;
}

struct words_sum words__restore(void)
{
	struct words_sum sum = { 0 };
	const struct object *object;
	struct object_span span = { 0 };

	words.is_restored = true;
	note_first_addresses();
	for (object = objects__first(); object; object = object->next) {
		struct binding binding = { .span = &span, .is_counted = true };

		if (!objects__span((__u64)object->dynamic, &span))
			continue;
		object__each_slot(object, matters, bind, &binding);
		sum.n_lost += binding.n;
	}
	span = (struct object_span){ 0 };
	for (__u32 i = words.n; i-- > 0;) {
		const struct word *word = &words.list[i];

		/* A function that had no definition stays bound to this library: a thread may have
		 * tested the word, and be about to call it. */
		if (!word->before)
			continue;

		if ((__u64)word->dynamic != span.dynamic &&
		    (!is_loaded(word->dynamic) || !objects__span((__u64)word->dynamic, &span)))
			continue;
		if (__atomic_load_n(word->at, __ATOMIC_RELAXED) != word->value)
			sum.n_lost++;
		else if (words__write(&span, word->at, word->before))
			sum.n++;
	}
	words__protect();
	words.n = 0;
	return sum;
}
