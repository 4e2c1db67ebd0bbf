// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the dynamic linker's list of loaded objects, and their symbols, relocations and addresses. */
#include "objects.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol_hash.h"
#include "sys.h"

struct debug {
	int version;
	struct object *first;
	__u64 code; /* address of a function that is called when the list changes */
	int state;  /* 0: the list is consistent */
};

/* glibc's dynamic linker exports the structure itself, musl's a pointer to it. */
extern struct debug _r_debug __attribute__((weak));
extern struct debug *_dl_debug_addr __attribute__((weak));

extern Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

/* How many objects of the list are looked at, so that a circular list ends. */
#define MAX_OBJECTS 65536

/* The linker's structure, set only if the dynamic linker has not loaded this library (attached). */
static const struct debug *attached_debug;

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

const struct object own_object = { .bias = (__u64)__ehdr_start, .dynamic = _DYNAMIC };

void objects__set_linker(__u64 debug)
{
	attached_debug = (const struct debug *)debug;
}

bool objects__are_consistent(void)
{
	return !attached_debug || !attached_debug->state;
}

struct object *objects__first(void)
{
	if (attached_debug)
		return attached_debug->first;
	if (&_r_debug)
		return _r_debug.first;
	if (&_dl_debug_addr && _dl_debug_addr)
		return _dl_debug_addr->first;
	return NULL;
}

struct object *objects__own(void)
{
	struct object *object = objects__first();

	for (int i = 0; object && i < MAX_OBJECTS; i++, object = object->next)
		if (object->dynamic == _DYNAMIC)
			return object;
	return NULL;
}

const char *objects__own_path(void)
{
	const struct object *own = objects__own();

	return own ? own->path : NULL;
}

struct symbols {
	const Elf64_Sym *symbols;
	const char *strings;
	const __u32 *hash, *gnu_hash;
	const __u16 *versions;
	__u64 string_bytes;
};

const void *object__address(const struct object *object, __u64 value)
{
	return (const void *)(value < object->bias ? value + object->bias : value);
}

static bool read_symbols(const struct object *object, struct symbols *out)
{
	*out = (struct symbols){ 0 };
	for (const Elf64_Dyn *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		const void *address = object__address(object, entry->d_un.d_ptr);

		switch (entry->d_tag) {
		case DT_SYMTAB:
			out->symbols = address;
			break;
		case DT_STRTAB:
			out->strings = address;
			break;
		case DT_STRSZ:
			out->string_bytes = entry->d_un.d_val;
			break;
		case DT_HASH:
			out->hash = address;
			break;
		case DT_GNU_HASH:
			out->gnu_hash = address;
			break;
		case DT_VERSYM:
			out->versions = address;
			break;
		}
	}
	return out->symbols && out->strings && (out->hash || out->gnu_hash);
}

/* The number of objects whose symbols are kept while objects__keep_symbols() asks for it. */
#define KEPT 128

static struct {
	const struct object *object;
	const Elf64_Dyn *dynamic; /* tells the object from a later one at the same address */
	struct symbols symbols;
} kept[KEPT];
static bool keeps_symbols;

void objects__keep_symbols(bool keeps)
{
	keeps_symbols = keeps;
	memset(kept, 0, sizeof(kept));
}

static bool find_symbols(const struct object *object, struct symbols *out)
{
	__u32 at = (__u64)object / sizeof(*object) % KEPT;

	if (keeps_symbols && kept[at].object == object && kept[at].dynamic == object->dynamic) {
		*out = kept[at].symbols;
		return true;
	}
	if (!object->dynamic || !read_symbols(object, out))
		return false;
	if (keeps_symbols) {
		kept[at].object = object;
		kept[at].dynamic = object->dynamic;
		kept[at].symbols = *out;
	}
	return true;
}

/* The bit of a symbol's version that hides it from references without a version. */
#define VERSION_HIDDEN 0x8000

static bool symbol__is(const struct symbols *in, __u32 index, const char *name, bool function)
{
	const Elf64_Sym *symbol = &in->symbols[index];
	int type = ELF64_ST_TYPE(symbol->st_info), binding = ELF64_ST_BIND(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value || binding == STB_LOCAL)
		return false;
	if (function != (type == STT_FUNC || type == STT_GNU_IFUNC))
		return false;
	if (in->versions && in->versions[index] & VERSION_HIDDEN)
		return false;
	return symbol->st_name < in->string_bytes &&
	       text__equal(in->strings + symbol->st_name, name);
}

/* How many symbols with one hash are looked at in a loaded object. */
#define MAX_CHAIN 65536

struct wanted {
	const struct symbols *symbols;
	bool is_function;
};

