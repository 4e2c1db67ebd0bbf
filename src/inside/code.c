// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "code.h"

#include "image.h"
#include "maps.h"
#include "memory.h"
#include "objects.h"
#include "tables.h"

#define PAGE_SHIFT  13
#define PAGE_BITS   12
#define BYTES_SHIFT 13
#define MODULE_BITS 16
/* The largest range, in pages, whose pages are looked up one by one. */
#define MOST_PAGES 2048

_Static_assert(UNWIND_MAX_MODULES <= 1 << MODULE_BITS, "a kept page has the module's number");

static struct kept pages[1 << PAGE_SHIFT], bytes[1 << BYTES_SHIFT];

static const struct kept_table
	/* Keyed by page of code. Each value holds file offset minus address, in pages, and the
	 * module number. */
	code_pages = { pages, PAGE_SHIFT, 20 },
	/* Keyed by address. Each value is what walk.c remembers of the bytes there. */
	code_bytes = { bytes, BYTES_SHIFT, 16 };

static struct {
	__u32 generation, bytes_generation, loads;
	__u64 unloaded; /* value of objects__unloaded() in this generation */
	__u64 linker_start, linker_bytes;
	__u32 own_module;
	struct mapped_array modules;
} code;

__u32 code__generation(void)
{
	return __atomic_load_n(&code.generation, __ATOMIC_RELAXED);
}

static bool find_known(__u64 address, __u32 generation, struct code_range *out)
{
	__u64 value;

	if (!kept__find(&code_pages, kept__key(&code_pages, address >> PAGE_BITS, generation),
			&value))
		return false;
	*out = (struct code_range){
		.start = address >> PAGE_BITS << PAGE_BITS,
		.module = value & ((1 << MODULE_BITS) - 1),
		.bias = (__u64)((__s64)value >> MODULE_BITS) << PAGE_BITS,
	};
	out->end = out->start + (1 << PAGE_BITS);
	return true;
}

static void keep(__u64 address, __u32 generation, const struct code_range *range)
{
	__u64 bias = (__s64)range->bias >> PAGE_BITS, value = bias << MODULE_BITS | range->module;

	/* A page that is missing in code_pages would not be noticed when it is unmapped, so the
	 * whole table is dropped now. */
	if (!kept__put(&code_pages, kept__key(&code_pages, address >> PAGE_BITS, generation),
		       value))
		code__change();
}

static __u64 bytes_key(__u64 address)
{
	return kept__key(&code_bytes, address,
			 code__generation() +
				 __atomic_load_n(&code.bytes_generation, __ATOMIC_RELAXED));
}

bool code__recall(__u64 address, __u32 *said)
{
	__u64 value;

	if (!kept__find(&code_bytes, bytes_key(address), &value))
		return false;
	*said = value;
	return true;
}

void code__remember(__u64 address, __u32 said)
{
	if (!kept__put(&code_bytes, bytes_key(address), said))
		code__forget_bytes();
}

void code__forget_bytes(void)
{
	__atomic_fetch_add(&code.bytes_generation, 1, __ATOMIC_RELAXED);
}

static __u32 find_module(const struct mapping *mapping)
{
	const struct inside_array *modules = &memory__header()->modules;
	__u32 n = __atomic_load_n(&modules->n, __ATOMIC_ACQUIRE);

	for (__u32 i = 0; i < n && i < UNWIND_MAX_MODULES - INSIDE_FIRST_MODULE; i++) {
		const struct inside_module *module =
			mapped_array__get(&code.modules, modules, sizeof(*module), i);

		if (!module)
			return 0;
		if (__atomic_load_n(&module->state, __ATOMIC_ACQUIRE) == INSIDE_READY &&
		    module->inode == mapping->inode && module->device == mapping->device)
			return INSIDE_FIRST_MODULE + i;
	}
	return 0;
}

/* Later the file at the path may be another one. */
static __attribute__((noinline)) void
note_build_id(struct inside_module *module, const struct mapping *mapping, void *buffer, __u32 size)
{
	struct image image;

	if (image__find(mapping, &image, buffer, size))
		module->build_id_bytes =
			image__build_id(&image, module->build_id, sizeof(module->build_id));
}

static __u32 add_module(const struct mapping *mapping, void *buffer, __u32 size)
{
	struct inside_module *module;
	__u32 index;

	module = mapped_array__add(&code.modules, &memory__header()->modules, sizeof(*module),
				   &index);
	if (!module || index >= UNWIND_MAX_MODULES - INSIDE_FIRST_MODULE) {
		memory__add_gap(INSIDE_GAP_MODULES);
		return 0;
	}
	module->pid = sys__pid();
	module->device = mapping->device;
	module->inode = mapping->inode;
	module->start = mapping->start;
	module->end = mapping->end;
	module->offset = mapping->offset;
	module->time_ns = sys__now_ns();
	text__append(module->path, module->path + sizeof(module->path), mapping->path);
	if (memory__header()->settings.is_own)
		note_build_id(module, mapping, buffer, size);
	__atomic_store_n(&module->state, INSIDE_READY, __ATOMIC_RELEASE);
	memory__wake();
	return INSIDE_FIRST_MODULE + index;
}

/* Publishes the file of @mapping, unless a process has done so. @buffer is working memory of @size bytes.
 * Returns the file's module number, or 0 if there is no room for it. */
