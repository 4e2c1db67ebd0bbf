// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "own.h"

#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/mman.h>

#include "async_code.h"
#include "counted.h"
#include "domains.h"
#include "inside_abi.h"
#include "interface_abi.h"
#include "memory.h"
#include "objects.h"
#include "python.h"
#include "stubs.h"
#include "sys.h"
#include "words.h"

#define MAX_ALLOCATORS 8
#define MAX_SEEN       4096

/* The bounds of this library, from symbols of the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static struct {
	__u32 is_busy, is_missed;
	__u32 n_loads, n_walks, n_forks; /* how many loads, walks and forks are under way */
	bool began, awaits_end, is_stopped;
	__u32 n_programs; /* so many functions, the first ones, are of an allocator in the program */
	/* The last walk found all objects, so no further one is needed until they change. */
	bool is_complete;
	struct objects_changes changes;
	/* The last of the objects with which the program began: names are searched first in all
	 * objects up to this one. */
	const struct object *last;
	struct {
		const struct object *object;
		const Elf64_Dyn *dynamic;
		__u64 bias;
		struct object_span span;
	} allocators[MAX_ALLOCATORS];
	__u32 n_allocators;
	/* Objects whose words have been looked at, by their dynamic sections. */
	const Elf64_Dyn *seen[MAX_SEEN];
	__u32 n_seen;
} known;

/* How long a fork and a walk through the objects wait for each other at most. */
#define WAIT_STEP_NS 100000
#define WAIT_STEPS   1000

static bool has_family(const struct object *object, enum interface_family family)
{
	static const char *const names[] = { "malloc", "free" };
	struct definition found;
	char name[32];

	for (int i = 0; i < 2; i++) {
		char *stop = name + sizeof(name), *end;

		end = text__append(name, stop, interface_prefixes[family]);
		if (!text__append(end, stop, names[i]) || !object__defines(object, name, &found))
			return false;
	}
	return true;
}

/* Returns whether the object only wraps another allocator, by the rule of
 * src/allocator/allocator.c. */