/* Copies memory of a loaded object directly: the dynamic linker has mapped all that the tables
 * refer to. */
static bool read_loaded(const void *memory, Elf64_Addr address, void *out, size_t size)
{
	__builtin_memcpy(out, (const void *)address, size);
	return true;
}

static bool is_wanted(const void *context, __u32 index, const char *name)
{
	const struct wanted *wanted = context;

	return symbol__is(wanted->symbols, index, name, wanted->is_function);
}

static bool find_in(const struct object *object, const char *name, __u32 gnu_hash, bool function,
		    struct definition *out)
{
	struct symbols symbols;
	const struct wanted wanted = { &symbols, function };
	struct symbol_hash hash = { .max_chain = MAX_CHAIN, .read = read_loaded, .is = is_wanted };
	const Elf64_Sym *symbol;
	void *address;
	__u32 index;

	if (!find_symbols(object, &symbols))
		return false;
	hash.gnu_hash = (Elf64_Addr)symbols.gnu_hash;
	hash.hash = (Elf64_Addr)symbols.hash;
	index = symbol_hash__find(&hash, &wanted, name, gnu_hash);
	if (!index)
		return false;
	symbol = &symbols.symbols[index];
	address = (void *)(object->bias + symbol->st_value);
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		address = ((void *(*)(void))address)();
	*out = (struct definition){ address, symbol->st_size, object };
	return true;
}

bool object__defines(const struct object *object, const char *name, struct definition *out)
{
	return find_in(object, name, symbol_name__gnu_hash(name), true, out);
}

bool object__defines_variable(const struct object *object, const char *name, struct definition *out)
{
	return find_in(object, name, symbol_name__gnu_hash(name), false, out);
}

/* Finds the first definition in the objects from @object up to, not including, @end. */
static bool find_from(const struct object *object, const struct object *end, const char *name,
		      bool function, struct definition *out)
{
	__u32 gnu_hash = symbol_name__gnu_hash(name);

	for (int i = 0; object && object != end && i < MAX_OBJECTS; i++, object = object->next)
		if (find_in(object, name, gnu_hash, function, out))
			return true;
	return false;
}

bool objects__find_next(const char *name, struct definition *out)
{
	const struct object *own = objects__own();

	if (attached_debug)
		return find_from(objects__first(), NULL, name, true, out);
	return own && find_from(own->next, NULL, name, true, out);
}

/* Finds the first definition in all objects but this library. */
static bool find_anywhere(const char *name, bool function, struct definition *out)
{
	const struct object *own = objects__own();

	return find_from(objects__first(), own, name, function, out) ||
	       (own && find_from(own->next, NULL, name, function, out));
}

bool objects__find_function(const char *name, struct definition *out)
{
	return find_anywhere(name, true, out);
}

bool objects__is_preceded(const char *name)
{
	struct definition found;

	return !attached_debug && find_from(objects__first(), objects__own(), name, true, &found);
}

/* Returns how many symbols precede those of DT_GNU_HASH, which are the undefined ones, or all
 * symbols if there is only DT_HASH. */
static __u32 count_undefined(const struct symbols *in)
{
	return in->hash ? in->hash[1] : in->gnu_hash[1];
}

bool object__imports(const struct object *object, const char *name)
{
	struct symbols symbols;
	__u32 n;

	if (!object->dynamic || !read_symbols(object, &symbols))
		return false;
	n = count_undefined(&symbols);
	for (__u32 i = 1; i < n; i++) {
		const Elf64_Sym *symbol = &symbols.symbols[i];

		if (symbol->st_shndx == SHN_UNDEF && symbol->st_name < symbols.string_bytes &&
		    text__equal(symbols.strings + symbol->st_name, name))
			return true;
	}
	return false;
}

/* Returns the number of all symbols. With DT_GNU_HASH the last chain ends with the last symbol. */
static __u32 count_symbols(const struct symbols *in)
{
	const __u32 *table = in->gnu_hash;
	const __u32 *buckets, *chains;
	__u32 last = 0;

	if (in->hash)
		return in->hash[1];
	buckets = (const __u32 *)((const __u64 *)(table + 4) + table[2]);
	chains = buckets + table[0];
	for (__u32 i = 0; i < table[0]; i++)
		last = buckets[i] > last ? buckets[i] : last;
	if (last < table[1])
		return table[1];
	for (int i = 0; i < MAX_CHAIN && !(chains[last - table[1]] & 1); i++)
		last++;
	return last + 1;
}