static __u32 publish(const struct mapping *mapping, void *buffer, __u32 size)
{
	__u32 module = find_module(mapping);

	return module ? module : add_module(mapping, buffer, size);
}

void code__publish(__u64 address)
{
	/* Zeroed only for valgrind, as in look_up(). */
	char path[INSIDE_PATH_BYTES] = { 0 }, buffer[256];
	struct mapping mapping;

	if (!maps__find(address, &mapping, path, sizeof(path), buffer, sizeof(buffer)) &&
	    mapping.inode)
		(void)publish(&mapping, buffer, sizeof(buffer));
}

static __attribute__((noinline)) int look_up(__u64 address, __u32 generation,
					     struct code_range *out)
{
	/* Zeroed only for valgrind, which does not know that the kernel writes to it. */
	char path[INSIDE_PATH_BYTES] = { 0 }, buffer[256];
	const struct unwind_table *table;
	struct mapping mapping;
	int err = maps__find(address, &mapping, path, sizeof(path), buffer, sizeof(buffer));

	if (err && err != -ENOENT)
		return err;
	*out = (struct code_range){ mapping.start, mapping.end };
	if (err || !mapping.is_executable)
		return -ENOENT;
	if (text__equal(path, "[vdso]")) {
		out->module = AP_MODULE_VDSO;
		out->bias = -mapping.start;
	} else if (mapping.inode) {
		out->module = publish(&mapping, buffer, sizeof(buffer));
		out->bias = mapping.offset - mapping.start;
	}
	/* Without a module number there are no unwind tables either, so nothing is remembered and
	 * the next look-up tries again. */
	if (mapping.inode && !out->module)
		return 0;
	table = tables__of(out->module);
	if (table)
		memory__await(&table->state, UNWIND_TABLE_AWAITED);
	keep(address, generation, out);
	return 0;
}

int code__find(__u64 address, struct code_range *out)
{
	__u32 generation = code__generation();

	return find_known(address, generation, out) ? 0 : look_up(address, generation, out);
}

const struct unwind_chunk *tables__map_chunk(__u32 index)
{
	const struct unwind_chunk *chunk = memory__map_tables(
		INSIDE_CHUNKS_AT + (__u64)index * sizeof(*chunk), sizeof(*chunk));

	if (chunk)
		__atomic_store_n(&tables.chunks[index], chunk, __ATOMIC_RELEASE);
	return chunk;
}

void code__begin(void)
{
	const char *first = memory__map_tables(INSIDE_TABLES_AT, INSIDE_CHUNKS_AT);
	__u64 linker = objects__linker_code();
	struct code_range range;

	if (!first && !memory__header()->settings.is_own)
		return;
	if (first) {
		tables.tables = (const void *)(first + INSIDE_TABLES_AT);
		tables.slices = (const void *)(first + INSIDE_SLICES_AT);
		tables.rules = (const void *)(first + INSIDE_RULES_AT);
	}
	if (memory__header()->settings.within)
		tables.within = memory__map_tables(INSIDE_WITHIN_AT, INSIDE_WITHIN_BYTES);
	code.unloaded = objects__unloaded();
	if (!look_up((__u64)code__begin, code.generation, &range))
		code.own_module = range.module;
	if (linker && !look_up(linker, code.generation, &range)) {
		code.linker_bytes = range.end - range.start;
		code.linker_start = range.start;
	}
}

void code__begin_again(void)
{
	code.modules = (struct mapped_array){ 0 };
	code__change();
	code__begin();
}

__u32 code__own_module(void)
{
	return code.own_module;
}

__u32 code__loads(void)
{
	return __atomic_load_n(&code.loads, __ATOMIC_RELAXED);
}

void code__loaded(void)
{
	__atomic_fetch_add(&code.loads, 1, __ATOMIC_RELEASE);
}

void code__change(void)
{
	__atomic_fetch_add(&code.generation, 1, __ATOMIC_RELEASE);
}

/* Returns whether code is known in the pages with numbers from @first up to, not including, @end. */
static bool is_known(__u64 first, __u64 end)
{
	__u32 generation = code__generation();
	__u64 value;

	if (end - first > MOST_PAGES) {
		for (int i = 0; i < 1 << PAGE_SHIFT; i++) {
			__u64 key = __atomic_load_n(&pages[i].key, __ATOMIC_RELAXED);
			__u64 page = key >> code_pages.generation_bits;

			if (page >= first && page < end &&
			    key == kept__key(&code_pages, page, generation))
				return true;
		}
		return false;
	}
	for (; first < end; first++)
		if (kept__find(&code_pages, kept__key(&code_pages, first, generation), &value))
			return true;
	return false;
}

void code__unmapped(__u64 address, __u64 size)
{
	if (is_known(address >> PAGE_BITS, (address + size + (1 << PAGE_BITS) - 1) >> PAGE_BITS))
		code__change();
}

void code__check_unloaded(__u64 return_address)
{
	__u64 unloaded;

	if (likely(return_address - code.linker_start >= code.linker_bytes))
		return;
	code__loaded();
	unloaded = objects__unloaded();
	if (unloaded == __atomic_load_n(&code.unloaded, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&code.unloaded, unloaded, __ATOMIC_RELAXED);
	code__change();
}