static bool is_wrapper(const struct object *object)
{
	static const char *const sources[] = { "mmap",	 "mmap64", "__mmap",   "sbrk",
					       "__sbrk", "brk",	   "morecore", "__morecore" };
	static const char *const ways[] = { "dlsym",	     "dlvsym",	       "__libc_malloc",
					    "__libc_calloc", "__libc_realloc", "__libc_memalign" };
	struct definition found;
	bool forwards = false, searches = false;

	for (__u32 i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		forwards |= object__imports(object, ways[i]);
		searches |= forwards && i < 2;
	}
	if (!forwards)
		return false;
	for (__u32 i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (object__imports(object, sources[i]) ||
		    (!(searches && i < 2) && object__defines(object, sources[i], &found)))
			return false;
	return true;
}

/* Returns a bit mask of the families whose functions the object has. */
static __u32 families_of(const struct object *object)
{
	struct definition found;
	__u32 families = 0;

	if (object == objects__own() || object__defines(object, "__libc_start_main", &found))
		return 0;
	for (int family = 0; family < INTERFACE_FAMILIES; family++)
		if (family != INTERFACE_CPLUSPLUS &&
		    has_family(object, (enum interface_family)family))
			families |= 1U << family;
	if (!families || is_wrapper(object))
		return 0;
	return families | 1U << INTERFACE_CPLUSPLUS;
}

/* Returns whether this library defines the function itself. */
static bool is_ours(const char *name)
{
#define IS(function, ...)                                                                          \
	if (text__equal(name, #function))                                                          \
		return true;
	NEXT_ALLOCATOR(IS)
#undef IS
	return false;
}

static bool are_of_one(const struct own_function *one, const struct own_function *other)
{
	__u64 a = (__u64)one->address, b = (__u64)other->address;

	if (one < own_functions.list + known.n_programs)
		return other < own_functions.list + known.n_programs;
	for (__u32 i = 0; i < known.n_allocators; i++) {
		const struct object_span *span = &known.allocators[i].span;

		if (a >= span->start && a < span->end && b >= span->start && b < span->end)
			return true;
	}
	return false;
}

static const struct own_function *find_returning(const struct own_function *function)
{
	static const char *const endings[] = { "RKSt9nothrow_t", "_nothrow" };
	const struct interface_function *row = function->row;

	if (!row || !row->throws || text__contains(row->name, "nothrow"))
		return function;
	for (__u32 i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		char name[64], *stop = name + sizeof(name);

		if (!text__append(text__append(name, stop, row->name), stop, endings[i]))
			continue;
		for (__u32 n = 0; n < own_functions.n; n++) {
			const struct own_function *other = &own_functions.list[n];

			if (other->row && text__equal(other->row->name, name) &&
			    are_of_one(function, other))
				return other;
		}
	}
	return NULL;
}

static void add_function(void *context, const char *name, const struct definition *definition)
{
	const __u32 *families = context;
	const struct interface_function *row;
	enum interface_family family;

	if (is_ours(name))
		return;
	row = interface__find_row(name, &family);
	if (!row && !interface__looks_alike(name))
		return;
	if (row && row->kind == INTERFACE_IGNORED && !row->ends)
		return;
	if ((row && !(*families >> family & 1)) ||
	    stubs__find(definition->address, row) != OWN_FUNCTIONS)
		return;
	if (stubs__add(definition->address, definition->size, row) != OWN_FUNCTIONS)
		own_functions.n_allocating++;
}

static bool is_known(const struct object *object)
{
	for (__u32 i = 0; i < known.n_allocators; i++)
		if (known.allocators[i].object == object &&
		    known.allocators[i].dynamic == object->dynamic &&
		    known.allocators[i].bias == object->bias)
			return true;
	return false;
}

static void note_returning(void)
{
	for (__u32 i = 0; i < own_functions.n; i++)
		own_functions.list[i].returning = find_returning(&own_functions.list[i]);
}

static void find_allocators(void)
{
	const struct object *object = objects__first();

	for (; object; object = object->next) {
		__u32 families, i;

		if (is_known(object) || (known.n_programs && object == objects__first()))
			continue;
		families = families_of(object);
		if (!families)
			continue;
		for (i = 0; i < known.n_allocators && known.allocators[i].object; i++)
			;
		if (i == MAX_ALLOCATORS) {
			memory__add_gap(INSIDE_GAP_FUNCTIONS);
			return;
		}
		if (!objects__span((__u64)object->dynamic, &known.allocators[i].span))
			continue;
		known.allocators[i].dynamic = object->dynamic;
		known.allocators[i].bias = object->bias;
		known.allocators[i].object = object;
		if (i == known.n_allocators)
			known.n_allocators++;
		/* The garbage collector of these objects frees blocks without a call. */
		if (families >> INTERFACE_GC & 1 && memory__header()->settings.mode == INSIDE_LIVE)
			memory__add_gap(INSIDE_GAP_COLLECTED);
		object__each_function(object, add_function, &families);
	}
}

/* Finds the definition to which the dynamic linker binds @name. Returns false if there is none, or this is not
 * certain. */
static bool find_bound(const struct object *caller, const char *name, enum inside_gap gap,
		       struct definition *out)
{
	const struct object *object = objects__first();
	struct definition other;
	bool is_first = true, found = false, is_sure = false;

	for (; object; object = object->next) {
		if (!found && object__defines(object, name, out)) {
			found = true;
			is_sure = is_first;
		} else if (found && !is_sure && object__defines(object, name, &other)) {
			memory__add_gap(gap);
			return false;
		}
		if (object == known.last)
			is_first = false;
	}
	return found && !(out->object != caller && object__is_symbolic(caller) &&
			  object__defines(caller, name, &other));
}

/* Works like find_bound(), and returns false if the definition is not an allocator's. */
static bool resolve(const struct object *caller, const char *name, struct definition *out)
{
	if (!find_bound(caller, name, INSIDE_GAP_FUNCTIONS, out))
		return false;
	for (__u32 i = 0; i < known.n_allocators; i++)
		if (known.allocators[i].object == out->object)
			return true;
	return false;
}

struct patching {
	const struct object *object;
	struct object_span span;
	bool is_late, is_settled;
};

/* Returns the object that has the address, or NULL. */
static const struct object *object_at(__u64 address)
{
	const struct object *object = objects__first();
	struct object_span span;

	if (!objects__span(address, &span))
		return NULL;
	while (object && (__u64)object->dynamic != span.dynamic)
		object = object->next;
	return object;
}

/* Has the word lead to the stub of a function that it leads to, and that is only counted. */
static void lead_to_stub(const struct patching *patching, __u64 *word, const void *address,
			 __u64 size, const struct interface_function *row)
{
	__u64 stub = stubs__lead_to(address, size, row);

	if (stub && (!words__write(&patching->span, word, stub) || patching->is_late))
		memory__add_gap(INSIDE_GAP_COUNTED);
}

static void patch_counted(const struct patching *patching, const struct interface_function *row,
			  const char *name, __u64 *slot, bool is_lazy)
{
	const struct object_span *span = &patching->span;
	__u64 value = __atomic_load_n(slot, __ATOMIC_RELAXED);
	struct definition found = { .address = (void *)value };

	if (!value || value - (__u64)__ehdr_start < (__u64)_end - (__u64)__ehdr_start)
		return;
	if (is_lazy && value >= span->start && value < span->end) {
		if (!find_bound(patching->object, name, INSIDE_GAP_COUNTED, &found))
			return;
	} else if (!(found.object = object_at(value))) {
		return;
	}
	if (row->kind == INTERFACE_COUNTED &&
	    (!counted__is_in(row, found.object) || counted__has_word(row, found.object)))
		return;
	lead_to_stub(patching, slot, found.address, found.size, row);
}

/* Has functions that the object exports, and that are only counted, go on by a stub. Notes those that the object may
 * call itself. */
static void patch_exports(const struct patching *patching)
{
	struct counted_export export;

	for (__u32 i = 0; counted__export(patching->object, i, &export); i++) {
		if (!export.row)
			continue;
		if (!export.word) {
			if (patching->is_settled &&
			    (export.is_misled ||
			     objects__lead_to(&patching->span, (__u64) export.function.address)))
				memory__add_gap(INSIDE_GAP_COUNTED);
			continue;
		}
		/* The word may not be relocated yet. */
		if (*export.word - (__u64)__ehdr_start >= (__u64)_end - (__u64)__ehdr_start &&
		    object_at(*export.word))
			lead_to_stub(patching, export.word, (void *)*export.word, 0, export.row);
		if (export.flag && !words__write_byte(&patching->span, export.flag, 1))
			memory__add_gap(INSIDE_GAP_COUNTED);
	}
}

static void patch(void *context, const char *name, __u64 *slot, bool is_lazy)
{
	const struct patching *patching = context;
	const struct object_span *span = &patching->span;
	const struct interface_function *row;
	enum interface_family family;
	struct definition found;
	__u64 stub, value;
	__u32 index;

	if ((__u64)slot < span->start || (__u64)slot >= span->end)
		return;
	row = counted__any() ? counted__row(name) : NULL;
	if (row) {
		patch_counted(patching, row, name, slot, is_lazy);
		return;
	}
	if (!own_functions.n_allocating)
		return;
	row = interface__find_row(name, &family);
	if ((!row && !interface__looks_alike(name)) || is_ours(name))
		return;
	value = __atomic_load_n(slot, __ATOMIC_RELAXED);
	index = stubs__find((void *)value, row);
	if (index == OWN_FUNCTIONS && is_lazy && value >= span->start && value < span->end &&
	    resolve(patching->object, name, &found))
		index = stubs__find(found.address, row);
	if (index == OWN_FUNCTIONS)
		return;
	stub = stub__address(index);
	if (patching->is_late || !words__write(span, slot, stub))
		memory__add_gap(INSIDE_GAP_FUNCTIONS);
}

bool own__take(const struct inside_function *functions, __u64 n)
{
	const __u32 n_rows = sizeof(interface_functions) / sizeof(interface_functions[0]);

	for (__u32 i = 0; i < n && i < OWN_FUNCTIONS; i++) {
		const struct inside_function *function = &functions[i];
		struct own_function *own = &own_functions.list[i];
		const struct interface_function *row =
			function->row < n_rows ? &interface_functions[function->row] : NULL;

		/* The list of an earlier measurement is kept, since programs may have addresses of stubs. */
		if (i < own_functions.n &&
		    (own->address != (void *)function->address || own->row != row))
			return false;
		*own = (struct own_function){ (void *)function->address, function->size_bytes, row,
					      NULL };
		stubs__widen(own);
		if (i >= own_functions.n)
			__atomic_store_n(&own_functions.n, i + 1, __ATOMIC_RELEASE);
		own_functions.n_allocating = own_functions.n;
		known.n_programs = i + 1;
	}
	note_returning();
	return true;
}

void own__list(struct inside_redirections *to)
{
	for (__u32 i = 0; i < own_functions.n && to->n < INSIDE_REDIRECTIONS; i++) {
		const struct own_function *function = &own_functions.list[i];

		if (function->row && function->row->kind == INTERFACE_REQUEST)
			to->list[to->n++] = (struct inside_redirection){
				.stub = stub__address(i),
				.function = (__u64)function->address,
			};
	}
}

static bool is_seen(const struct object *object)
{
	for (__u32 i = 0; i < known.n_seen; i++)
		if (known.seen[i] == object->dynamic)
			return true;
	return false;
}

static void patch_objects(bool is_late, bool is_settled)
{
	const struct object *object = objects__first(), *own = objects__own();

	for (; object; object = object->next) {
		struct patching patching = {
			.object = object,
			.is_late = is_late,
			.is_settled = is_settled,
		};

		if (object == own || is_seen(object))
			continue;
		if (is_settled && known.n_seen < MAX_SEEN)
			known.seen[known.n_seen++] = object->dynamic;
		if (!objects__span((__u64)object->dynamic, &patching.span))
			continue;
		if (own_functions.n_allocating || counted__any()) {
			object__each_slot(object, NULL, patch, &patching);
			patch_exports(&patching);
			words__protect();
		}
		if (words__are_bound())
			words__bind(object, &patching.span);
		if (is_settled && domains__any())
			domains__look(object, &patching.span);
	}
}

/* Forgets allocators that were unloaded: they have no code any more, and other objects may be at
 * their addresses. */
static void forget_unloaded(void)
{
	for (__u32 i = 0; i < known.n_allocators; i++)
		if (!object__is_listed(known.allocators[i].object)) {
			known.allocators[i].span = (struct object_span){ 0 };
			known.allocators[i].object = NULL;
		}
	known.n_seen = 0;
}

static void update(bool is_late, const struct objects_changes *changes)
{
	/* Before that, or during a load, objects may not be relocated yet. */
	bool is_settled = known.began && !known.awaits_end &&
			  !__atomic_load_n(&known.n_loads, __ATOMIC_ACQUIRE);

	if (known.is_stopped)
		return;
	if (changes && known.is_complete && changes->n_loaded == known.changes.n_loaded &&
	    changes->n_unloaded == known.changes.n_unloaded)
		return;
	if (!changes || changes->n_unloaded != known.changes.n_unloaded) {
		forget_unloaded();
		domains__forget_unloaded();
		python__forget_unloaded();
	}
	if (changes)
		known.changes = *changes;
	known.is_complete = is_settled;
	find_allocators();
	note_returning();
	python__look();
	async_code__look();
	if (own_functions.n_allocating || counted__any() || words__are_bound() || domains__any())
		patch_objects(is_late, is_settled);
}

/* Updates once at a time. If the objects are not held, a thread that comes meanwhile leaves its
 * update to the thread that is at it. */
static void update_once(void *context, const struct objects_changes *changes)
{
	const bool *is_late = context;

	do {
		if (__atomic_exchange_n(&known.is_busy, 1, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&known.is_missed, 1, __ATOMIC_RELEASE);
			return;
		}
		__atomic_store_n(&known.is_missed, 0, __ATOMIC_RELAXED);
		update(*is_late, changes);
		__atomic_store_n(&known.is_busy, 0, __ATOMIC_RELEASE);
	} while (__atomic_load_n(&known.is_missed, __ATOMIC_ACQUIRE));
}

/* Waits until *@n is 0, for a limited time, since a signal handler may wait for the code that it
 * interrupted. */
static void await_none(const __u32 *n)
{
	const struct {
		long seconds, ns;
	} step = { 0, WAIT_STEP_NS };

	for (int i = 0; i < WAIT_STEPS && __atomic_load_n(n, __ATOMIC_SEQ_CST); i++)
		if (sys(__NR_nanosleep, (long)&step, 0, 0, 0, 0, 0) == -EPERM)
			return;
}

static void look(objects_fn fn, void *context)
{
	for (int i = 0; i < 2; i++) {
		await_none(&known.n_forks);
		__atomic_fetch_add(&known.n_walks, 1, __ATOMIC_SEQ_CST);
		if (i || !__atomic_load_n(&known.n_forks, __ATOMIC_SEQ_CST))
			break;
		__atomic_fetch_sub(&known.n_walks, 1, __ATOMIC_SEQ_CST);
	}
	objects__hold(fn, context);
	__atomic_fetch_sub(&known.n_walks, 1, __ATOMIC_SEQ_CST);
}

void own__update(void)
{
	bool is_late = false;

	look(update_once, &is_late);
}

void own__begin_load(void)
{
	__atomic_fetch_add(&known.n_loads, 1, __ATOMIC_SEQ_CST);
}

/* The count may be 0 already: it began anew in a child that a constructor has forked. */
void own__end_load(void)
{
	__u32 n = __atomic_load_n(&known.n_loads, __ATOMIC_RELAXED);

	while (n && !__atomic_compare_exchange_n(&known.n_loads, &n, n - 1, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_RELAXED))
		;
}

void own__begin_fork(void)
{
	__atomic_fetch_add(&known.n_forks, 1, __ATOMIC_SEQ_CST);
	await_none(&known.n_walks);
}

void own__end_fork(void)
{
	__atomic_fetch_sub(&known.n_forks, 1, __ATOMIC_SEQ_CST);
}

void own__await_end(void)
{
	known.awaits_end = true;
}

void own__stop(void)
{
	known.is_stopped = true;
}

void own__end(void)
{
	bool is_late = true;

	if (known.awaits_end)
		look(update_once, &is_late);
	known.awaits_end = false;
}

static void begin(void *context, const struct objects_changes *changes)
{
	const struct object *object = objects__first();

	known.began = true;
	for (; object; object = object->next)
		known.last = object;
}

void own__began(void)
{
	look(begin, NULL);
	own__update();
}

void own__forked(void)
{
	known.is_busy = 0;
	known.n_loads = known.n_walks = known.n_forks = 0;
	domains__forked();
}

struct other_code {
	__u64 address;
	bool is_found;
};

static void find_code(void *context, const char *name, const struct definition *definition)
{
	struct other_code *code = context;

	code->is_found |= code->address - (__u64)definition->address < definition->size;
}

bool own__is_inner(__u64 return_address)
{
	__u64 address = return_address - 1;
	struct other_code code = { .address = address };

	for (__u32 i = 0; i < known.n_allocators; i++) {
		const struct object_span *span = &known.allocators[i].span;
		const struct object *object = known.allocators[i].object;

		if (!object || address < span->start || address >= span->end)
			continue;
		object__each_function(object, find_code, &code);
		return !code.is_found;
	}
	return false;
}

bool own__is_body(__u64 return_address)
{
	__u32 n = __atomic_load_n(&own_functions.n, __ATOMIC_ACQUIRE);

	if (return_address - (__u64)__ehdr_start < (__u64)_end - (__u64)__ehdr_start)
		return true;
	/* Nearly all calls come from elsewhere. */
	if (!stubs__may_have(return_address))
		return false;
	for (__u32 i = 0; i < n; i++) {
		const struct own_function *function = &own_functions.list[i];

		/* Requests that a copying function (such as strdup) makes count as its caller's. */
		if (return_address - (__u64)function->address - 1 < function->size &&
		    function->row &&
		    (function->row->kind == INTERFACE_REQUEST ||
		     function->row->kind == INTERFACE_OWN))
			return true;
	}
	return false;
}