void object__each_function(const struct object *object, object_function_fn fn, void *context)
{
	struct symbols symbols;
	__u32 n;

	if (!object->dynamic || !read_symbols(object, &symbols))
		return;
	n = count_symbols(&symbols);
	for (__u32 i = 1; i < n; i++) {
		const Elf64_Sym *symbol = &symbols.symbols[i];
		const char *name = symbols.strings + symbol->st_name;

		if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
		    symbol__is(&symbols, i, name, true))
			fn(context, name,
			   &(struct definition){ (void *)(object->bias + symbol->st_value),
						 symbol->st_size, object });
	}
}

struct slots {
	object_slot_filter_fn matters;
	object_slot_fn fn;
	void *context;
};

static void each_relocation(const struct object *object, const struct symbols *in,
			    const Elf64_Rela *relocation, __u64 size_bytes,
			    const struct slots *slots)
{
	for (; size_bytes >= sizeof(*relocation); size_bytes -= sizeof(*relocation), relocation++) {
		__u32 type = ELF64_R_TYPE(relocation->r_info);
		bool is_lazy = type == PROCESSOR_JUMP_SLOT;
		const Elf64_Sym *symbol = &in->symbols[ELF64_R_SYM(relocation->r_info)];
		__u64 *slot = (__u64 *)(object->bias + relocation->r_offset);

		if ((!is_lazy && type != PROCESSOR_GLOB_DAT && type != PROCESSOR_ADDRESS) ||
		    !ELF64_R_SYM(relocation->r_info) || (__u64)slot % sizeof(*slot) ||
		    (type == PROCESSOR_ADDRESS && relocation->r_addend) ||
		    (slots->matters && !slots->matters(slots->context, slot, is_lazy)) ||
		    symbol->st_name >= in->string_bytes)
			continue;
		slots->fn(slots->context, in->strings + symbol->st_name, slot, is_lazy);
	}
}

void object__each_slot(const struct object *object, object_slot_filter_fn matters,
		       object_slot_fn fn, void *context)
{
	const struct slots slots = { matters, fn, context };
	const void *all = NULL, *of_calls = NULL;
	__u64 all_bytes = 0, of_calls_bytes = 0, relative_bytes = 0;
	bool has_addends = false;
	struct symbols symbols;

	if (!object->dynamic || !read_symbols(object, &symbols))
		return;
	for (const Elf64_Dyn *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_RELA:
			all = object__address(object, entry->d_un.d_ptr);
			break;
		case DT_RELASZ:
			all_bytes = entry->d_un.d_val;
			break;
		case DT_RELACOUNT:
			relative_bytes = entry->d_un.d_val * sizeof(Elf64_Rela);
			break;
		case DT_JMPREL:
			of_calls = object__address(object, entry->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			of_calls_bytes = entry->d_un.d_val;
			break;
		case DT_PLTREL:
			has_addends = entry->d_un.d_val == DT_RELA;
			break;
		}
	}
	/* Relocations without a symbol (DT_RELACOUNT) come first and are the most; they are
	 * skipped. */
	if (all && relative_bytes < all_bytes)
		each_relocation(object, &symbols,
				(const Elf64_Rela *)all + relative_bytes / sizeof(Elf64_Rela),
				all_bytes - relative_bytes, &slots);
	if (of_calls && has_addends)
		each_relocation(object, &symbols, of_calls, of_calls_bytes, &slots);
}

bool object__is_symbolic(const struct object *object)
{
	for (const Elf64_Dyn *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_SYMBOLIC ||
		    (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_SYMBOLIC))
			return true;
	return false;
}

bool objects__program_names_auditors(void)
{
	const struct object *program = objects__first();

	for (const Elf64_Dyn *entry = program ? program->dynamic : NULL;
	     entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_AUDIT || entry->d_tag == DT_DEPAUDIT)
			return true;
	return false;
}

bool object__has_search_path(const struct object *object)
{
	for (const Elf64_Dyn *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_RPATH || entry->d_tag == DT_RUNPATH)
			return true;
	return false;
}

void *objects__find(const char *name)
{
	struct definition found;

	return find_anywhere(name, false, &found) ? found.address : NULL;
}

__u64 objects__linker_code(void)
{
	if (attached_debug)
		return attached_debug->code;
	return &_r_debug ? _r_debug.code : 0;
}

/* The first members of struct dl_phdr_info in <link.h>. */
struct object_info {
	__u64 bias;
	const char *path;
	const void *segments;
	__u16 n_segments;
	unsigned long long n_loaded, n_unloaded;
};

/* The C library holds its lock briefly, and never while it calls the allocator, so this cannot
 * deadlock. */
extern int dl_iterate_phdr(int (*fn)(struct object_info *info, size_t size, void *context),
			   void *context) __attribute__((weak));

