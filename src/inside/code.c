// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "code.h"

#include <asm/unistd.h>

#include "maps.h"
#include "memory.h"
#include "objects.h"
#include "tables.h"

/* Ranges by page of code. Nothing is removed: another generation makes all of them void. */
#define PAGE_SLOTS 16384
#define PAGE_TRIES 8
#define MAX_RANGES 4096
#define PAGE_SHIFT 12

/* page << 28 | generation << 12 | index of the range; 0: free. */
#define GENERATION_MASK 0xffff

static struct {
	__u64 pages[PAGE_SLOTS];
	struct code_range ranges[MAX_RANGES];
	__u32 n_ranges;
	__u32 generation;
	__u64 unloaded; /* objects__unloaded() of the generation */
	__u64 linker_start, linker_bytes;
	__u32 own_module;
	struct mapped_array modules;
} code;

__u32 code__generation(void)
{
	return __atomic_load_n(&code.generation, __ATOMIC_RELAXED);
}

static __u64 key_of(__u64 address, __u32 generation)
{
	return address >> PAGE_SHIFT << 28 | (__u64)(generation & GENERATION_MASK) << 12;
}

static __u32 slot_of(__u64 address)
{
	return (address >> PAGE_SHIFT) * 0x9e3779b97f4a7c15ULL >> 50;
}

static bool find_known(__u64 address, __u32 generation, struct code_range *out)
{
	__u64 key = key_of(address, generation);

	for (int i = 0; i < PAGE_TRIES; i++) {
		__u64 slot = __atomic_load_n(&code.pages[(slot_of(address) + i) & (PAGE_SLOTS - 1)],
					     __ATOMIC_ACQUIRE);

		if ((slot & ~(__u64)(MAX_RANGES - 1)) == key) {
			*out = code.ranges[slot & (MAX_RANGES - 1)];
			return address >= out->start && address < out->end;
		}
	}
	return false;
}

/* The range that was kept for the mapping, or a new one; 0: there is no room. */
static __u32 keep_range(const struct code_range *range)
{
	__u32 index, n = __atomic_load_n(&code.n_ranges, __ATOMIC_ACQUIRE);

	for (index = 1; index < n && index < MAX_RANGES; index++)
		if (code.ranges[index].start == range->start &&
		    code.ranges[index].end == range->end &&
		    code.ranges[index].bias == range->bias &&
		    code.ranges[index].module == range->module)
			return index;
	index = __atomic_add_fetch(&code.n_ranges, 1, __ATOMIC_RELAXED);
	if (index >= MAX_RANGES)
		return 0;
	code.ranges[index] = *range;
	return index;
}