static int each_object(int (*fn)(struct object_info *info, size_t size, void *context),
		       void *context)
{
	int result;

	outside__begin();
	result = dl_iterate_phdr(fn, context);
	outside__end();
	return result;
}

struct segments {
	__u64 address; /* an address in the object that is looked for */
	struct object_span *out;
};

static bool holds(const struct object_info *info, __u64 address)
{
	const Elf64_Phdr *segments = info->segments;

	for (int i = 0; i < info->n_segments; i++)
		if (segments[i].p_type == PT_LOAD &&
		    address - info->bias - segments[i].p_vaddr < segments[i].p_memsz)
			return true;
	return false;
}

static int take_span(struct object_info *info, size_t size, void *context)
{
	const Elf64_Phdr *segments = info->segments;
	const struct segments *wanted = context;
	struct object_span *out = wanted->out;

	if (!holds(info, wanted->address))
		return 0;
	*out = (struct object_span){ .start = ~0ULL };
	for (int i = 0; i < info->n_segments; i++) {
		__u64 start = info->bias + segments[i].p_vaddr, end = start + segments[i].p_memsz;

		if (segments[i].p_type == PT_GNU_RELRO) {
			out->protected_start = start & -page_bytes();
			out->protected_end = end & -page_bytes();
		} else if (segments[i].p_type == PT_LOAD) {
			out->start = start < out->start ? start : out->start;
			out->end = end > out->end ? end : out->end;
		} else if (segments[i].p_type == PT_DYNAMIC) {
			out->dynamic = start;
		}
	}
	return 1;
}

bool objects__span(__u64 address, struct object_span *out)
{
	struct segments wanted = { address, out };

	return &dl_iterate_phdr && each_object(take_span, &wanted) == 1;
}

struct written {
	__u64 dynamic, address, size;
};

static int look_for_written(struct object_info *info, size_t size, void *context)
{
	const struct written *written = context;
	const Elf64_Phdr *segments = info->segments;

	if (!holds(info, written->dynamic))
		return 0;
	for (int i = 0; i < info->n_segments; i++) {
		__u64 offset = written->address - info->bias - segments[i].p_vaddr;

		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_W &&
		    offset < segments[i].p_memsz && written->size <= segments[i].p_memsz - offset)
			return 1;
	}
	return 2;
}

bool object__writes(const struct object *object, __u64 address, __u64 size)
{
	struct written written = { (__u64)object->dynamic, address, size };

	return &dl_iterate_phdr && each_object(look_for_written, &written) == 1;
}

static bool code_leads_to(__u64 start, __u64 bytes, __u64 address)
{
	for (__u64 at = start; at + sizeof(__s32) <= start + bytes; at++) {
		__s32 distance;

		__builtin_memcpy(&distance, (const void *)at, sizeof(distance));
		if (at + sizeof(distance) + distance == address)
			return true;
	}
	return false;
}

static bool data_leads_to(__u64 start, __u64 bytes, __u64 address)
{
	const __u64 *word = (const __u64 *)((start + 7) & ~7ULL);

	for (; (__u64)(word + 1) <= start + bytes; word++)
		if (*word == address)
			return true;
	return false;
}

struct leading {
	__u64 dynamic, address;
};

static int look_for_address(struct object_info *info, size_t size, void *context)
{
	const struct leading *leading = context;
	const Elf64_Phdr *segments = info->segments;
	bool leads = false;

	if (!holds(info, leading->dynamic))
		return 0;
	for (int i = 0; i < info->n_segments && !leads; i++) {
		__u64 start = info->bias + segments[i].p_vaddr;

		if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_R))
			continue;
		if (segments[i].p_flags & PF_X)
			leads = code_leads_to(start, segments[i].p_filesz, leading->address);
		else if (segments[i].p_flags & PF_W)
			leads = data_leads_to(start, segments[i].p_filesz, leading->address);
	}
	return leads ? 1 : 2;
}

bool objects__lead_to(const struct object_span *span, __u64 address)
{
	struct leading leading = { span->dynamic, address };

	return &dl_iterate_phdr && each_object(look_for_address, &leading) == 1;
}

struct data {
	__u64 dynamic, protected_start, protected_end;
	object_data_fn fn;
	void *context;
};