/* A page that does not find a free slot takes one of another generation, or is looked up again. */
static void keep(__u64 address, __u32 generation, const struct code_range *range)
{
	__u64 key = key_of(address, generation);
	__u32 index = keep_range(range);

	if (!index)
		return;
	for (int i = 0; i < PAGE_TRIES; i++) {
		__u64 *slot = &code.pages[(slot_of(address) + i) & (PAGE_SLOTS - 1)], was = *slot;

		if (was && ((was ^ key) & (__u64)GENERATION_MASK << 12) == 0)
			continue;
		if (__atomic_compare_exchange_n(slot, &was, key | index, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return;
	}
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

static __u32 add_module(const struct mapping *mapping)
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
	__atomic_store_n(&module->state, INSIDE_READY, __ATOMIC_RELEASE);
	memory__wake();
	return INSIDE_FIRST_MODULE + index;
}

/* Publishes the file of @mapping, if no process has. Returns its number, or 0 where there is no room for it. */
static __u32 publish(const struct mapping *mapping)
{
	__u32 module = find_module(mapping);

	return module ? module : add_module(mapping);
}

void code__publish(__u64 address)
{
	/* Zeroed for valgrind, as in look_up(). */
	char path[INSIDE_PATH_BYTES] = { 0 }, buffer[512];
	struct mapping mapping;

	if (maps__find(address, &mapping, path, buffer, sizeof(buffer)) && mapping.inode)
		(void)publish(&mapping);
}

static __attribute__((noinline)) bool look_up(__u64 address, __u32 generation,
					      struct code_range *out)
{
	/* Zeroed for valgrind, which does not know that the kernel writes to it. */
	char path[INSIDE_PATH_BYTES] = { 0 }, buffer[512];
	const struct unwind_table *table;
	struct mapping mapping;

	if (!maps__find(address, &mapping, path, buffer, sizeof(buffer)) || !mapping.is_executable)
		return false;
	*out = (struct code_range){ mapping.start, mapping.end };
	if (text__equal(path, "[vdso]")) {
		out->module = AP_MODULE_VDSO;
		out->bias = -mapping.start;
	} else if (mapping.inode) {
		out->module = publish(&mapping);
		out->bias = mapping.offset - mapping.start;
	}
	/* Without a number there are no tables either: the next look-up tries again. */
	if (mapping.inode && !out->module)
		return true;
	table = tables__of(out->module);
	if (table)
		memory__await(&table->state, UNWIND_TABLE_AWAITED);
	keep(address, generation, out);
	return true;
}

bool code__find(__u64 address, struct code_range *out)
{
	__u32 generation = code__generation();

	return find_known(address, generation, out) || look_up(address, generation, out);
}

void stack__range(__u64 sp, struct stack_range *out, void *buffer, __u32 size)
{
	struct mapping mapping;
	char least[64];

	if (size < sizeof(least)) {
		buffer = least;
		size = sizeof(least);
	}
	*out = (struct stack_range){ 0 };
	if (maps__find(sp, &mapping, NULL, buffer, size))
		*out = (struct stack_range){ mapping.start, mapping.end };
}

long memory__read_some(__u64 address, void *out, __u32 size)
{
	const struct {
		void *address;
		size_t size;
	} local = { out, size }, remote = { (void *)address, size };

	return sys(__NR_process_vm_readv, sys__pid(), (long)&local, 1, (long)&remote, 1, 0);
}

bool memory__read(__u64 address, void *out, __u32 size)
{
	return memory__read_some(address, out, size) == (long)size;
}

bool stack_copy__load(struct stack_copy *copy, __u64 address, __u64 *value)
{
	__u64 at = address - copy->start;

	if (address & 7)
		return false;
	if (at >= copy->size || copy->size - at < sizeof(*value)) {
		long size = memory__read_some(address, copy->words, sizeof(copy->words));

		copy->start = address;
		copy->size = size > 0 ? size : 0;
		at = 0;
	}
	if (copy->size - at < sizeof(*value))
		return false;
	*value = copy->words[at / sizeof(*value)];
	return true;
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

	if (!first)
		return;
	tables.tables = (const void *)(first + INSIDE_TABLES_AT);
	tables.slices = (const void *)(first + INSIDE_SLICES_AT);
	tables.rules = (const void *)(first + INSIDE_RULES_AT);
	if (memory__header()->settings.within)
		tables.within = memory__map_tables(INSIDE_WITHIN_AT, INSIDE_WITHIN_BYTES);
	code.unloaded = objects__unloaded();
	if (code__find((__u64)code__begin, &range))
		code.own_module = range.module;
	if (linker && code__find(linker, &range)) {
		code.linker_bytes = range.end - range.start;
		code.linker_start = range.start;
	}
}

__u32 code__own_module(void)
{
	return code.own_module;
}

void code__change(void)
{
	__atomic_fetch_add(&code.generation, 1, __ATOMIC_RELEASE);
}

void code__unmapped(__u64 address, __u64 size)
{
	__u32 n = __atomic_load_n(&code.n_ranges, __ATOMIC_ACQUIRE);

	for (__u32 i = 1; i <= n && i < MAX_RANGES; i++)
		if (code.ranges[i].start < address + size && address < code.ranges[i].end) {
			code__change();
			return;
		}
}

void code__check_unloaded(__u64 return_address)
{
	__u64 unloaded;

	if (likely(return_address - code.linker_start >= code.linker_bytes))
		return;
	unloaded = objects__unloaded();
	if (unloaded == __atomic_load_n(&code.unloaded, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&code.unloaded, unloaded, __ATOMIC_RELAXED);
	code__change();
}