static int pass_on_data(struct object_info *info, size_t size, void *context)
{
	const struct data *data = context;
	const Elf64_Phdr *segments = info->segments;

	if (!holds(info, data->dynamic))
		return 0;
	for (int i = 0; i < info->n_segments; i++) {
		__u64 start = info->bias + segments[i].p_vaddr;
		__u64 filled_end = start + segments[i].p_filesz, end = start + segments[i].p_memsz;

		if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_W))
			continue;
		/* These pages are where a segment begins, or are one of their own. */
		if (data->protected_start <= start && data->protected_end > start)
			start = data->protected_end;
		if (start < filled_end)
			data->fn(data->context, (__u64 *)((start + 7) & -8ULL),
				 (__u64 *)(filled_end & -8ULL), (__u64 *)(end & -8ULL));
	}
	return 1;
}

bool object__is_listed(const struct object *wanted)
{
	const struct object *object = objects__first();

	while (object && object != wanted)
		object = object->next;
	return object;
}

void objects__each_data(const struct object_span *span, object_data_fn fn, void *context)
{
	struct data data = { span->dynamic, span->protected_start, span->protected_end, fn,
			     context };

	if (&dl_iterate_phdr)
		each_object(pass_on_data, &data);
}

static int take_unloaded(struct object_info *info, size_t size, void *unloaded)
{
	if (size >= sizeof(*info))
		*(__u64 *)unloaded = info->n_unloaded;
	return 1;
}

__u64 objects__unloaded(void)
{
	__u64 unloaded = 0;

	if (&dl_iterate_phdr)
		each_object(take_unloaded, &unloaded);
	return unloaded;
}

static int end_at_once(struct object_info *info, size_t size, void *context)
{
	return 1;
}

void objects__await_lock(void)
{
	if (&dl_iterate_phdr)
		dl_iterate_phdr(end_at_once, NULL);
}

struct held {
	objects_fn fn;
	void *context;
};

static int call_held(struct object_info *info, size_t size, void *context)
{
	const struct held *held = context;
	struct objects_changes changes;

	if (size < sizeof(*info)) {
		held->fn(held->context, NULL);
		return 1;
	}
	changes = (struct objects_changes){ info->n_loaded, info->n_unloaded };
	held->fn(held->context, &changes);
	return 1;
}

/* Calls @fn from dl_iterate_phdr(3): glibc changes the list and unmaps objects only under the lock
 * that it holds meanwhile. */
void objects__hold(objects_fn fn, void *context)
{
	struct held held = { fn, context };

	if (&dl_iterate_phdr)
		each_object(call_held, &held);
	else
		fn(context, NULL);
}

static void find_rpath(void *context, const struct objects_changes *changes)
{
	const struct object *object = objects__first();
	bool *is_found = context;

	for (int i = 0; object && i < MAX_OBJECTS; i++, object = object->next)
		for (const Elf64_Dyn *entry = object->dynamic; entry && entry->d_tag != DT_NULL;
		     entry++)
			*is_found |= entry->d_tag == DT_RPATH;
}

bool objects__pass_on_search_path(void)
{
	bool is_found = false;

	objects__hold(find_rpath, &is_found);
	return is_found;
}

#define NAME(name, ...) [NEXT_##name] = #name,
static const char *const names[NEXT_FUNCTIONS] = { NEXT_ALLOCATOR(NAME) NEXT_OTHERS(NAME) };
#undef NAME

void *next_functions[NEXT_FUNCTIONS];
bool next_realloc_is_preceded;
struct next_bodies next_bodies;

static struct {
	__u64 start, end;
} bodies[NEXT_ALLOCATORS];

void *next__find(enum next which)
{
	struct definition found;

	if (which == NEXT_realloc)
		next_realloc_is_preceded = objects__is_preceded("realloc");
	if (!objects__find_next(names[which], &found))
		return NULL;
	if (which < NEXT_ALLOCATORS) {
		bodies[which].start = (__u64)found.address;
		bodies[which].end = bodies[which].start + found.size;
	}
	next_functions[which] = found.address;
	return found.address;
}

__u64 objects__page_bytes(void)
{
	unsigned long (*get)(unsigned long type) = next__get(NEXT_getauxval);

	return get ? get(AT_PAGESZ) : LEAST_PAGE;
}

void next__prepare(void)
{
	__u64 start = ~0ULL, end = 0;

	for (int i = 0; i < NEXT_ALLOCATORS; i++) {
		next__find(i);
		if (!bodies[i].end)
			continue;
		start = bodies[i].start < start ? bodies[i].start : start;
		end = bodies[i].end > end ? bodies[i].end : end;
	}
	next_bodies.start = start;
	next_bodies.size = end > start ? end - start : 0;
}

bool next__is_body(__u64 return_address)
{
	for (int i = 0; i < NEXT_ALLOCATORS; i++)
		if (return_address > bodies[i].start && return_address <= bodies[i].end)
			return true;
	return false;
}
